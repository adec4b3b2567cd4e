"""Backpressure: a provider is read no faster than the caller reads, for every face and format."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import grpc
import pytest
import pytest_asyncio
from aiohttp import web

from tests.support.gateways import KEY, channel, running
from tests.support.serving import serving
from umg_grpc.v1 import pb, rpc

CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
MAX_BYTES = 64 * 2**20
"""Bytes that all buffers on the way may hold: those of three sockets, and the data of one read."""


def chunk(text: str) -> bytes:
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    return b"data: " + json.dumps({**CHUNK, "choices": [choice]}).encode() + b"\n\n"


@dataclass
class Flood:
    url: str = ""
    sent: int = 0
    began: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        data = chunk("x" * 65536)
        while True:
            await response.write(data)
            self.sent += len(data)
            self.began.set()


@pytest_asyncio.fixture
async def flood() -> AsyncIterator[Flood]:
    flood, app = Flood(), web.Application()
    app.router.add_post("/v1/chat/completions", flood.answer)
    async with serving(app, handler_cancellation=True, shutdown_timeout=0) as url:
        flood.url = f"{url}/v1"
        yield flood


async def provider_paused(flood: Flood, http: str) -> None:
    """Wait until the provider can send no more, while the gateway answers several other calls."""
    await flood.began.wait()
    sent = -1
    async with aiohttp.ClientSession() as session:
        while sent != flood.sent:
            assert flood.sent < MAX_BYTES
            sent = flood.sent
            for _ in range(50):
                async with session.get(f"{http}/healthz") as answer:
                    assert answer.status == 200


@dataclass(frozen=True)
class RequestCase:
    id: str
    path: str
    body: dict[str, object]


MESSAGES = [{"role": "user", "content": "hi"}]
REQUEST_CASES = [
    RequestCase("passed on", "/v1/chat/completions", {"model": "m", "messages": MESSAGES, "stream": True}),
    RequestCase("translated", "/v1/messages", {"model": "m", "messages": MESSAGES, "max_tokens": 9, "stream": True}),
]


@pytest.mark.parametrize("case", REQUEST_CASES, ids=lambda case: case.id)
async def test_an_http_caller_that_does_not_read_slows_the_provider(
    case: RequestCase, flood: Flood, tmp_path: Path
) -> None:
    config = "channels:\n" + channel("flood", "chat", flood.url, "m")
    async with running(config, tmp_path) as gateway:
        host, port = gateway.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        reader._transport.pause_reading()
        data = json.dumps(case.body).encode()
        head = f"POST {case.path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-length: {len(data)}\r\n\r\n"
        writer.write(head.encode() + data)
        await provider_paused(flood, gateway.url)
        writer.transport.abort()
        await asyncio.sleep(0)  # in which the connection is closed


async def test_a_grpc_caller_that_does_not_read_slows_the_provider(flood: Flood, tmp_path: Path) -> None:
    config = "channels:\n" + channel("flood", "chat", flood.url, "m")
    async with running(config, tmp_path) as gateway, grpc.aio.insecure_channel(gateway.grpc) as grpc_channel:
        part = pb.Part(text=pb.TextPart(text="hi"))
        request = pb.GenerateRequest(model="m", messages=[pb.Message(role=pb.ROLE_USER, parts=[part])])
        call = rpc.GenerationServiceStub(grpc_channel).StreamGenerate(
            pb.StreamGenerateRequest(request=request), metadata=(("authorization", f"Bearer {KEY}"),)
        )
        await call.read()
        await provider_paused(flood, gateway.url)
        call.cancel()
