"""Requests, answers and streams come back as they went."""

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.wire.accumulate import accumulate
from tests.wire.chat import strategies as some
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT
from umg_grpc.wire.replay import replay

modest = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

NULL = msgspec.Raw(b"null")
few = settings(modest, max_examples=30)


def decoded(frames: list[bytes], request: pb.GenerateRequest, pass_: bool) -> list[pb.StreamGenerateResponse]:
    decoder = CHAT.stream_decoder(request, pass_)
    messages = [message for data in frames if (message := decoder.feed(data)) is not None]
    last = decoder.close()
    return [*messages, last] if last is not None else messages


def encoded(messages: list[pb.StreamGenerateResponse], request: pb.GenerateRequest) -> bytes:
    encoder = CHAT.stream_encoder(request)
    return b"".join([*(encoder.feed(message) for message in messages), encoder.close()])


@modest
@given(some.requests)
def test_a_request_survives_the_wire_and_back(request: pb.GenerateRequest) -> None:
    upstream = CHAT.encode_request(request, request.model or "m", False)
    came, stream = CHAT.decode_request(upstream.body, {})
    came.ClearField("source")
    request.model = request.model or "m"
    assert came == request
    assert not upstream.report.dropped
    assert not stream


@modest
@given(some.responses())
def test_an_answer_survives_the_wire_and_back(response: pb.GenerateResponse) -> None:
    body = CHAT.encode_response(response, some.ANSWERED)
    assert CHAT.decode_response(body, some.ANSWERED, False) == response


@modest
@given(some.responses(), st.data())
def test_a_stream_survives_the_wire_and_back_however_it_is_cut(
    response: pb.GenerateResponse, data: st.DataObject
) -> None:
    stream = encoded([replay(response)], some.ANSWERED)
    frames = data.draw(some.cuts(stream))
    assert accumulate(decoded(frames, some.ANSWERED, False)) == response


@few
@given(some.responses(), st.data(), st.sampled_from([b"\r\n", b"\r"]))
def test_a_stream_is_read_with_every_line_end(response: pb.GenerateResponse, data: st.DataObject, end: bytes) -> None:
    stream = encoded([replay(response)], some.ANSWERED).replace(b"\n", end)
    frames = data.draw(some.cuts(stream))
    assert accumulate(decoded(frames, some.ANSWERED, False)) == response


@few
@given(some.responses(), st.data())
def test_a_passed_stream_is_the_providers_to_the_byte_however_it_is_cut(
    response: pb.GenerateResponse, data: st.DataObject
) -> None:
    stream = encoded([replay(response)], some.ANSWERED)
    messages = decoded(data.draw(some.cuts(stream)), some.ANSWERED, True)
    assert b"".join(message.source_frames for message in messages) == stream
    kinds = [event.WhichOneof("kind") for message in messages for event in message.events]
    assert kinds == ["started", *["finished"] * len(response.candidates), "usage"]
    assert encoded(messages, some.ANSWERED) == stream


def sprinkled(value: object, draw: st.DataObject) -> object:
    """The document with fields that nobody knows, at every level."""
    if isinstance(value, list):
        return [sprinkled(item, draw) for item in value]
    if isinstance(value, dict):
        return {name: sprinkled(item, draw) for name, item in value.items()} | draw.draw(some.additions)
    return value


@few
@given(some.requests, st.data())
def test_what_nobody_knows_reaches_a_provider_of_the_same_format(
    request: pb.GenerateRequest, data: st.DataObject
) -> None:
    fields = msgspec.json.decode(CHAT.encode_request(request, "m", True).body)
    for kept in (
        "metadata",
        "logit_bias",
        "parameters",
    ):  # maps, where an addition is no unknown field; our own container
        fields.pop(kept, None)
    body = msgspec.json.encode(sprinkled(fields, data))
    canonical = CHAT.decode_request(body, {"openai-beta": "x"}).canonical
    upstream = CHAT.encode_request(canonical, "theirs", True)
    before, after = (msgspec.json.decode(document, type=dict[str, msgspec.Raw]) for document in (body, upstream.body))
    assert after.pop("model") == msgspec.Raw(b'"theirs"')
    assert {name: bytes(raw) for name, raw in after.items()} == {
        name: bytes(raw) for name, raw in before.items() if name != "model"
    }
    assert upstream.headers == {"openai-beta": "x"}
    assert canonical.source.unknown_field_count == sum(
        name.startswith("x_") for name, raw in before.items() if raw != NULL
    )


@few
@given(some.responses(), st.data(), st.sampled_from(["m", "theirs"]))
def test_what_nobody_knows_reaches_the_caller_of_the_same_format(
    response: pb.GenerateResponse, data: st.DataObject, theirs: str
) -> None:
    fields = msgspec.json.decode(CHAT.encode_response(response, some.ANSWERED)) | {"model": theirs}
    body = msgspec.json.encode(sprinkled(fields, data))
    passed = CHAT.decode_response(body, some.ANSWERED, True)
    answer = CHAT.encode_response(passed, some.ANSWERED)
    if theirs == "m":
        assert answer == body
    before, after = (msgspec.json.decode(document, type=dict[str, msgspec.Raw]) for document in (body, answer))
    assert bytes(after.pop("model")) == b'"m"'
    assert {name: bytes(raw) for name, raw in after.items()} == {
        name: bytes(raw) for name, raw in before.items() if name != "model"
    }
    assert passed.usage == response.usage


@few
@given(some.responses(), st.data(), st.sampled_from(["m", "theirs"]))
def test_what_nobody_knows_reaches_the_caller_of_a_stream(
    response: pb.GenerateResponse, data: st.DataObject, theirs: str
) -> None:
    events = encoded([replay(response)], some.ANSWERED).split(b"\n\n")[:-2]
    chunks = [sprinkled(msgspec.json.decode(event[6:]) | {"model": theirs}, data) for event in events]
    stream = b"".join(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
    messages = decoded(data.draw(some.cuts(stream)), some.ANSWERED, True)
    passed = b"".join(message.source_frames for message in messages).split(b"\n\n")
    assert [msgspec.json.decode(event[6:]) for event in passed[:-2]] == [chunk | {"model": "m"} for chunk in chunks]
    assert passed[-2:] == [b"data: [DONE]", b""]
