"""Laws of this format; `tests/unit/wire/test_laws.py` has those of all formats."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.chat import strategies as some
from tests.unit.wire.laws import cuts, few, members, sprinkled
from tests.unit.wire.streams import decoded, encoded, frames_of
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT_FORMAT
from umg_grpc.wire.core.response_to_events import response_to_events


@few
@given(some.requests, st.data())
def test_unknown_fields_reach_a_provider_of_the_same_format(request: pb.GenerateRequest, data: st.DataObject) -> None:
    fields = msgspec.json.decode(CHAT_FORMAT.encode_request(request, "m", True).body)
    for kept in (
        "metadata",
        "logit_bias",
        "parameters",
    ):  # maps, where an addition is no unknown field; our own container
        fields.pop(kept, None)
    body = msgspec.json.encode(sprinkled(fields, data))
    canonical, _, notes = CHAT_FORMAT.decode_request(body, {"openai-beta": "x"})
    upstream = CHAT_FORMAT.encode_request(canonical, "theirs", True, notes=notes)
    assert members(upstream.body) == members(body) | {"model": b'"theirs"'}
    assert upstream.headers == {"openai-beta": "x"}
    assert sorted(notes.indispensable) == sorted(
        name for name, raw in members(body).items() if name.startswith("x_") and raw != b"null"
    )


@few
@given(some.responses(), st.data(), st.sampled_from(["m", "theirs"]))
def test_unknown_fields_of_a_response_reach_a_caller_of_the_same_format(
    response: pb.GenerateResponse, data: st.DataObject, theirs: str
) -> None:
    fields = msgspec.json.decode(CHAT_FORMAT.encode_response(response, some.ANSWERED)) | {"model": theirs}
    body = msgspec.json.encode(sprinkled(fields, data))
    passed = CHAT_FORMAT.decode_response(body, some.ANSWERED, True)
    answer = CHAT_FORMAT.encode_response(passed, some.ANSWERED)
    if theirs == "m":
        assert answer == body
    assert members(answer) == members(body) | {"model": b'"m"'}
    assert passed.usage == response.usage


@few
@given(some.responses(), st.data(), st.sampled_from(["m", "theirs"]))
def test_unknown_fields_of_a_stream_reach_a_caller_of_the_same_format(
    response: pb.GenerateResponse, data: st.DataObject, theirs: str
) -> None:
    events = encoded(CHAT_FORMAT, [response_to_events(response)], some.ANSWERED).split(b"\n\n")[:-2]
    chunks = sprinkled([msgspec.json.decode(event[6:]) | {"model": theirs} for event in events], data)
    stream = b"".join(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
    messages = decoded(CHAT_FORMAT, data.draw(cuts(stream)), some.ANSWERED, pass_=True)
    passed = frames_of(messages).split(b"\n\n")
    assert [msgspec.json.decode(event[6:]) for event in passed[:-2]] == [chunk | {"model": "m"} for chunk in chunks]
    assert passed[-2:] == [b"data: [DONE]", b""]
