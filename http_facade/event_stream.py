"""A streamed answer (server-sent events, or one long JSON array) that is under way."""

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from aiohttp import HttpVersion11, hdrs, web

from http_facade.settings import Settings

EVENTS = "text/event-stream; charset=utf-8"
HEADERS = {
    hdrs.CACHE_CONTROL: "no-cache",
    "x-accel-buffering": "no",  # nginx would collect the events
}


class EventStream:
    """Sends what it is given at once, and the format's heartbeat whenever nothing was sent for a while.

    The heartbeat is a timer's callback and not a task, for the price of one timer a stream: it never interrupts the
    pull on the generator behind the stream, and since it hands the transport one whole chunk it cannot come between
    the halves of another.
    """

    def __init__(
        self,
        request: web.Request,
        content_type: str,
        heartbeat: bytes,
        settings: Settings,
        cut: Callable[[], bytes],
    ) -> None:
        """`cut` makes the frames that end a broken answer, for a drain that is over."""
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._seconds = settings.heartbeat_seconds
        self._stalled_seconds = settings.stalled_seconds
        self._moved_at = self._loop.time()  # when the client last kept up
        self._heartbeat = heartbeat
        self._cut = cut
        self._ended = False
        self._sent_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: content_type, **HEADERS})

    async def begin(self, headers: Mapping[str, str]) -> None:
        """Sends the status line and the headers; from here on a failure is an event."""
        self.response.headers.update(headers)
        if self._request.version >= HttpVersion11:
            self.response.enable_chunked_encoding()
        else:
            self.response.force_close()  # which is how its client learns of the end
        await self.response.prepare(self._request)
        self._request.app[STREAMS].add(self)
        self._sent_at = self._loop.time()
        self._timer = self._loop.call_later(self._seconds, self._beat)

    async def write(self, frames: bytes) -> None:
        """Sends; returns when the client keeps up. Raises ConnectionError when it left.

        Straight to the transport, as the heartbeat: aiohttp's own way to it takes longer than all else here.
        """
        self._sent_at = self._loop.time()
        if self._ended or not frames:  # an empty chunk would be the last
            return
        transport = self._request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client left")
        transport.write(self._chunk(frames))
        if self._request.protocol.writing_paused:
            await self._request.writer.drain()

    def cut_off(self) -> None:
        """Ends the answer with an error, wherever its handler is; nothing is sent after it."""
        transport = self._request.transport
        if not self._ended and transport is not None and not transport.is_closing():
            transport.write(self._chunk(self._cut()))
        self._ended = True

    def _chunk(self, frames: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(frames), frames) if self.response.chunked else frames

    def _beat(self) -> None:
        now = self._loop.time()
        transport, idle = self._request.transport, now - self._sent_at
        if self._ended or transport is None or transport.is_closing():
            return
        if not self._request.protocol.writing_paused:
            self._moved_at = now
        elif now - self._moved_at >= self._stalled_seconds:
            transport.abort()  # which ends the handler, and with it the provider's work
            return
        if idle >= self._seconds:
            if not self._request.protocol.writing_paused:  # else the client has enough to read
                transport.write(self._chunk(self._heartbeat))
            idle = 0.0
            self._sent_at = self._loop.time()
        self._timer = self._loop.call_later(self._seconds - idle, self._beat)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended = True
        self._request.app[STREAMS].discard(self)
        if self._timer is not None:
            self._timer.cancel()


STREAMS = web.AppKey("streams", set[EventStream])
"""Those under way."""
