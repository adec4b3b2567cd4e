"""Fake provider of chat completions that accepts all requests. Its model ids select its faults."""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.providers.chat import Chat, frame
from tests.support.providers.scenarios import Answer, ScenarioRequest, Usage
from tests.support.providers.server import RETRY_SECONDS, FakeProvider, Json, ReceivedRequest, serve_provider

WORDS = ("Hello", ", ", "wor", "ld", " \U0001f30d")
TEXT = "".join(WORDS)
ANSWER = Answer(WORDS, usage=Usage(prompt=9, cached=0, output=5))
TOTAL_TOKENS = 14
CROWD = 20
"""Number of streams of the model `crowded` that are served together."""
START_FRAMES = 3
"""Frames of a stream up to its second word, after which some models fail."""


@dataclass
class Provider(FakeProvider):
    """Fake provider of chat completions that accepts all requests (see the module)."""

    streaming: asyncio.Event = field(default_factory=asyncio.Event)  # a stream sent its first words and waits
    resume: asyncio.Event = field(default_factory=asyncio.Event)  # resumes the waiting stream
    silent: asyncio.Event = field(default_factory=asyncio.Event)  # a call arrived that is never answered
    waiting: int = 0  # streams of the model `crowded`
    left: asyncio.Event = field(default_factory=asyncio.Event)  # the caller of a waiting stream closed its connection
    left_at: float = 0.0  # the loop's time at that moment

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        model = received.json["model"]
        match model:
            case "refuses":
                return _error(400, "your organization org-abc123 at https://provider.example may not say that")
            case "locked":
                return _error(401, "Incorrect API key provided: sk-provider")
            case "busy":
                return _error(429, "slow down", retry_after=RETRY_SECONDS)
            case "curt":  # a rate limit without a retry time
                return _error(429, "slow down")
            case "broken":
                return _error(500, "the provider fell over at 10.1.2.3")
            case "marked":  # with a byte order mark, not streamed
                text = web.json_response(complete(model)).text or ""
                return web.Response(body=b"\xef\xbb\xbf" + text.encode(), content_type="application/json")
            case "moved":
                raise web.HTTPTemporaryRedirect("http://127.0.0.1:1/elsewhere")
            case "drops":
                _abort(request)
            case "silent":
                self.silent.set()
                await asyncio.Event().wait()
        if not received.json.get("stream") or model == "whole":
            return web.json_response(complete(model))
        if model == "crowded":
            self.waiting += 1
            if self.waiting == CROWD:
                self.resume.set()
            await self.resume.wait()  # so that all are served at the same time, or none is
        return await self._stream(request, model, received)

    async def _stream(self, request: web.Request, model: str, received: ReceivedRequest) -> web.StreamResponse:
        kind = "application/json" if model == "mislabelled" else "text/event-stream"
        response = web.StreamResponse(headers={"content-type": kind})
        await response.prepare(request)
        if model == "floods":  # more than the buffers between this server and a caller that does not read
            _, flood, *_ = _frames(model, Answer(("x" * 10_000,)), received)
            await self._watch(self._flood(response, flood))
            return response
        frames = _frames(model, ANSWER, received)
        for _ in range(START_FRAMES):
            await response.write(next(frames))
        match model:
            case "cut":
                _abort(request)
                return response
            case "ends-early":
                return response
            case "fails":
                await response.write(frame({"error": {"message": "overloaded", "type": "server_error"}}))
                return response
            case "endless":
                self.streaming.set()
                await self._watch(self.resume.wait())
        for data in frames:
            await response.write(data)
        if model == "lingers":
            _abort(request)
        return response

    async def _flood(self, response: web.StreamResponse, data: bytes) -> None:
        for _ in range(3000):
            await response.write(data)

    async def _watch(self, sending: Awaitable[object]) -> None:
        """Send a part of a response, and record if the caller disconnects meanwhile."""
        try:
            await sending
        except (ConnectionError, asyncio.CancelledError):
            self.left_at = asyncio.get_running_loop().time()
            self.left.set()
            raise


def complete(model: str) -> Json:
    """Return a response that is not streamed, for a model id."""
    written = Chat().whole(ScenarioRequest(model=model), ANSWER, ReceivedRequest("POST", "", {}, {}, b"{}"))
    return written | {"x_unknown": {"kept": [1, 2.0, "three"]}}


def _frames(model: str, answer: Answer, received: ReceivedRequest) -> Iterator[bytes]:
    return Chat().frames(ScenarioRequest(model=model, stream=True), answer, received)


def _error(status: int, message: str, retry_after: str = "") -> web.Response:
    headers = {"retry-after": retry_after} if retry_after else {}
    return web.json_response(Chat().error(status, message, None, None), status=status, headers=headers)


def _abort(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()


def provider() -> AbstractAsyncContextManager[Provider]:
    return serve_provider(Provider())
