"""Laws of this format; `tests/unit/wire/test_laws.py` has those of all formats."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.laws import cuts, few, members, sprinkled
from tests.unit.wire.messages import strategies as some
from tests.unit.wire.messages.streams import ANSWERED, decoded, encoded
from tests.unit.wire.streams import frames_of
from umg_grpc.v1 import pb
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.messages import MESSAGES_FORMAT


@few
@given(some.requests(), st.data(), st.booleans())
def test_unknown_fields_reach_a_provider_of_the_same_format(
    request: pb.GenerateRequest, data: st.DataObject, stream: bool
) -> None:
    fields = msgspec.json.decode(MESSAGES_FORMAT.encode_request(request, "m", stream).body)
    fields.pop("metadata", None)  # a map, where an addition is no unknown field
    body = msgspec.json.encode(sprinkled(fields, data))
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "new-2026-01-01"}
    canonical, _, notes = MESSAGES_FORMAT.decode_request(body, headers)
    upstream = MESSAGES_FORMAT.encode_request(canonical, "theirs", stream, notes=notes)
    assert members(upstream.body) == members(body) | {"model": b'"theirs"'}
    assert upstream.headers == headers
    assert sorted(notes.indispensable) == sorted(
        name for name, raw in members(body).items() if name.startswith("x_") and raw != b"null"
    )
    assert not upstream.report.header()


@few
@given(some.responses(), st.data(), st.sampled_from(["m", "theirs"]))
def test_unknown_fields_of_a_response_reach_a_caller_of_the_same_format(
    response: pb.GenerateResponse, data: st.DataObject, theirs: str
) -> None:
    fields = msgspec.json.decode(MESSAGES_FORMAT.encode_response(response, ANSWERED)) | {"model": theirs}
    body = msgspec.json.encode(sprinkled(fields, data))
    passed = MESSAGES_FORMAT.decode_response(body, ANSWERED, True)
    answer = MESSAGES_FORMAT.encode_response(passed, ANSWERED)
    if theirs == "m":
        assert answer == body
    assert members(answer) == members(body) | {"model": b'"m"'}
    assert (passed.usage, passed.response_id) == (response.usage, response.response_id)
    assert passed.candidates[0].finish_reason == response.candidates[0].finish_reason


@few
@given(some.responses(), st.data(), st.sampled_from(["m", "theirs"]))
def test_unknown_fields_of_a_stream_reach_a_caller_of_the_same_format(
    response: pb.GenerateResponse, data: st.DataObject, theirs: str
) -> None:
    sent, expected = list[bytes](), list[bytes]()
    events = [frame.split(b"\ndata: ") for frame in encoded([response_to_events(response)]).split(b"\n\n")[:-1]]
    documents = sprinkled([msgspec.json.decode(event) for _, event in events], data)
    for (name, _), fields in zip(events, documents, strict=True):
        for model, frames in ((theirs, sent), ("m", expected)):
            if "message" in fields:
                fields["message"]["model"] = model
            frames.append(name + b"\ndata: " + msgspec.json.encode(fields) + b"\n\n")
    messages = decoded(data.draw(cuts(b"".join(sent))), pass_=True)
    assert frames_of(messages) == b"".join(expected)
