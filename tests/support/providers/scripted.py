"""Fake provider of chat and embeddings whose answers each test scripts, call by call."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.providers.chat import frame
from tests.support.providers.server import FakeProvider, Json, ReceivedRequest, serve_provider

Script = Callable[[web.Request, "Scripted"], Awaitable[web.StreamResponse]]


@dataclass
class Call:
    key: str
    body: Json
    left: asyncio.Event = field(default_factory=asyncio.Event)  # the gateway closed the call before it was answered


@dataclass
class Scripted(FakeProvider):
    """Fake provider with scripted answers. Each call uses the next of `scripts`; the last of them serves all further
    calls.
    """

    name: str
    scripts: list[Script]
    calls: list[Call] = field(default_factory=list)
    arrived: asyncio.Queue[Call] = field(default_factory=asyncio.Queue)

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        call = Call(received.headers.get("authorization", "").removeprefix("Bearer "), received.json)
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        self.calls.append(call)
        self.arrived.put_nowait(call)
        try:
            return await script(request, self)
        except asyncio.CancelledError:
            call.left.set()
            raise


def chunk(delta: Mapping[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return frame({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})


async def succeed(request: web.Request, provider: Scripted) -> web.StreamResponse:
    """Script of a right answer, which contains the provider's name."""
    body = provider.calls[-1].body
    if "input" in body:
        data = [{"object": "embedding", "index": 0, "embedding": [1.0, 2.0]}]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return web.json_response({"object": "list", "data": data, "model": "m", "usage": usage})
    if not body.get("stream"):
        message = {"role": "assistant", "content": provider.name}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        head = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
        usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
        return web.json_response(head | {"choices": [choice], "usage": usage})
    response = await start_stream(request)
    for delta in ({"role": "assistant", "content": ""}, {"content": provider.name}):
        await response.write(chunk(delta))
    await response.write(chunk({}, "stop") + b"data: [DONE]\n\n")
    return response


async def start_stream(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    return response


def status(code: int, error: Mapping[str, object] | None = None, **headers: str) -> Script:
    """Return the script that answers with an error of this status."""

    async def script(request: web.Request, provider: Scripted) -> web.StreamResponse:
        body = {"error": {"message": f"{provider.name} says {code}", **(error or {})}}
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.json_response(body, status=code, headers=sent)

    return script


async def stall(request: web.Request, provider: Scripted) -> web.StreamResponse:
    """Script of a call that gets no response."""
    await asyncio.Event().wait()
    raise AssertionError


def _reset_after(delta: Mapping[str, object]) -> Script:
    """Return the script of a stream whose connection is reset after its first chunk."""

    async def script(request: web.Request, provider: Scripted) -> web.StreamResponse:
        response = await start_stream(request)
        await response.write(chunk(delta))
        await asyncio.sleep(0)  # the chunk is sent before the reset
        assert request.transport is not None
        request.transport.abort()
        return response

    return script


reset_after_start = _reset_after({"role": "assistant", "content": ""})
reset_after_content = _reset_after({"role": "assistant", "content": "half"})


@asynccontextmanager
async def scripted(name: str, *scripts: Script) -> AsyncGenerator[Scripted, None]:
    async with serve_provider(Scripted(name, list(scripts) or [succeed])) as provider:
        yield provider


def waiting_for(gate: asyncio.Event, script: Script) -> Script:
    """Return the script that answers by another one, once the gate is open."""

    async def answer_late(request: web.Request, provider: Scripted) -> web.StreamResponse:
        await gate.wait()
        return await script(request, provider)

    return answer_late


def pausing(gate: asyncio.Event) -> Script:
    """Return the script of a stream that pauses after its first half, until the gate is open."""

    async def answer_in_halves(request: web.Request, provider: Scripted) -> web.StreamResponse:
        response = await start_stream(request)
        await response.write(chunk({"role": "assistant", "content": "first half,"}))
        await gate.wait()
        await response.write(chunk({"content": " second half"}) + chunk({}, "stop") + b"data: [DONE]\n\n")
        return response

    return answer_in_halves


def opening(gate: asyncio.Event, script: Script) -> Script:
    """Return the script that opens the gate, and answers by another one."""

    async def answer_after(request: web.Request, provider: Scripted) -> web.StreamResponse:
        gate.set()
        return await script(request, provider)

    return answer_after
