"""Requests, answers and streams come back as they went."""

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.wire.accumulate import accumulate
from tests.wire.native import strategies as some
from umg_grpc.v1 import pb
from umg_grpc.wire.native import NATIVE
from umg_grpc.wire.replay import replay

modest = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
few = settings(modest, max_examples=30)


def decoded(frames: list[bytes], request: pb.GenerateRequest, pass_: bool) -> list[pb.StreamGenerateResponse]:
    decoder = NATIVE.stream_decoder(request, pass_)
    messages = [message for data in frames if (message := decoder.feed(data)) is not None]
    last = decoder.close()
    return [*messages, last] if last is not None else messages


def encoded(messages: list[pb.StreamGenerateResponse], request: pb.GenerateRequest) -> bytes:
    encoder = NATIVE.stream_encoder(request)
    return b"".join([*(encoder.feed(message) for message in messages), encoder.close()])


def streamed(response: pb.GenerateResponse) -> pb.GenerateResponse:
    """What the events of `accumulate` can tell of an answer."""
    told = pb.GenerateResponse()
    told.CopyFrom(response)
    for candidate in told.candidates:
        for field in ("finish_message", "safety_ratings", "grounding_json"):
            candidate.ClearField(field)
    return told


@modest
@given(some.requests)
def test_a_request_survives_the_wire_and_back(request: pb.GenerateRequest) -> None:
    upstream = NATIVE.encode_request(request, "m", False)
    came, stream = NATIVE.decode_request(upstream.body, {})
    came.ClearField("source")
    assert came == request
    assert not upstream.report.lost
    assert not stream


@modest
@given(some.responses())
def test_an_answer_survives_the_wire_and_back(response: pb.GenerateResponse) -> None:
    body = NATIVE.encode_response(response, some.ANSWERED)
    assert NATIVE.decode_response(body, some.ANSWERED, False) == response


@modest
@given(some.responses(), st.data())
def test_a_stream_survives_the_wire_and_back_however_it_is_cut(
    response: pb.GenerateResponse, data: st.DataObject
) -> None:
    stream = encoded([replay(response)], some.ANSWERED)
    messages = decoded(data.draw(some.cuts(stream)), some.ANSWERED, False)
    assert accumulate(messages) == streamed(response)
    finished = [event.finished for message in messages for event in message.events if event.HasField("finished")]
    assert [(end.finish_message, list(end.safety_ratings)) for end in finished] == [
        (candidate.finish_message, list(candidate.safety_ratings)) for candidate in response.candidates
    ]


@few
@given(some.responses(), st.data(), st.sampled_from([b"\r\n", b"\r"]))
def test_a_stream_is_read_with_every_line_end(response: pb.GenerateResponse, data: st.DataObject, end: bytes) -> None:
    stream = encoded([replay(response)], some.ANSWERED).replace(b"\n", end)
    frames = data.draw(some.cuts(stream))
    assert accumulate(decoded(frames, some.ANSWERED, False)) == streamed(response)


@few
@given(some.responses(), st.data(), st.sampled_from([b"\n", b"\r\n"]))
def test_a_passed_stream_is_the_providers_to_the_byte_however_it_is_cut(
    response: pb.GenerateResponse, data: st.DataObject, end: bytes
) -> None:
    stream = encoded([replay(response)], some.ANSWERED).replace(b"\n", end)
    messages = decoded(data.draw(some.cuts(stream)), some.ANSWERED, True)
    assert b"".join(message.source_frames for message in messages) == stream
    events = [event for message in messages for event in message.events]
    kinds = [kind for event in events if (kind := event.WhichOneof("kind")) != "usage"]
    assert kinds == ["started", *["finished"] * len(response.candidates)]
    assert [event.usage for event in events if event.HasField("usage")][-1] == response.usage
    assert [event.finished.finish_reason for event in events if event.HasField("finished")] == [
        candidate.finish_reason for candidate in response.candidates
    ]
    assert encoded(messages, some.ANSWERED) == stream


@few
@given(some.responses(), st.data(), st.booleans())
def test_an_array_holds_what_the_lines_do(response: pb.GenerateResponse, data: st.DataObject, passed: bool) -> None:
    stream = encoded([replay(response)], some.ANSWERED)
    messages = decoded(data.draw(some.cuts(stream)), some.ANSWERED, passed)
    assert NATIVE.array_encoder is not None
    encoder = NATIVE.array_encoder(some.ANSWERED)
    array = b"".join([*map(encoder.feed, messages), encoder.close()])
    lines = encoded(messages, some.ANSWERED).split(b"\n\n")[:-1]
    assert array == b"[" + b",\r\n".join(line.removeprefix(b"data: ") for line in lines) + b"]"
    assert encoder.close() == b""


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
    fields = msgspec.json.decode(NATIVE.encode_request(request, "m", True).body)
    labels = fields.pop("labels", None)  # a map, where an addition is no unknown field
    body = msgspec.json.encode(sprinkled(fields, data) | ({"labels": labels} if labels else {}))
    canonical = NATIVE.decode_request(body, {}).canonical
    upstream = NATIVE.encode_request(canonical, "theirs", True)
    assert upstream.body == body
    assert upstream.path == "/models/theirs:streamGenerateContent?alt=sse"
    assert canonical.source.unknown_field_count >= sum(
        name.startswith("x_") for name, value in msgspec.json.decode(body).items() if value is not None
    )


@few
@given(some.responses(), st.data(), st.sampled_from(["m", "theirs"]))
def test_what_nobody_knows_reaches_the_caller_of_the_same_format(
    response: pb.GenerateResponse, data: st.DataObject, theirs: str
) -> None:
    fields = msgspec.json.decode(NATIVE.encode_response(response, some.ANSWERED)) | {"modelVersion": theirs}
    body = msgspec.json.encode(sprinkled(fields, data))
    passed = NATIVE.decode_response(body, some.ANSWERED, True)
    assert NATIVE.encode_response(passed, some.ANSWERED) == body.replace(b'"theirs"', b'"m"')
    assert passed.usage == response.usage
    assert [candidate.finish_reason for candidate in passed.candidates] == [
        candidate.finish_reason for candidate in response.candidates
    ]


@few
@given(some.responses(), st.data(), st.sampled_from(["m", "theirs"]))
def test_what_nobody_knows_reaches_the_caller_of_a_stream(
    response: pb.GenerateResponse, data: st.DataObject, theirs: str
) -> None:
    events = encoded([replay(response)], some.ANSWERED).split(b"\n\n")[:-1]
    chunks = [sprinkled(msgspec.json.decode(event[6:]) | {"modelVersion": theirs}, data) for event in events]
    stream = b"".join(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks)
    messages = decoded(data.draw(some.cuts(stream)), some.ANSWERED, True)
    passed = b"".join(message.source_frames for message in messages)
    assert passed == stream.replace(b'"modelVersion":"theirs"', b'"modelVersion":"m"')


SNAKE = {
    "generationConfig": "generation_config",
    "systemInstruction": "system_instruction",
    "toolConfig": "tool_config",
}


def snaked(value: object, own: bool = False) -> object:
    """The document with its keys in snake_case, numbers as text and words in lower case; what is the caller's own stays."""
    if own or isinstance(value, list):
        return [snaked(item) for item in value] if isinstance(value, list) and not own else value
    if not isinstance(value, dict):
        return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    keep = {"args", "response", "parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema", "labels"}
    keep |= {"executableCode", "codeExecutionResult"}
    spelled = {}
    for name, item in value.items():
        key = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        opaque = name.startswith("x") or name == "newTool"
        if name in ("mode", "thinkingLevel", "mediaResolution", "threshold", "category", "level") and isinstance(
            item, str
        ):
            spelled[key] = item.lower()
        else:
            spelled[name if opaque else key] = snaked(item, name in keep or opaque)
    return spelled


@modest
@given(some.requests)
def test_every_key_may_be_spelled_in_snake_case_and_the_callers_own_json_stays(request: pb.GenerateRequest) -> None:
    body = NATIVE.encode_request(request, "m", False).body
    spelled = msgspec.json.encode(snaked(msgspec.json.decode(body)))
    came, expected = (NATIVE.decode_request(document, {}).canonical for document in (spelled, body))
    for told in (came, expected):
        told.ClearField("source")
        for tool in told.tools:
            if tool.HasField("opaque"):
                tool.opaque.type = tool.opaque.json = "-"  # as the caller spelled it
    assert came == expected
