"""Compaction by a provider of responses itself: its requests and responses pass unchanged, and after its refusal the
model writes the summary.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
import pytest_asyncio
from aiohttp import web

from tests.support.callers.http_caller import HttpAnswer, HttpCaller
from tests.support.gateways import Running, channel, running
from tests.support.providers.scripted import scripted, succeed
from tests.support.providers.server import ReceivedRequest, RecordingProvider, Written, serve_provider
from umg_grpc.service.operations.generate.conversation_compaction import COMPACTION_REQUEST
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.core.sealed_summaries import SEALED_PREFIX, summary_text

Json = dict[str, Any]
ITEM = {"type": "compaction", "id": "cmp_1", "encrypted_content": "c2VhbGVkIGJ5IHRoZSB2ZW5kb3I="}
TRIGGERED = [{"role": "user", "content": "Hi"}, {"type": "compaction_trigger"}]
USAGE = {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}
SUMMARY = "The user greets."


def compact(received: ReceivedRequest) -> Written:
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    if received.path.endswith("/compact"):
        return {"id": "resp_1", "object": "response.compaction", "created_at": 1, "output": [ITEM], "usage": USAGE}
    whole = head | {"output": [ITEM], "usage": USAGE}
    if not received.json.get("stream"):
        return whole
    events = [
        {"type": "response.created", "response": head | {"status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": ITEM},
        {"type": "response.output_item.done", "output_index": 0, "item": ITEM},
        {"type": "response.completed", "response": whole},
    ]
    numbered = [each | {"sequence_number": number} for number, each in enumerate(events)]
    return b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in numbered)


def refuse(received: ReceivedRequest) -> Written:
    """Answer as a provider without compaction."""
    items = received.json["input"]
    if received.path.endswith("/compact") or items[-1].get("type") == "compaction_trigger":
        error = {"message": "Unknown item type.", "type": "invalid_request_error", "param": "input", "code": None}
        return web.json_response({"error": error}, status=404 if received.path.endswith("/compact") else 400)
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    output = [message | {"content": [{"type": "output_text", "text": SUMMARY, "annotations": []}]}]
    head = {"id": "resp_2", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    return head | {"output": output, "usage": USAGE}


@dataclass
class Served:
    """Gateway with a channel to a provider of responses that is configured to compact conversations."""

    caller: HttpCaller
    gateway: Running
    provider: RecordingProvider

    async def triggered(self, **fields: Any) -> HttpAnswer:
        return await self.caller.send("responses", "m", {"model": "m", "input": TRIGGERED, **fields})

    async def compacted(self) -> Json:
        """Return the response to a call of its own."""
        headers = {"authorization": f"Bearer {self.caller.key}"}
        body = {"model": "m", "input": TRIGGERED[:1]}
        async with self.caller.session.post(
            f"{self.caller.url}/v1/responses/compact", json=body, headers=headers
        ) as response:
            assert response.status == 200
            answer: Json = await response.json()
            return answer


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncGenerator[Served, None]:
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(serve_provider(RecordingProvider(respond=compact)))
        config = "channels:\n" + channel("p", "responses", f"{provider.url}/v1", "m", "gpt-6")
        gateway = await stack.enter_async_context(running(f"{config}    quirks: {{compaction: true}}\n", tmp_path))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Served(HttpCaller(session, gateway.url, gateway.key), gateway, provider)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_trigger_passes_to_a_provider_that_compacts(served: Served, stream: bool) -> None:
    answer = await served.triggered(stream=stream)
    assert answer.json["output"] == [ITEM]
    assert served.provider.last["input"] == TRIGGERED
    later = await served.caller.send("responses", "m", {"model": "m", "input": [ITEM, TRIGGERED[0]]})
    assert later.status == 200
    assert served.provider.last["input"] == [ITEM, TRIGGERED[0]]


async def test_a_threshold_passes_to_a_provider_that_compacts(served: Served) -> None:
    sent = {"context_management": [{"type": "compaction", "compact_threshold": 1000}]}
    body = {"model": "m", "input": [{"role": "user", "content": "1 2 3 4 5 " * 1000}], **sent}
    answer = await served.caller.send("responses", "m", body)
    assert answer.json["output"] == [ITEM]
    (received,) = served.provider.bodies
    assert (received["context_management"], received["input"]) == (sent["context_management"], body["input"])


async def test_a_call_of_its_own_passes_to_the_same_path(served: Served) -> None:
    answer = await served.compacted()
    assert (answer["object"], answer["output"], answer["usage"]) == ("response.compaction", [ITEM], USAGE)
    assert "status" not in answer
    received = served.provider.received[-1]
    assert (received.path, received.json["model"], received.json["input"]) == (
        "/v1/responses/compact",
        "gpt-6",
        TRIGGERED[:1],
    )


async def test_after_a_refusal_the_model_writes_the_summary(served: Served) -> None:
    served.provider.respond = refuse
    answer = await served.triggered()
    (item,) = answer.json["output"]
    assert item["encrypted_content"].startswith(SEALED_PREFIX)
    assert [body["input"][-1].get("type") for body in served.provider.bodies] == ["compaction_trigger", "message"]
    assert COMPACTION_REQUEST in json.dumps(served.provider.last)
    assert (await served.compacted())["output"][-1]["type"] == "compaction"


async def test_a_sealed_summary_reaches_a_provider_that_compacts_as_a_text(served: Served) -> None:
    served.provider.respond = refuse
    (item,) = (await served.triggered()).json["output"]
    await served.caller.send("responses", "m", {"model": "m", "input": [item, TRIGGERED[0]]})
    first, second = served.provider.last["input"]
    assert first["content"] == [{"type": "input_text", "text": summary_text(SUMMARY)}]
    assert second["content"] == [{"type": "input_text", "text": "Hi"}]


async def test_a_caller_over_grpc_gets_and_returns_a_sealed_summary(served: Served) -> None:
    served.provider.respond = refuse
    turn = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="Hi"))])
    metadata = [("authorization", f"Bearer {served.gateway.key}")]
    async with grpc.aio.insecure_channel(served.gateway.grpc) as grpc_channel:
        stub: rpc.GenerationServiceAsyncStub = rpc.GenerationServiceStub(grpc_channel)  # type: ignore[assignment]
        request = pb.GenerateRequest(model="m", messages=[turn], compaction=pb.CompactionRequest())
        first = await stub.Generate(request, metadata=metadata)
        (part,) = first.candidates[0].message.parts
        assert part.compaction.encrypted_content.startswith(SEALED_PREFIX)
        earlier = pb.Message(role=pb.ROLE_USER, parts=[part])
        counted = await stub.CountTokens(
            pb.CountTokensRequest(request=pb.GenerateRequest(model="m", messages=[earlier, turn])), metadata=metadata
        )
        await stub.Generate(pb.GenerateRequest(model="m", messages=[earlier, turn]), metadata=metadata)
    assert counted.input_tokens > 20  # with the text of the summary
    assert summary_text(SUMMARY) in json.loads(json.dumps(served.provider.last))["input"][0]["content"][0]["text"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_another_channel_writes_the_summary_where_the_compacting_one_fails(tmp_path: Path, stream: bool) -> None:
    async with AsyncExitStack() as stack:
        failing = await stack.enter_async_context(
            serve_provider(RecordingProvider(respond=lambda _: web.json_response({"error": {}}, status=500)))
        )
        writing = await stack.enter_async_context(scripted(SUMMARY, succeed))
        config = (
            f"channels:\n{channel('first', 'responses', f'{failing.url}/v1', 'm')}    quirks: {{compaction: true}}\n"
            f"{channel('second', 'chat', writing.base_url, 'm')}    priority: 1\n"
        )
        gateway = await stack.enter_async_context(running(config, tmp_path))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        caller = HttpCaller(session, gateway.url, gateway.key)
        answer = await caller.send("responses", "m", {"model": "m", "input": TRIGGERED, "stream": stream})
    (item,) = answer.json["output"]
    assert item["encrypted_content"].startswith(SEALED_PREFIX)
    assert COMPACTION_REQUEST in json.dumps(writing.calls[-1].body)
