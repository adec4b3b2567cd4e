"""Server of the strict fake providers that embed and rerank. The model's id selects their behaviour."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from aiohttp import web

from tests.support.providers.server import KEY, RETRY_SECONDS, FakeProvider, Json, ReceivedRequest, RefusedError

BREAKS = "this one breaks"
"""Text whose request fails, on the model `partly`."""
SECRET = "your organization org-abc123 at https://provider.example may not say that"
"""Text of an error in which the provider reveals its own details."""


@dataclass(frozen=True)
class VectorRequest:
    model: str
    texts: tuple[str, ...]  # of tokens: their numbers
    body: Json


class VectorFormat(Protocol):
    base_path: str  # path of a channel's base URL

    def admit(self, received: ReceivedRequest) -> None:
        """Raise RefusedError(401) for a wrong key."""
        ...

    def read(self, received: ReceivedRequest) -> VectorRequest | None:
        """Return the validated request; None for an unknown path. Raise RefusedError for an invalid one."""
        ...

    def write(self, request: VectorRequest) -> Json | bytes:
        """Return the response, in the odd form that the model's id selects; `bytes` are sent unchanged."""
        ...

    def error(self, status: int, message: str, at: str | None) -> Json: ...


@dataclass
class Provider(FakeProvider):
    """Fake provider of vectors or rankings that is as strict as a real one."""

    format: VectorFormat
    waiting: int = 0  # requests to the models `gated` and `partly` that have no response yet
    most: int = 0  # largest number of them at the same time
    left: int = 0  # those whose caller disconnected
    gate: asyncio.Event = field(default_factory=asyncio.Event)  # lets them have their answers
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def base_url(self) -> str:
        return self.url + self.format.base_path

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until the counters satisfy the condition. Raise TimeoutError after a minute."""
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(reached)

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        self.format.admit(received)
        parsed = self.format.read(received)
        if parsed is None:
            raise RefusedError(f"Unknown request URL: {received.method} {received.path}", status=404)
        match parsed.model:
            case "busy":
                return self._error(429, "Rate limit reached.", retry_after=RETRY_SECONDS)
            case "curt":  # a rate limit without `retry-after`
                return self._error(429, "Rate limit reached.")
            case "broken":
                return self._error(500, "the provider fell over at 10.1.2.3")
            case "refuses":
                return self._error(400, SECRET, "input")
            case "locked":
                return self._error(401, f"Incorrect API key provided: {KEY}")
            case "html":
                return web.Response(text="<html><body>It works!</body></html>", content_type="text/html")
            case "sorry":
                return web.Response(status=503, text="<html>10.1.2.3 is down</html>", content_type="text/html")
            case "moved":
                raise web.HTTPTemporaryRedirect("http://127.0.0.1:1/elsewhere")
            case "fails-in-200":
                return web.json_response(self.format.error(500, "the model fell over", None))
            case "drops":
                assert request.transport is not None
                request.transport.abort()
            case "cut":
                return await self._cut(request, parsed)
            case "silent" | "gated":
                await self._wait()
            case "partly":
                if BREAKS in parsed.texts:
                    await self.until(lambda: self.waiting >= 3)
                    return self._error(500, "one part fell over")
                await self._wait()
        mark = b"\xef\xbb\xbf" if parsed.model == "marked" else b""
        made = getattr(self.format, "headers", None)  # a few providers state the usage there
        headers = made(parsed) if made is not None else None
        return web.Response(body=mark + self._body(parsed), content_type="application/json", headers=headers)

    async def _wait(self) -> None:
        """Wait until the test opens the gate, and count the request while it waits."""
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

    async def _cut(self, request: web.Request, parsed: VectorRequest) -> web.StreamResponse:
        body = self._body(parsed)
        response = web.StreamResponse(headers={"content-type": "application/json", "content-length": str(len(body))})
        await response.prepare(request)
        await response.write(body[: len(body) // 2])
        assert request.transport is not None
        request.transport.abort()
        return response

    def _body(self, request: VectorRequest) -> bytes:
        answer = self.format.write(request)
        return answer if isinstance(answer, bytes) else json.dumps(answer, separators=(",", ":")).encode()

    def refuse(self, refused: RefusedError) -> web.Response:
        return self._error(refused.status, refused.message, refused.at)

    def _error(self, status: int, message: str, at: str | None = None, retry_after: str = "") -> web.Response:
        headers = {"retry-after": retry_after} if retry_after else {}
        return web.json_response(self.format.error(status, message, at), status=status, headers=headers)
