"""Bodies checked by the google-genai package's own types, which refuse every unknown field."""

import msgspec
import pytest
from google.genai import types
from hypothesis import HealthCheck, given, settings
from pydantic import BaseModel

from tests.unit.wire.native import strategies as some
from umg_grpc.v1 import pb
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.native import NATIVE_FORMAT

modest = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def known(parts: list[pb.Part]) -> bool:
    """Return whether the package supports all parts: it refuses those of an unknown kind, which only its own servers send."""
    return not any(
        part.HasField("opaque") or "new_tool" in part.server_tool_result.name or part.server_tool_call.format == "native"
        or part.server_tool_result.format == "native"
        for part in parts
    )  # fmt: skip


def without_unknown(response: pb.GenerateResponse) -> pb.GenerateResponse:
    for candidate in response.candidates:
        parts = [part for part in candidate.message.parts if known([part])]
        del candidate.message.parts[:]
        candidate.message.parts.extend(parts)
    return response


def dumped(model: BaseModel) -> dict[str, object]:
    return model.model_dump(mode="json", exclude_none=True)


@pytest.mark.filterwarnings("ignore:A_NEW_WORD is not a valid FinishReason")
@modest
@given(some.responses().map(without_unknown))
def test_an_answer_is_one_of_the_official_client(response: pb.GenerateResponse) -> None:
    body = msgspec.json.decode(NATIVE_FORMAT.encode_response(response, some.ANSWERED))
    read = types.GenerateContentResponse.model_validate(body)
    assert read.response_id == response.response_id
    assert read.usage_metadata is not None
    assert read.usage_metadata.total_token_count == response.usage.input_tokens + response.usage.output_tokens
    for candidate, candidate_sent in zip(read.candidates or [], response.candidates, strict=True):
        assert candidate.safety_ratings is not None
        assert candidate.content is not None
        texts = [part.text for part in candidate.content.parts or [] if part.text and not part.thought]
        assert texts == [part.text.text for part in candidate_sent.message.parts if part.text.text]


@pytest.mark.filterwarnings("ignore:A_NEW_WORD is not a valid FinishReason")
@modest
@given(some.responses().map(without_unknown))
def test_every_line_of_a_stream_is_an_answer_of_the_official_client(response: pb.GenerateResponse) -> None:
    encoder = NATIVE_FORMAT.stream_encoder(some.ANSWERED)
    lines = (encoder.feed(response_to_events(response)) + encoder.close()).split(b"\n\n")
    assert lines.pop() == b""
    texts = [""] * len(response.candidates)
    for line in lines:
        read = types.GenerateContentResponse.model_validate_json(line.removeprefix(b"data: "))
        assert read.usage_metadata is not None
        for candidate in read.candidates or []:
            assert candidate.content is not None
            assert candidate.content.parts
            texts[candidate.index or 0] += "".join(
                part.text or "" for part in candidate.content.parts if not part.thought
            )
    assert texts == ["".join(part.text.text for part in candidate.message.parts) for candidate in response.candidates]


PLACES: list[tuple[str, type[BaseModel]]] = [
    ("contents", types.Content),
    ("systemInstruction", types.Content),
    ("tools", types.Tool),
    ("toolConfig", types.ToolConfig),
    ("safetySettings", types.SafetySetting),
]
# Fields of the package's own config that its type of the wire format does not have.
OWN_CONFIG = {"imageConfig": types.ImageConfig, "thinkingConfig": types.ThinkingConfig}


@modest
@given(some.requests)
def test_a_request_is_one_of_the_official_client(request: pb.GenerateRequest) -> None:
    if not all(known(list(message.parts)) for message in request.messages):
        return
    if any(tool.opaque.type == "newTool" for tool in request.tools):
        return
    body = msgspec.json.decode(NATIVE_FORMAT.encode_request(request, "m", False).body)
    for name, model in PLACES:
        for value in body[name] if isinstance(body.get(name), list) else filter(None, [body.get(name)]):
            assert dumped(model.model_validate(value))
    config = body.get("generationConfig", {})
    for name, model in OWN_CONFIG.items():
        if name in config:
            model.model_validate(config.pop(name))
    types.GenerationConfig.model_validate(config)
    assert body.keys() <= {name for name, _ in PLACES} | {
        "generationConfig",
        "cachedContent",
        "labels",
        "serviceTier",
        "store",
    }
