"""The fake providers' server: one real aiohttp application per text format, on a free port."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from aiohttp import web

from tests.providers.scenarios import Answer, Asked, Failure, answer_to

Json = dict[str, Any]
KEY = "sk-provider"
RETRY_SECONDS = "7"
UNKNOWN = "nope"  # the id of a model that no provider has


class RefusedError(Exception):
    """The request is not what this provider takes; `at` is the path in it, as the provider writes paths."""

    def __init__(self, message: str, at: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.at, self.code, self.status = message, at, code, status


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Json:
        """The body. Raises RefusedError where it is no JSON object or says a key twice."""
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


class Speech(Protocol):
    """What a text format knows of itself."""

    name: str
    base_path: str  # what the base URL of a channel has behind the host
    heartbeat: bytes

    def admit(self, seen: Seen) -> None:
        """Raises RefusedError(401) for a wrong key."""
        ...

    def content_type(self, request: web.Request) -> str: ...

    def read(self, seen: Seen) -> Asked:
        """The request, judged. Raises RefusedError."""
        ...

    def whole(self, asked: Asked, answer: Answer, seen: Seen) -> Json: ...

    def frames(self, asked: Asked, answer: Answer, seen: Seen) -> Iterator[bytes]: ...

    def other(self, seen: Seen) -> Json | None:
        """The answer to what is no generation, None where there is no such path. Raises RefusedError."""
        ...

    def generates(self, seen: Seen) -> bool: ...

    def error(self, status: int, message: str, at: str | None, code: str | None) -> Json: ...

    def error_frame(self, message: str, sent: list[bytes], *, bare: bool) -> bytes:
        """How a stream says that it failed, after what was sent; `bare`: in the other way, where a format has two."""
        ...


@dataclass
class Provider:
    """A running provider: where it is, what it saw, how it sends."""

    speech: Speech
    cut: int = 0  # streams are written in pieces of so many bytes; 0: by whole events
    model: Callable[[Asked], Answer | Failure] = answer_to  # decides on the answer to a request that was accepted
    root_url: str = ""
    seen: list[Seen] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)  # what it refused of itself, which no scenario asked for
    waiting: asyncio.Event = field(default_factory=asyncio.Event)  # a stream of scenario `endless` is in its middle
    resume: asyncio.Event = field(default_factory=asyncio.Event)  # lets it go on to its end
    left: asyncio.Event = field(default_factory=asyncio.Event)  # whoever read it went away

    @property
    def base_url(self) -> str:
        """What a channel's `base_url` is to be."""
        return self.root_url + self.speech.base_path

    @property
    def last(self) -> Json:
        """The last body."""
        return self.seen[-1].json


async def serve(request: web.Request) -> web.StreamResponse:
    """Every request to a provider."""
    provider = request.app[PROVIDER]
    headers = {name.lower(): value for name, value in request.headers.items()}
    seen = Seen(request.method, request.path, request.query, headers, await request.read())
    provider.seen.append(seen)
    try:
        return await _answer(request, provider, seen)
    except RefusedError as refused:
        provider.refusals.append(refused.message)
        return _error(provider, refused.status, refused.message, refused.at, refused.code)


async def _answer(request: web.Request, provider: Provider, seen: Seen) -> web.StreamResponse:
    speech = provider.speech
    speech.admit(seen)
    if not speech.generates(seen):
        found = speech.other(seen)
        if found is None:
            return _error(provider, 404, f"Unknown request URL: {seen.method} {seen.path}")
        return web.json_response(found)
    asked = speech.read(seen)
    if asked.model == UNKNOWN:
        return _error(provider, 404, f"The model `{UNKNOWN}` does not exist or you do not have access to it.")
    answer = provider.model(asked)
    if isinstance(answer, Failure):
        return _error(provider, answer.status, answer.message)
    if not asked.stream:
        return web.json_response(speech.whole(asked, answer, seen), headers=_ids(provider))
    return await _stream(request, provider, answer, list(speech.frames(asked, answer, seen)), asked)


def _ids(provider: Provider) -> dict[str, str]:
    name = f"req_{len(provider.seen):04}"
    return {"x-request-id": name, "request-id": name}


def _error(
    provider: Provider, status: int, message: str, at: str | None = None, code: str | None = None
) -> web.Response:
    headers = _ids(provider) | ({"retry-after": RETRY_SECONDS} if status == 429 else {})
    return web.json_response(provider.speech.error(status, message, at, code), status=status, headers=headers)


async def _stream(
    request: web.Request, provider: Provider, answer: Answer, frames: list[bytes], asked: Asked
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": provider.speech.content_type(request), **_ids(provider)})
    await response.prepare(request)
    if asked.scenario == "heartbeat":
        frames = [piece for frame in frames for piece in (frame, provider.speech.heartbeat)]
        frames.insert(0, provider.speech.heartbeat)
    middle = len(frames) // 2
    await _write(response, frames[:middle] if answer.breaks else frames, provider.cut)
    match answer.breaks:
        case "error" | "error-event":
            bare = answer.breaks == "error-event"
            failed = provider.speech.error_frame("the model fell over", frames[:middle], bare=bare)
            await _write(response, [failed], provider.cut)
        case "cut":
            assert request.transport is not None
            request.transport.abort()
        case "waits":
            provider.waiting.set()
            try:
                await provider.resume.wait()
            except asyncio.CancelledError:
                provider.left.set()
                raise
            await _write(response, frames[middle:], provider.cut)
    return response


async def _write(response: web.StreamResponse, frames: list[bytes], cut: int) -> None:
    if cut:
        whole = b"".join(frames)
        frames = [whole[start : start + cut] for start in range(0, len(whole), cut)]
    for frame in frames:
        await response.write(frame)


PROVIDER = web.AppKey("provider", Provider)


@asynccontextmanager
async def serving(
    speech: Speech, cut: int = 0, model: Callable[[Asked], Answer | Failure] = answer_to
) -> AsyncGenerator[Provider, None]:
    """The provider of a format, on a free port."""
    app = web.Application(client_max_size=1 << 28)
    provider = app[PROVIDER] = Provider(speech, cut, model)
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
