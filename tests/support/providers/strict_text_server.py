"""Server of the strict fake providers of the text formats: one format, and the scenarios as its model."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from aiohttp import web

from tests.support.providers.scenarios import Answer, Failure, ScenarioRequest, answer_to
from tests.support.providers.server import (
    RETRY_SECONDS,
    FakeProvider,
    Json,
    ReceivedRequest,
    RefusedError,
    serve_provider,
)

UNKNOWN = "nope"  # the id of a model that no provider has


class TextFormat(Protocol):
    """Text format of a strict fake provider: the functions that check requests and encode answers."""

    name: str
    base_path: str  # path of a channel's base URL
    heartbeat: bytes

    def admit(self, received: ReceivedRequest) -> None:
        """Raise RefusedError(401) for a wrong key."""
        ...

    def content_type(self, request: web.Request) -> str: ...

    def read(self, received: ReceivedRequest) -> ScenarioRequest:
        """Return the validated request. Raise RefusedError."""
        ...

    def whole(self, request: ScenarioRequest, answer: Answer, received: ReceivedRequest) -> Json: ...

    def frames(self, request: ScenarioRequest, answer: Answer, received: ReceivedRequest) -> Iterator[bytes]: ...

    def other(self, received: ReceivedRequest) -> Json | None:
        """Return the response to a request other than a generation; None for an unknown path. Raise RefusedError."""
        ...

    def generates(self, received: ReceivedRequest) -> bool: ...

    def error(self, status: int, message: str, at: str | None, code: str | None) -> Json: ...

    def error_frame(self, message: str, sent: list[bytes], *, bare: bool) -> bytes:
        """Return the frame that reports a failure, after the frames sent. `bare`: whether in the second form, if the
        format has two.
        """
        ...


@runtime_checkable
class StatesErrorsInHeaders(Protocol):
    """Format whose errors have their type in a header."""

    def error_headers(self, status: int) -> dict[str, str]: ...


@dataclass
class Provider(FakeProvider):
    """Fake provider of a text format that is as strict as a real one."""

    format: TextFormat
    cut: int = 0  # size in bytes of the pieces of streams; 0: whole events
    model: Callable[[ScenarioRequest], Answer | Failure] = (
        answer_to  # returns the response to a request that was accepted
    )
    vendor: str = ""  # vendor whose judge (tests.pairs.vendors) refuses requests, too; "" for none
    waiting: asyncio.Event = field(default_factory=asyncio.Event)  # a stream of scenario `endless` is in its middle
    resume: asyncio.Event = field(default_factory=asyncio.Event)  # lets it continue to its end
    left: asyncio.Event = field(default_factory=asyncio.Event)  # set when its reader disconnected

    @property
    def base_url(self) -> str:
        return self.url + self.format.base_path

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        self.format.admit(received)
        if not self.format.generates(received):
            found = self.format.other(received)
            if found is None:
                return self._error(404, f"Unknown request URL: {received.method} {received.path}")
            return web.json_response(found)
        parsed = self.format.read(received)
        if self.vendor and (refused := refusal(self.vendor, parsed.model, self.format.name, received)) is not None:
            raise refused
        if parsed.model == UNKNOWN:
            return self._error(404, f"The model `{UNKNOWN}` does not exist or you do not have access to it.")
        answer = self.model(parsed)
        if isinstance(answer, Failure):
            if not answer.status and request.transport is not None:
                request.transport.abort()
            return self._error(answer.status, answer.message)
        if not parsed.stream:
            return web.json_response(self.format.whole(parsed, answer, received), headers=self._ids)
        frames = list(self.format.frames(parsed, answer, received))
        if parsed.scenario == "heartbeat":
            frames = [self.format.heartbeat, *(piece for frame in frames for piece in (frame, self.format.heartbeat))]
        return await self._stream(request, answer, frames)

    def refuse(self, refused: RefusedError) -> web.Response:
        return self._error(refused.status, refused.message, refused.at, refused.code)

    @property
    def _ids(self) -> dict[str, str]:
        name = f"req_{len(self.received):04}"
        return {"x-request-id": name, "request-id": name}

    def _error(self, status: int, message: str, at: str | None = None, code: str | None = None) -> web.Response:
        headers = self._ids | ({"retry-after": RETRY_SECONDS} if status == 429 else {})
        if isinstance(self.format, StatesErrorsInHeaders):
            headers |= self.format.error_headers(status)
        return web.json_response(self.format.error(status, message, at, code), status=status, headers=headers)

    async def _stream(self, request: web.Request, answer: Answer, frames: list[bytes]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": self.format.content_type(request), **self._ids})
        await response.prepare(request)
        middle = len(frames) // 2
        await self._write(response, frames[:middle] if answer.breaks else frames)
        match answer.breaks:
            case "error" | "error-event":
                bare = answer.breaks == "error-event"
                await self._write(
                    response, [self.format.error_frame("the model fell over", frames[:middle], bare=bare)]
                )
            case "cut":
                assert request.transport is not None
                request.transport.abort()
            case "waits":
                self.waiting.set()
                try:
                    await self.resume.wait()
                except asyncio.CancelledError:
                    self.left.set()
                    raise
                await self._write(response, frames[middle:])
        return response

    async def _write(self, response: web.StreamResponse, frames: list[bytes]) -> None:
        if self.cut:
            whole = b"".join(frames)
            frames = [whole[start : start + self.cut] for start in range(0, len(whole), self.cut)]
        for frame in frames:
            await response.write(frame)


def text_provider(
    wire_format: TextFormat,
    cut: int = 0,
    model: Callable[[ScenarioRequest], Answer | Failure] = answer_to,
    vendor: str = "",
) -> AbstractAsyncContextManager[Provider]:
    """Return the running provider of a format; `cut` is the size in bytes of the pieces of its streams, `vendor` the
    vendor that it is as strict as, "" for none.
    """
    return serve_provider(Provider(wire_format, cut, model, vendor))


def refusal(vendor: str, model: str, protocol: str, received: ReceivedRequest) -> RefusedError | None:
    """Return the refusal of a request by a vendor; None for one that the vendor serves."""
    # here: the judge has its rules from the formats, and most providers have no vendor
    from tests.pairs.vendors import judge

    found = judge.refusal(vendor, model, protocol, received.body, received.headers)
    return RefusedError(found.message, found.field, found.id, found.status) if found is not None else None
