"""Laws of this format; `tests/unit/wire/test_laws.py` has those of all formats."""

import msgspec
import pytest
from hypothesis import given, settings
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

from tests.unit.wire.laws import modest
from tests.unit.wire.responses import strategies as some
from tests.unit.wire.responses.streams import encoded, payloads_of
from umg_grpc.v1 import pb
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.responses import RESPONSES_FORMAT


@modest
@given(some.responses())
def test_a_stream_ends_with_the_unstreamed_response(response: pb.GenerateResponse) -> None:
    payloads = payloads_of(encoded([response_to_events(response)], some.ANSWERED))
    assert payloads[-1]["response"] == msgspec.json.decode(RESPONSES_FORMAT.encode_response(response, some.ANSWERED))


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
