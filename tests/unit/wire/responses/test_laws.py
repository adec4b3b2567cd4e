"""Laws of this format; `tests/unit/wire/test_laws.py` has those of all formats."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

from tests.unit.wire.laws import cuts, few, members, modest, sprinkled
from tests.unit.wire.responses import strategies as some
from tests.unit.wire.responses.streams import decoded, encoded, payloads_of
from tests.unit.wire.streams import frames_of
from umg_grpc.v1 import pb
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.responses import RESPONSES_FORMAT


@modest
@given(some.responses())
def test_a_stream_ends_with_the_unstreamed_response(response: pb.GenerateResponse) -> None:
    payloads = payloads_of(encoded([response_to_events(response)], some.ANSWERED))
    assert payloads[-1]["response"] == msgspec.json.decode(RESPONSES_FORMAT.encode_response(response, some.ANSWERED))


@few
@given(some.requests, st.data())
def test_unknown_fields_reach_a_provider_of_the_same_format(request: pb.GenerateRequest, data: st.DataObject) -> None:
    fields = msgspec.json.decode(RESPONSES_FORMAT.encode_request(request, "m", True).body)
    fields.pop("metadata", None)  # a map, where an addition is no unknown field
    body = msgspec.json.encode(sprinkled(fields, data))
    canonical, _, notes = RESPONSES_FORMAT.decode_request(body, {"openai-beta": "x"})
    upstream = RESPONSES_FORMAT.encode_request(canonical, "theirs", True, notes=notes)
    assert members(upstream.body) == members(body) | {"model": b'"theirs"'}
    assert list(members(upstream.body)) == list(members(body))
    assert upstream.headers == {"openai-beta": "x"}
    assert not upstream.report.header()
    assert sorted(notes.indispensable) == sorted(
        name for name, value in members(body).items() if name.startswith("x_") and value != b"null"
    )


@few
@given(some.responses(), st.data(), st.sampled_from(["m", "theirs"]))
def test_unknown_fields_of_a_response_reach_a_caller_of_the_same_format(
    response: pb.GenerateResponse, data: st.DataObject, theirs: str
) -> None:
    fields = msgspec.json.decode(RESPONSES_FORMAT.encode_response(response, some.ANSWERED)) | {"model": theirs}
    body = msgspec.json.encode(sprinkled(fields, data))
    passed = RESPONSES_FORMAT.decode_response(body, some.ANSWERED, True)
    answer = RESPONSES_FORMAT.encode_response(passed, some.ANSWERED)
    if theirs == "m":
        assert answer == body
    assert members(answer) == members(body) | {"model": b'"m"'}
    assert passed.usage == response.usage
    assert passed.candidates[0].finish_reason == response.candidates[0].finish_reason


@few
@given(some.responses(), st.data(), st.sampled_from(["m", "theirs"]))
def test_unknown_fields_of_a_stream_reach_a_caller_of_the_same_format(
    response: pb.GenerateResponse, data: st.DataObject, theirs: str
) -> None:
    payloads = payloads_of(encoded([response_to_events(response)], some.ANSWERED))
    for payload in payloads:
        if isinstance(inner := payload.get("response"), dict):
            inner["model"] = theirs
    sent = sprinkled(payloads, data)
    stream = b"".join(
        f"event: {payload['type']}\ndata: ".encode() + msgspec.json.encode(more) + b"\n\n"
        for payload, more in zip(payloads, sent, strict=True)
    )
    messages = decoded(data.draw(cuts(stream)), some.ANSWERED, pass_=True)
    expected = [more | {"response": more["response"] | {"model": "m"}} if "response" in more else more for more in sent]
    passed = frames_of(messages)
    assert payloads_of(passed) == expected


@modest
@given(some.responses(), some.requests)
def test_an_answer_has_every_field_of_the_official_types(
    response: pb.GenerateResponse, request: pb.GenerateRequest
) -> None:
    body = msgspec.json.decode(RESPONSES_FORMAT.encode_response(response, request))
    assert set(Response.model_fields) <= set(body)
    Response.model_validate(without_unknown(body), strict=True)


def without_unknown(body: dict[str, object]) -> dict[str, object]:
    """Remove the tools of invented types: the official union of tools is closed."""
    body["tools"] = [tool for tool in body["tools"] if not tool["type"].startswith("x_")]
    return body


scarce = settings(modest, max_examples=15)  # the official unions are slow
PARAMS = TypeAdapter(ResponseCreateParamsNonStreaming)


@pytest.mark.parametrize("store", [True, False])
@scarce
@given(some.requests)
def test_the_official_types_allow_every_request(store: bool, request: pb.GenerateRequest) -> None:
    request.store = store
    body = msgspec.json.decode(RESPONSES_FORMAT.encode_request(request, "m", False).body)
    body["input"] = [item for item in body["input"] if not item["type"].startswith("x_")]
    for item in body["input"]:
        for name in ("content", "output"):
            if isinstance(parts := item.get(name), list):
                item[name] = [part for part in parts if not part["type"].startswith(("x_", "input_audio"))]
    if "tools" in body:
        without_unknown(body)
    PARAMS.validate_python(body)
