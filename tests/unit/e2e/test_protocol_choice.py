"""The protocol of a channel in which a call is sent: one whose vendor accepts the call."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web

from tests.support.gateways import running
from tests.support.providers.server import FakeProvider, ReceivedRequest, serve_provider
from umg_grpc.config import parse
from umg_grpc.store import open_store
from umg_grpc.store.usage_record_table import UsageRecords

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
CALL = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}", "id": "fc_1"}
REFUSAL = (
    "Function tools with reasoning_effort are not supported for gpt-6-sol in /v1/chat/completions. To use function "
    "tools, use /v1/responses or set reasoning_effort to 'none'."
)


class Vendor(FakeProvider):
    """Vendor with two formats, which refuses functions in chat unless the effort is `none`."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        body = received.json
        if received.path == "/v1/responses":
            usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
            answer = {
                "id": "resp_1",
                "object": "response",
                "created_at": 1,
                "model": body["model"],
                "status": "completed",
            }
            return web.json_response(answer | {"output": [CALL], "usage": usage})
        if body.get("tools") and body.get("reasoning_effort") != "none":
            error = {"message": REFUSAL, "type": "invalid_request_error", "param": "reasoning_effort", "code": None}
            return web.json_response({"error": error}, status=400)
        choice = {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        answer = {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"]}
        return web.json_response(answer | {"choices": [choice], "usage": usage})


@dataclass(frozen=True)
class Case:
    """A call of chat, the path of its provider, and the protocol that the route names."""

    id: str
    fields: dict[str, Any]
    path: str
    protocol: str = ""
    model: str = "gpt-6-sol"


NO_FUNCTIONS = "responses (the model has no functions while it reasons in chat)"
CASES = [
    Case("no functions", {}, "/v1/chat/completions"),
    Case("functions", {"tools": [TOOL]}, "/v1/responses", NO_FUNCTIONS),
    Case("functions without reasoning", {"tools": [TOOL], "reasoning_effort": "none"}, "/v1/chat/completions"),
    Case("an older model", {"tools": [TOOL]}, "/v1/responses", NO_FUNCTIONS, model="gpt-5.6-terra"),
    Case("a model newer than the table", {"tools": [TOOL]}, "/v1/responses", "responses (the model has no functions in chat)", model="gpt-6.3-sol"),
    Case("no chat at all", {}, "/v1/responses", "responses (the model has no chat)", model="gpt-5.3-codex"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_call_of_chat_takes_the_protocol_that_serves_it(case: Case, tmp_path: Path) -> None:
    async with serve_provider(Vendor()) as vendor:
        text = f"channels:\n- {{name: main, protocols: [responses, chat], base_url: {vendor.url}/v1, api_key: k, models: ['gpt-*']}}\n"
        async with (
            running(parse(text, "umg.yaml", {}), tmp_path) as gateway,
            ClientSession(headers=gateway.headers) as session,
        ):
            body = {"model": case.model, "messages": [{"role": "user", "content": "Hi"}], **case.fields}
            async with session.post(f"{gateway.url}/v1/chat/completions", json=body) as response:
                answer, headers = await response.json(), response.headers
            assert response.status == 200, answer
            assert vendor.received[-1].path == case.path
            if case.path == "/v1/responses":
                assert [call["function"]["name"] for call in answer["choices"][0]["message"]["tool_calls"]] == ["look"]
            _, _, protocol = headers["x-umg-route"].partition("; protocol=")
            assert protocol == case.protocol
    assert await recorded(tmp_path, headers["x-request-id"]) == case.protocol


async def recorded(data: Path, request_id: str) -> str:
    store = await open_store("sqlite", data)
    try:
        [record] = await UsageRecords(store).find(request_id)
    finally:
        await store.aclose()
    assert record.details is not None
    [attempt] = record.details.attempts
    return attempt.protocol
