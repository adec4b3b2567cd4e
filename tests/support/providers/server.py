"""Base of the fake providers: real aiohttp applications on free ports, which record their requests."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aiohttp import web

from tests.support.serving import serving

Json = dict[str, Any]
KEY = "sk-provider"
RETRY_SECONDS = "7"


class RefusedError(Exception):
    """Request that a fake provider refuses. `at` is the path of the field in it, as the provider writes paths."""

    def __init__(self, message: str, at: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.at, self.code, self.status = message, at, code, status


@dataclass(frozen=True)
class ReceivedRequest:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @classmethod
    async def read(cls, request: web.Request) -> "ReceivedRequest":
        headers = {name.lower(): value for name, value in request.headers.items()}
        return cls(request.method, request.path, request.query, headers, await request.read())

    @property
    def json(self) -> Json:
        """The body. Raises RefusedError if it is no JSON object or has a key twice."""
        try:
            value = json.loads(self.body, object_pairs_hook=_once, parse_constant=_no_constant)
        except ValueError as error:
            raise RefusedError(f"We could not parse the JSON body of your request: {error}") from error
        if not isinstance(value, dict):
            raise RefusedError("The body is no JSON object.")
        return value


def _once(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise RefusedError(f"A key stands twice: {[key for key, _ in pairs]}")
    return found


def _no_constant(name: str) -> float:
    raise RefusedError(f"{name} is no JSON.")


@dataclass(kw_only=True)
class FakeProvider:
    url: str = ""  # without a path
    received: list[ReceivedRequest] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)  # messages of RefusedError

    @property
    def bodies(self) -> list[Json]:
        return [request.json for request in self.received]

    @property
    def last(self) -> Json:
        """The body of the last request."""
        return self.received[-1].json

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Record a request of any path, and answer it."""
        received = await ReceivedRequest.read(request)
        self.received.append(received)
        try:
            return await self.answer(request, received)
        except RefusedError as refused:
            self.refusals.append(refused.message)
            return self.refuse(refused)

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        raise NotImplementedError

    def refuse(self, refused: RefusedError) -> web.StreamResponse:
        raise refused


ProviderT = TypeVar("ProviderT", bound=FakeProvider)


@asynccontextmanager
async def serve_provider(provider: ProviderT) -> AsyncGenerator[ProviderT, None]:
    """Serve all paths by a fake provider, on a free port. Callers that disconnect cancel their requests."""
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", provider.handle)
    async with serving(app, handler_cancellation=True, shutdown_timeout=0.1) as provider.url:
        yield provider


Written = Json | bytes | web.StreamResponse


@dataclass
class RecordingProvider(FakeProvider):
    """Fake provider that accepts all requests, and answers each as the test commands."""

    respond: Callable[[ReceivedRequest], Written] = lambda _: {}

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        return response_of(self.respond(received))


def response_of(written: Written) -> web.StreamResponse:
    """Return the response with a JSON value or with bytes: those of an event stream, or of JSON."""
    if isinstance(written, web.StreamResponse):
        return written
    if isinstance(written, dict):
        return web.json_response(written)
    streamed = written.startswith((b"data:", b"event:"))
    return web.Response(body=written, content_type="text/event-stream" if streamed else "application/json")
