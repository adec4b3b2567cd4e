"""A provider that speaks chat completions: a real server whose model ids say how it behaves."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

WORDS = ["Hello", ", ", "wor", "ld", " \U0001f30d"]
TEXT = "".join(WORDS)
USAGE = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
KEY = "sk-provider"
CROWD = 20


@dataclass
class Provider:
    """What the server saw and where it is."""

    base_url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    streaming: asyncio.Event = field(default_factory=asyncio.Event)  # a stream sent its first chunk and waits
    resume: asyncio.Event = field(default_factory=asyncio.Event)  # lets such a stream go on to its end
    waiting: int = 0  # streams of the model `crowded`
    left: asyncio.Event = field(default_factory=asyncio.Event)  # the caller of such a stream closed its connection
    left_at: float = 0.0  # the loop's time at that moment

    @property
    def last(self) -> dict[str, object]:
        body = json.loads(self.bodies[-1])
        assert isinstance(body, dict)
        return body


def chunk(model: str, delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    body = {"id": "c-1", "object": "chat.completion.chunk", "created": 1760000000, "model": model, "choices": [choice]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def whole(model: str) -> dict[str, object]:
    message = {"role": "assistant", "content": TEXT, "refusal": None, "annotations": []}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {
        "id": "c-1",
        "object": "chat.completion",
        "created": 1760000000,
        "model": model,
        "choices": [choice],
        "usage": USAGE,
        "x_unknown": {"kept": [1, 2.0, "three"]},
    }


def error(status: int, message: str, code: str | None = None) -> web.Response:
    body = {"error": {"message": message, "type": "t", "param": None, "code": code}}
    return web.json_response(body, status=status, headers={"retry-after": "7"} if status == 429 else {})


async def complete(request: web.Request) -> web.StreamResponse:
    provider = request.app[PROVIDER]
    raw = await request.read()
    provider.bodies.append(raw)
    provider.headers.append(dict(request.headers))
    body = json.loads(raw)
    model, stream = body["model"], body.get("stream", False)
    match model:
        case "refuses":
            return error(400, "your organization org-abc123 at https://provider.example may not say that")
        case "locked":
            return error(401, "Incorrect API key provided: sk-provider")
        case "busy":
            return error(429, "slow down", "rate_limit_exceeded")
        case "broken":
            return error(500, "the provider fell over at 10.1.2.3")
        case "marked":  # with a byte order mark; it does not stream
            return web.Response(
                body=b"\xef\xbb\xbf" + json.dumps(whole(model)).encode(), content_type="application/json"
            )
        case "moved":
            raise web.HTTPTemporaryRedirect("http://127.0.0.1:1/elsewhere")
        case "curt":  # a rate limit that does not say for how long
            return web.json_response({"error": {"message": "slow down"}}, status=429)
        case "drops":
            assert request.transport is not None
            request.transport.abort()
        case "silent":
            await asyncio.Event().wait()
    if not stream or model == "whole":
        return web.json_response(whole(model))
    if model == "crowded":
        provider.waiting += 1
        if provider.waiting == CROWD:
            provider.resume.set()
        await provider.resume.wait()  # so that they are served at once, or not at all
    return await _stream(request, provider, model, bool(body.get("stream_options", {}).get("include_usage")))


async def _stream(request: web.Request, provider: Provider, model: str, usage: bool) -> web.StreamResponse:
    kind = "application/json" if model == "mislabelled" else "text/event-stream"
    response = web.StreamResponse(headers={"content-type": kind})
    await response.prepare(request)
    if model == "floods":  # more than the buffers between here and a caller that does not read
        try:
            for _ in range(3000):
                await response.write(chunk(model, {"content": "x" * 10_000}))
        except (ConnectionError, asyncio.CancelledError):
            provider.left.set()
            raise
        return response
    await response.write(chunk(model, {"role": "assistant", "content": ""}))
    for position, word in enumerate(WORDS):
        await response.write(chunk(model, {"content": word}))
        if position == 1 and model == "cut":
            assert request.transport is not None
            request.transport.abort()
            return response
        if position == 1 and model == "ends-early":
            return response
        if position == 1 and model == "fails":
            await response.write(b'data: {"error": {"message": "overloaded", "type": "server_error"}}\n\n')
            return response
        if position == 1 and model == "endless":
            provider.streaming.set()
            try:
                await provider.resume.wait()
            except asyncio.CancelledError:
                provider.left_at = asyncio.get_running_loop().time()
                provider.left.set()
                raise
    await response.write(chunk(model, {}, "stop"))
    if usage:
        body = {"id": "c-1", "object": "chat.completion.chunk", "created": 1760000000, "model": model, "choices": []}
        await response.write(b"data: " + json.dumps({**body, "usage": USAGE}).encode() + b"\n\n")
    await response.write(b"data: [DONE]\n\n")
    if model == "lingers":
        assert request.transport is not None
        request.transport.abort()
    return response


PROVIDER = web.AppKey("provider", Provider)


@asynccontextmanager
async def provider() -> AsyncGenerator[Provider, None]:
    """The server, on a free port."""
    app = web.Application(client_max_size=1 << 30)
    state = app[PROVIDER] = Provider()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    state.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield state
    finally:
        await runner.cleanup()
