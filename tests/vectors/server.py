"""The fake providers' server: one real aiohttp application, on a free port. How it behaves, the model's id says."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from aiohttp import web

from tests.providers.server import KEY, RETRY_SECONDS, RefusedError, Seen

Json = dict[str, Any]
BREAKS = "this one breaks"
"""A text: the request that has it fails, on the model `partly`."""
SECRET = "your organization org-abc123 at https://provider.example may not say that"
"""What a provider tells of itself in an error."""

__all__ = ["BREAKS", "KEY", "RETRY_SECONDS", "SECRET", "Asked", "Json", "Provider", "RefusedError", "Seen", "serving"]


@dataclass(frozen=True)
class Asked:
    """A request that was judged and found good."""

    model: str
    texts: tuple[str, ...]  # of tokens: their numbers
    body: Json


class Speech(Protocol):
    """What a format knows of itself."""

    base_path: str  # what the base URL of a channel has behind the host

    def admit(self, seen: Seen) -> None:
        """Raises RefusedError(401) for a wrong key."""
        ...

    def read(self, seen: Seen) -> Asked | None:
        """The request, judged; None where there is no such path. Raises RefusedError."""
        ...

    def write(self, asked: Asked) -> Json | bytes:
        """The answer, odd where the model's id says so; `bytes` as they are."""
        ...

    def error(self, status: int, message: str, at: str | None) -> Json: ...


@dataclass
class Provider:
    """A running provider: where it is, what it saw."""

    speech: Speech
    root_url: str = ""
    seen: list[Seen] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)  # what it refused of itself, which no model's id asked for
    waiting: int = 0  # requests to the models `gated` and `partly` that have no answer yet
    most: int = 0  # that were so at the same time
    left: int = 0  # whose caller went away
    gate: asyncio.Event = field(default_factory=asyncio.Event)  # lets them have their answers
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def base_url(self) -> str:
        """What a channel's `base_url` is to be."""
        return self.root_url + self.speech.base_path

    @property
    def last(self) -> Json:
        """The last body."""
        return self.seen[-1].json

    async def until(self, reached: Callable[[], bool]) -> None:
        """Waits for what the counters say. Raises TimeoutError when that takes long."""
        async with asyncio.timeout(5), self._changed:
            await self._changed.wait_for(reached)

    async def wait(self) -> None:
        """The place of a request that waits for the gate."""
        await self._count(waiting=1)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            await self._count(left=1, waiting=-1)
            raise
        await self._count(waiting=-1)

    async def _count(self, waiting: int = 0, left: int = 0) -> None:
        async with self._changed:
            self.waiting += waiting
            self.left += left
            self.most = max(self.most, self.waiting)
            self._changed.notify_all()


async def serve(request: web.Request) -> web.StreamResponse:
    """Every request to a provider."""
    provider = request.app[PROVIDER]
    headers = {name.lower(): value for name, value in request.headers.items()}
    seen = Seen(request.method, request.path, request.query, headers, await request.read())
    provider.seen.append(seen)
    try:
        provider.speech.admit(seen)
        asked = provider.speech.read(seen)
    except RefusedError as refused:
        provider.refusals.append(refused.message)
        return _error(provider, refused.status, refused.message, refused.at)
    if asked is None:
        provider.refusals.append(f"{seen.method} {seen.path}")
        return _error(provider, 404, f"Unknown request URL: {seen.method} {seen.path}")
    return await _answer(request, provider, asked)


async def _answer(request: web.Request, provider: Provider, asked: Asked) -> web.StreamResponse:
    match asked.model:
        case "busy":
            return _error(provider, 429, "Rate limit reached.", retry_after=RETRY_SECONDS)
        case "curt":  # a rate limit that does not say for how long
            return _error(provider, 429, "Rate limit reached.")
        case "broken":
            return _error(provider, 500, "the provider fell over at 10.1.2.3")
        case "refuses":
            return _error(provider, 400, SECRET, "input")
        case "locked":
            return _error(provider, 401, f"Incorrect API key provided: {KEY}")
        case "html":
            return web.Response(text="<html><body>It works!</body></html>", content_type="text/html")
        case "sorry":
            return web.Response(status=503, text="<html>10.1.2.3 is down</html>", content_type="text/html")
        case "moved":
            raise web.HTTPTemporaryRedirect("http://127.0.0.1:1/elsewhere")
        case "fails-in-200":
            return web.json_response(provider.speech.error(500, "the model fell over", None))
        case "drops":
            assert request.transport is not None
            request.transport.abort()
        case "cut":
            return await _cut(request, provider, asked)
        case "silent" | "gated":
            await provider.wait()
        case "partly":
            if BREAKS in asked.texts:
                await provider.until(lambda: provider.waiting >= 3)
                return _error(provider, 500, "one part fell over")
            await provider.wait()
    mark = b"\xef\xbb\xbf" if asked.model == "marked" else b""
    return web.Response(body=mark + _bytes(provider, asked), content_type="application/json")


async def _cut(request: web.Request, provider: Provider, asked: Asked) -> web.StreamResponse:
    body = _bytes(provider, asked)
    response = web.StreamResponse(headers={"content-type": "application/json", "content-length": str(len(body))})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    assert request.transport is not None
    request.transport.abort()
    return response


def _bytes(provider: Provider, asked: Asked) -> bytes:
    answer = provider.speech.write(asked)
    return answer if isinstance(answer, bytes) else json.dumps(answer, separators=(",", ":")).encode()


def _error(provider: Provider, status: int, message: str, at: str | None = None, retry_after: str = "") -> web.Response:
    headers = {"retry-after": retry_after} if retry_after else {}
    return web.json_response(provider.speech.error(status, message, at), status=status, headers=headers)


PROVIDER = web.AppKey("provider", Provider)


@asynccontextmanager
async def serving(speech: Speech) -> AsyncGenerator[Provider, None]:
    """The provider of a format, on a free port."""
    app = web.Application(client_max_size=1 << 28)
    provider = app[PROVIDER] = Provider(speech)
    app.router.add_route("*", "/{path:.*}", serve)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    provider.root_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield provider
    finally:
        await runner.cleanup()
