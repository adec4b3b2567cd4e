"""Requests, answers and streams come back as they went."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

from tests.wire.responses import strategies as some
from tests.wire.responses.streams import decoded, encoded, told, whole
from umg_grpc.v1 import pb
from umg_grpc.wire.replay import replay
from umg_grpc.wire.responses import RESPONSES

modest = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

few = settings(modest, max_examples=25)


@modest
@given(some.requests)
def test_a_request_survives_the_wire_and_back(request: pb.GenerateRequest) -> None:
    upstream = RESPONSES.encode_request(request, request.model or "m", False)
    came, stream = RESPONSES.decode_request(upstream.body, {})
    came.ClearField("source")
    request.model = request.model or "m"
    assert came == request
    assert not upstream.report.dropped
    assert not stream


@modest
@given(some.responses())
def test_an_answer_survives_the_wire_and_back(response: pb.GenerateResponse) -> None:
    body = RESPONSES.encode_response(response, some.ANSWERED)
    assert RESPONSES.decode_response(body, some.ANSWERED, False) == response


@modest
@given(some.responses(), st.data())
def test_a_stream_survives_the_wire_and_back_however_it_is_cut(
    response: pb.GenerateResponse, data: st.DataObject
) -> None:
    stream = encoded([replay(response)], some.ANSWERED)
    assert whole(decoded(data.draw(some.cuts(stream)), some.ANSWERED)) == response


@few
@given(some.responses(), st.data(), st.sampled_from([b"\r\n", b"\r"]))
def test_a_stream_is_read_with_every_line_end(response: pb.GenerateResponse, data: st.DataObject, end: bytes) -> None:
    stream = encoded([replay(response)], some.ANSWERED).replace(b"\n", end)
    assert whole(decoded(data.draw(some.cuts(stream)), some.ANSWERED)) == response


@modest
@given(some.responses())
def test_a_stream_ends_with_the_response_that_is_given_unstreamed(response: pb.GenerateResponse) -> None:
    payloads = told(encoded([replay(response)], some.ANSWERED))
    assert payloads[-1]["response"] == msgspec.json.decode(RESPONSES.encode_response(response, some.ANSWERED))


@few
@given(some.responses(), st.data())
def test_a_passed_stream_is_the_providers_to_the_byte_however_it_is_cut(
    response: pb.GenerateResponse, data: st.DataObject
) -> None:
    stream = encoded([replay(response)], some.ANSWERED)
    messages = decoded(data.draw(some.cuts(stream)), some.ANSWERED, pass_=True)
    assert b"".join(message.source_frames for message in messages) == stream
    events = [event for message in messages for event in message.events]
    assert [event.WhichOneof("kind") for event in events] == ["started", "usage", "finished"]
    assert events[0].started.response_id == response.response_id
    assert events[1].usage == response.usage
    assert events[2].finished.finish_reason == response.candidates[0].finish_reason
    assert encoded(messages, some.ANSWERED) == stream


def sprinkled(value: object, draw: st.DataObject) -> object:
    """The document with fields that nobody knows, at every level."""
    if isinstance(value, list):
        return [sprinkled(item, draw) for item in value]
    if isinstance(value, dict):
        return {name: sprinkled(item, draw) for name, item in value.items()} | draw.draw(some.additions)
    return value


def members(document: bytes) -> dict[str, bytes]:
    return {name: bytes(raw) for name, raw in msgspec.json.decode(document, type=dict[str, msgspec.Raw]).items()}


@few
@given(some.requests, st.data())
def test_what_nobody_knows_reaches_a_provider_of_the_same_format(
    request: pb.GenerateRequest, data: st.DataObject
) -> None:
    fields = msgspec.json.decode(RESPONSES.encode_request(request, "m", True).body)
    fields.pop("metadata", None)  # a map, where an addition is no unknown field
    body = msgspec.json.encode(sprinkled(fields, data))
    canonical = RESPONSES.decode_request(body, {"openai-beta": "x"}).canonical
    upstream = RESPONSES.encode_request(canonical, "theirs", True)
    assert members(upstream.body) == members(body) | {"model": b'"theirs"'}
    assert list(members(upstream.body)) == list(members(body))
    assert upstream.headers == {"openai-beta": "x"}
    assert not upstream.report.header()
    assert canonical.source.unknown_field_count == sum(
        name.startswith("x_") for name, value in (fields | members(body)).items() if value not in (None, b"null")
    )


@few
@given(some.responses(), st.data(), st.sampled_from(["m", "theirs"]))
def test_what_nobody_knows_reaches_the_caller_of_the_same_format(
    response: pb.GenerateResponse, data: st.DataObject, theirs: str
) -> None:
    fields = msgspec.json.decode(RESPONSES.encode_response(response, some.ANSWERED)) | {"model": theirs}
    body = msgspec.json.encode(sprinkled(fields, data))
    passed = RESPONSES.decode_response(body, some.ANSWERED, True)
    answer = RESPONSES.encode_response(passed, some.ANSWERED)
    if theirs == "m":
        assert answer == body
    assert members(answer) == members(body) | {"model": b'"m"'}
    assert passed.usage == response.usage
    assert passed.candidates[0].finish_reason == response.candidates[0].finish_reason


@few
@given(some.responses(), st.data(), st.sampled_from(["m", "theirs"]))
def test_what_nobody_knows_reaches_the_caller_of_a_stream(
    response: pb.GenerateResponse, data: st.DataObject, theirs: str
) -> None:
    payloads = told(encoded([replay(response)], some.ANSWERED))
    for payload in payloads:
        if isinstance(inner := payload.get("response"), dict):
            inner["model"] = theirs
    sent = [sprinkled(payload, data) for payload in payloads]
    stream = b"".join(
        f"event: {payload['type']}\ndata: ".encode() + msgspec.json.encode(more) + b"\n\n"
        for payload, more in zip(payloads, sent, strict=True)
    )
    messages = decoded(data.draw(some.cuts(stream)), some.ANSWERED, pass_=True)
    expected = [more | {"response": more["response"] | {"model": "m"}} if "response" in more else more for more in sent]
    passed = b"".join(message.source_frames for message in messages)
    assert told(passed) == expected


@modest
@given(some.responses(), some.requests)
def test_an_answer_has_every_field_of_the_official_types(
    response: pb.GenerateResponse, request: pb.GenerateRequest
) -> None:
    body = msgspec.json.decode(RESPONSES.encode_response(response, request))
    assert set(Response.model_fields) <= set(body)
    Response.model_validate(without_unknown(body), strict=True)


def without_unknown(body: dict[str, object]) -> dict[str, object]:
    """Without tools that the strategies invent: the official types know every type of tool."""
    body["tools"] = [tool for tool in body["tools"] if not tool["type"].startswith("x_")]
    return body


scarce = settings(modest, max_examples=15)  # the official unions are slow
PARAMS = TypeAdapter(ResponseCreateParamsNonStreaming)


@pytest.mark.parametrize("store", [True, False])
@scarce
@given(some.requests)
def test_a_request_is_what_the_official_types_allow(store: bool, request: pb.GenerateRequest) -> None:
    request.store = store
    body = msgspec.json.decode(RESPONSES.encode_request(request, "m", False).body)
    body["input"] = [item for item in body["input"] if not item["type"].startswith("x_")]
    for item in body["input"]:
        for name in ("content", "output"):
            if isinstance(parts := item.get(name), list):
                item[name] = [part for part in parts if not part["type"].startswith(("x_", "input_audio"))]
    if "tools" in body:
        without_unknown(body)
    PARAMS.validate_python(body)
