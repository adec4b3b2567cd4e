"""Streamed HTTP response: server-sent events, or one JSON array that is sent in parts."""

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from aiohttp import HttpVersion11, hdrs, web

from http_facade.grpc_calls import exchange
from http_facade.response_start import begin_response
from http_facade.settings import Settings

PART_BYTES = 128 << 10
EVENTS = "text/event-stream; charset=utf-8"
HEADERS = {
    hdrs.CACHE_CONTROL: "no-cache",
    "x-accel-buffering": "no",  # keeps nginx from buffering the events
}


class EventStream:
    """Streamed response that sends frames at once, and the heartbeat of the format after each pause.

    A timer per stream finds the pauses; only a heartbeat has a task, for which the next frames wait.
    """

    def __init__(
        self,
        request: web.BaseRequest,
        content_type: str,
        heartbeat: bytes,
        settings: Settings,
        cut: Callable[[], bytes],
    ) -> None:
        """Prepare the response. `cut` returns the frames that end an incomplete answer at a shutdown."""
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._seconds = settings.heartbeat_seconds
        self._heartbeat = heartbeat
        self._cut = cut
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
        if self._request.version >= HttpVersion11:
            self.response.enable_chunked_encoding()
        else:
            self.response.force_close()  # an HTTP/1.0 client sees the end of the body by the close
        await begin_response(self._request, self.response)
        exchange(self._request).cut_off = self.cut_off
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
            self._ending = self._loop.create_task(self.response.write_eof(bytes(self._unsent) + self._cut()))

    def _check_pause(self) -> None:
        transport, pause = self._request.transport, self._loop.time() - self._sent_at
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
        exchange(self._request).cut_off = None
        if self._timer is not None:
            self._timer.cancel()
        tasks = [task for task in (self._beating, self._ending) if task is not None]
        for task in tasks if kind is not None else ():
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
