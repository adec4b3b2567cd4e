"""Streamed HTTP response: server-sent events, or one JSON array that is sent in parts."""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self

from aiohttp import HttpVersion11, hdrs, web

from http_facade.exchange import Exchange
from http_facade.response_start import begin_response
from http_facade.settings import Settings
from umg_grpc.errors import UmgError, shutting_down

PART_BYTES = 128 << 10
EVENTS = "text/event-stream; charset=utf-8"
HEADERS = {
    hdrs.CACHE_CONTROL: "no-cache",
    "x-accel-buffering": "no",  # keeps nginx from buffering the events
}


class EncodedAnswer(Protocol):
    """Encoder of one streamed answer, as far as a shutdown needs it."""

    def cut(self, error: UmgError) -> bytes:
        """Return the frames that end the answer at once; later writes of the handler send nothing."""
        ...

    def release(self) -> None:
        """Release the memory of the answer."""
        ...


class EventStream:
    """Streamed response that sends frames at once, and the heartbeat of the format after each pause.

    A timer per stream finds the pauses; only a heartbeat has a task, for which the next frames wait.
    """

    def __init__(
        self, exchange: Exchange, encoded: EncodedAnswer, content_type: str, heartbeat: bytes, settings: Settings
    ) -> None:
        """Prepare the response. `encoded` has the frames that end an incomplete answer at a shutdown."""
        self._exchange = exchange
        self._encoded = encoded
        self._loop = asyncio.get_running_loop()
        self._seconds = settings.heartbeat_seconds
        self._heartbeat = heartbeat
        self._ended = False
        self._unsent = memoryview(b"")  # rest of the frames that `write_large` sends
        self._sent_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._beating: asyncio.Task[None] | None = None  # sends a heartbeat
        self._ending: asyncio.Task[None] | None = None  # sends the end of an answer that was cut off
        self.response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: content_type, **HEADERS})

    async def begin(self, headers: Mapping[str, str]) -> None:
        """Send the status line and the headers. Later failures must be sent as events."""
        self.response.headers.update(headers)
        if self._exchange.request.version >= HttpVersion11:
            self.response.enable_chunked_encoding()
        else:
            self.response.force_close()  # an HTTP/1.0 client sees the end of the body by the close
        await begin_response(self._exchange, self.response)
        self._exchange.cut_off = self.cut_off
        self._sent_at = self._loop.time()
        self._timer = self._loop.call_later(self._seconds, self._check_pause)

    async def write(self, frames: bytes) -> None:
        """Send frames; wait while the write buffer is full. Raises ConnectionError if the client disconnected."""
        self._sent_at = self._loop.time()
        if self._beating is not None:
            await asyncio.gather(self._beating, return_exceptions=True)
            self._beating = None
        if not self._ended:
            await self.response.write(frames)

    async def write_large(self, frames: bytes) -> None:
        """Send many frames by `write`, in parts: the transport copies all bytes that the socket does not take."""
        self._unsent = memoryview(frames)
        while part := bytes(self._unsent[:PART_BYTES]):
            self._unsent = self._unsent[PART_BYTES:]
            await self.write(part)

    def cut_off(self) -> None:
        """Send an error and the end of the body at once; later writes of the handler send nothing."""
        if not self._ended:
            self._ended = True
            # the error must not be inside another event; a write that waits for the client has handed over its part
            frames = bytes(self._unsent) + self._encoded.cut(shutting_down())
            self._ending = self._loop.create_task(self.response.write_eof(frames))

    def _check_pause(self) -> None:
        transport, pause = self._exchange.request.transport, self._loop.time() - self._sent_at
        if self._ended or transport is None or transport.is_closing():
            return
        if pause >= self._seconds:
            if not transport.get_write_buffer_size():  # a client with unread bytes needs no heartbeat
                self._beating = self._loop.create_task(self.response.write(self._heartbeat))
            pause = 0.0
            self._sent_at = self._loop.time()
        self._timer = self._loop.call_later(self._seconds - pause, self._check_pause)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended = True
        self._exchange.cut_off = None
        if self._timer is not None:
            self._timer.cancel()
        self._encoded.release()
        if self._beating is not None or self._ending is not None:
            tasks = [task for task in (self._beating, self._ending) if task is not None]
            for task in tasks if kind is not None else ():
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
