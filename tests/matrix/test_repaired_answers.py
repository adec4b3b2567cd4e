"""Answers with a defect that clients cannot read, repaired for callers of every format, the provider's own too."""

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest
import pytest_asyncio

from tests.support.callers.http_caller import HttpAnswer
from tests.support.callers.requests import Request
from tests.support.callers.text_format_clients import FACES
from tests.support.recorded_gateway import RecordedGateway, event_stream, recorded_gateway
from umg_grpc.v1 import pb

pytestmark = pytest.mark.asyncio(loop_scope="module")

Events = list[dict[str, Any]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RecordedGateway, None]:
    async with recorded_gateway(tmp_path_factory.mktemp("repaired")) as made:
        yield made


async def call(gateway: RecordedGateway, face: str, upstream: str, answer: Any, *, stream: bool = True) -> HttpAnswer:
    """Return the caller's result for an answer of a provider of `upstream`: a body, or the bytes of a stream."""
    gateway.set_answer(answer)
    return await gateway.caller.call(face, f"m-{upstream}", Request("Hi", tools=("get_weather",)), stream=stream)


# --- the events of providers


def chunk(delta: Mapping[str, object], finish: str | None = None, **choice: object) -> dict[str, Any]:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "theirs"}
    return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish} | choice]}


CHAT_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
MESSAGE_START = {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "theirs", "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1}}}  # fmt: skip
RESPONSE = {"id": "resp_1", "object": "response", "created_at": 1, "model": "theirs", "output": []}
ITEM = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Hi there", "annotations": [], "logprobs": []}]}  # fmt: skip
WHOLE_STREAMS: dict[str, Events] = {
    "chat": [
        chunk({"role": "assistant", "content": "Hi"}),
        chunk({"content": " there"}),
        chunk({}, "stop"),
        chunk({}) | {"choices": [], "usage": CHAT_USAGE},
    ],
    "responses": [
        {"type": "response.created", "response": RESPONSE | {"status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": ITEM | {"content": []}},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hi there"},
        {"type": "response.output_item.done", "output_index": 0, "item": ITEM},
        {"type": "response.completed", "response": RESPONSE | {"status": "completed", "output": [ITEM], "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}}},
    ],
    "messages": [
        MESSAGE_START,
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi there"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ],
    "native": [
        {"candidates": [{"content": {"parts": [{"text": "Hi"}], "role": "model"}}], "modelVersion": "theirs"},
        {"candidates": [{"content": {"parts": [{"text": " there"}], "role": "model"}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}},
    ],
}  # fmt: skip


# --- events for a call without a stream


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("upstream", WHOLE_STREAMS)
async def test_events_for_a_call_without_a_stream_are_one_answer(
    gateway: RecordedGateway, face: str, upstream: str
) -> None:
    got = await call(gateway, face, upstream, event_stream(WHOLE_STREAMS[upstream]), stream=False)
    assert got.status == 200, got.body
    [candidate] = got.canonical.candidates
    assert ["".join(part.text.text for part in candidate.message.parts)] == ["Hi there"]
    assert candidate.finish_reason == pb.FINISH_REASON_STOP
    assert (got.canonical.usage.input_tokens, got.canonical.usage.output_tokens) == (10, 5)
    assert json.loads(got.body).get("model", f"m-{upstream}") == f"m-{upstream}"


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("upstream", WHOLE_STREAMS)
async def test_a_stream_that_is_cut_is_no_answer(gateway: RecordedGateway, face: str, upstream: str) -> None:
    got = await call(gateway, face, upstream, event_stream(WHOLE_STREAMS[upstream][:1]), stream=False)
    assert (got.status, got.is_error) == (502, True)
