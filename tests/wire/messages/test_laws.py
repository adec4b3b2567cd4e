"""Requests, answers and streams come back as they went."""

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.wire.messages import strategies as some
from tests.wire.messages.streams import ANSWERED, decoded, encoded, kinds, whole
from umg_grpc.v1 import pb
from umg_grpc.wire.messages import MESSAGES
from umg_grpc.wire.replay import replay

modest = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

NULL = msgspec.Raw(b"null")
few = settings(modest, max_examples=30)
Raws = dict[str, msgspec.Raw]


@modest
@given(some.requests())
def test_a_request_survives_the_wire_and_back(request: pb.GenerateRequest) -> None:
    upstream = MESSAGES.encode_request(request, "m", False)
    came, stream = MESSAGES.decode_request(upstream.body, {})
    came.ClearField("source")
    assert came == request
    assert not upstream.report.dropped
    assert not stream


@modest
@given(some.responses())
def test_an_answer_survives_the_wire_and_back(response: pb.GenerateResponse) -> None:
    body = MESSAGES.encode_response(response, ANSWERED)
    assert MESSAGES.decode_response(body, ANSWERED, False) == response


@modest
@given(some.responses(), st.data())
def test_a_stream_survives_the_wire_and_back_however_it_is_cut(
    response: pb.GenerateResponse, data: st.DataObject
) -> None:
    stream = encoded([replay(response)])
    assert whole(decoded(data.draw(some.cuts(stream)))) == response


@few
@given(some.responses(), st.data(), st.sampled_from([b"\r\n", b"\r"]))
def test_a_stream_is_read_with_every_line_end(response: pb.GenerateResponse, data: st.DataObject, end: bytes) -> None:
    stream = encoded([replay(response)]).replace(b"\n", end)
    assert whole(decoded(data.draw(some.cuts(stream)))) == response


@few
@given(some.responses(), st.data())
def test_a_passed_stream_is_the_providers_to_the_byte_however_it_is_cut(
    response: pb.GenerateResponse, data: st.DataObject
) -> None:
    stream = encoded([replay(response)])
    messages = decoded(data.draw(some.cuts(stream)), pass_=True)
    assert b"".join(message.source_frames for message in messages) == stream
    assert kinds(messages) == ["started", "usage", "finished", "usage"]
    assert encoded(messages) == stream


@few
@given(some.requests(), st.data(), st.booleans())
def test_what_nobody_knows_reaches_a_provider_of_the_same_format(
    request: pb.GenerateRequest, data: st.DataObject, stream: bool
) -> None:
    fields = msgspec.json.decode(MESSAGES.encode_request(request, "m", stream).body)
    fields.pop("metadata", None)  # where an addition is no unknown field
    body = msgspec.json.encode(some.sprinkled(fields, data))
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "new-2026-01-01"}
    canonical = MESSAGES.decode_request(body, headers).canonical
    upstream = MESSAGES.encode_request(canonical, "theirs", stream)
    before, after = (msgspec.json.decode(document, type=Raws) for document in (body, upstream.body))
    assert after.pop("model") == msgspec.Raw(b'"theirs"')
    assert {name: bytes(raw) for name, raw in after.items()} == {
        name: bytes(raw) for name, raw in before.items() if name != "model"
    }
    assert upstream.headers == headers
    assert canonical.source.unknown_field_count == sum(
        name.startswith("x_") for name, raw in before.items() if raw != NULL
    )
    assert not upstream.report.header()


@few
@given(some.responses(), st.data(), st.sampled_from(["m", "theirs"]))
def test_what_nobody_knows_reaches_the_caller_of_the_same_format(
    response: pb.GenerateResponse, data: st.DataObject, theirs: str
) -> None:
    fields = msgspec.json.decode(MESSAGES.encode_response(response, ANSWERED)) | {"model": theirs}
    body = msgspec.json.encode(some.sprinkled(fields, data))
    passed = MESSAGES.decode_response(body, ANSWERED, True)
    answer = MESSAGES.encode_response(passed, ANSWERED)
    if theirs == "m":
        assert answer == body
    before, after = (msgspec.json.decode(document, type=Raws) for document in (body, answer))
    assert bytes(after.pop("model")) == b'"m"'
    assert {name: bytes(raw) for name, raw in after.items()} == {
        name: bytes(raw) for name, raw in before.items() if name != "model"
    }
    assert (passed.usage, passed.response_id) == (response.usage, response.response_id)
    assert passed.candidates[0].finish_reason == response.candidates[0].finish_reason


@few
@given(some.responses(), st.data(), st.sampled_from(["m", "theirs"]))
def test_what_nobody_knows_reaches_the_caller_of_a_stream(
    response: pb.GenerateResponse, data: st.DataObject, theirs: str
) -> None:
    sent, expected = list[bytes](), list[bytes]()
    for frame in encoded([replay(response)]).split(b"\n\n")[:-1]:
        name, event = frame.split(b"\ndata: ")
        fields = some.sprinkled(msgspec.json.decode(event), data)
        for model, frames in ((theirs, sent), ("m", expected)):
            if "message" in fields:
                fields["message"]["model"] = model
            frames.append(name + b"\ndata: " + msgspec.json.encode(fields) + b"\n\n")
    messages = decoded(data.draw(some.cuts(b"".join(sent))), pass_=True)
    assert b"".join(message.source_frames for message in messages) == b"".join(expected)
