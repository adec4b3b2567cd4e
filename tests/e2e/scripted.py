"""A provider of chat and embeddings that does what each test tells it to, call by call."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Say = Callable[[web.Request, "Scripted"], Awaitable[web.StreamResponse]]


@dataclass
class Asked:
    """One call, as the provider got it."""

    key: str
    body: dict[str, Any]
    left: asyncio.Event = field(default_factory=asyncio.Event)  # the gateway closed it before it was answered


@dataclass
class Scripted:
    """A provider. It answers by `says`, the last of which stands for all calls that follow."""

    name: str
    says: list[Say]
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    arrived: asyncio.Queue[Asked] = field(default_factory=asyncio.Queue)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.text())
        asked = Asked(request.headers.get("authorization", "").removeprefix("Bearer "), body)
        say = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        self.asked.append(asked)
        self.arrived.put_nowait(asked)
        try:
            return await say(request, self)
        except asyncio.CancelledError:
            asked.left.set()
            raise


def chunk(delta: Mapping[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    told = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(told)}\n\n".encode()


async def well(request: web.Request, made: Scripted) -> web.StreamResponse:
    """Answers with its name."""
    body = made.asked[-1].body
    if "input" in body:
        data = [{"object": "embedding", "index": 0, "embedding": [1.0, 2.0]}]
        return web.json_response(
            {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        )
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    if not body.get("stream"):
        message = {"role": "assistant", "content": made.name}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        told = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        return web.json_response(told)
    response = await begun(request)
    for delta in ({"role": "assistant", "content": ""}, {"content": made.name}):
        await response.write(chunk(delta))
    await response.write(chunk({}, "stop") + b"data: [DONE]\n\n")
    return response


async def begun(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    return response


def status(code: int, error: Mapping[str, object] | None = None, **headers: str) -> Say:
    async def say(request: web.Request, made: Scripted) -> web.StreamResponse:
        told = {"message": f"{made.name} says {code}", **(error or {})}
        return web.json_response(
            {"error": told}, status=code, headers={key.replace("_", "-"): value for key, value in headers.items()}
        )

    return say


async def stalls(request: web.Request, made: Scripted) -> web.StreamResponse:
    """Says nothing."""
    await asyncio.Event().wait()
    raise AssertionError


def resets_after(delta: Mapping[str, object]) -> Say:
    """A stream that is reset after its first chunk."""

    async def say(request: web.Request, made: Scripted) -> web.StreamResponse:
        response = await begun(request)
        await response.write(chunk(delta))
        await asyncio.sleep(0)  # the chunk is sent before the reset
        assert request.transport is not None
        request.transport.abort()
        return response

    return say


says_only_that_it_begins = resets_after({"role": "assistant", "content": ""})
breaks_off = resets_after({"role": "assistant", "content": "half"})


@asynccontextmanager
async def scripted(name: str, *says: Say) -> AsyncGenerator[Scripted, None]:
    made = Scripted(name, list(says) or [well])
    app = web.Application()
    app.router.add_post("/{path:.*}", made.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    yield made
    await runner.cleanup()
