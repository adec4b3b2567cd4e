"""Streamed HTTP responses: server-sent events, or one JSON array that is sent in parts."""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self

from aiohttp import HttpVersion11, hdrs, web
from multidict import CIMultiDict

from http_facade.exchange import Exchange
from http_facade.response_head import SENT_LAST, encode_head
from http_facade.settings import Settings
from umg_grpc.errors import UmgError, shutting_down

PART_BYTES = 128 << 10
EVENTS = "text/event-stream; charset=utf-8"
HEADERS = {
    hdrs.CACHE_CONTROL: "no-cache",
    "x-accel-buffering": "no",  # keeps nginx from buffering the events
}


class EncodedAnswer(Protocol):
    """Interface of the encoder of a streamed answer by which a shutdown ends the answer."""

    def cut(self, error: UmgError) -> bytes:
        """Return the encoded events that end the answer with the error; the encoder returns nothing after that."""
        ...

    def release(self) -> None:
        """Release the memory that is reserved for the answer."""
        ...


class EventStream:
    """One streamed response: writes encoded events at once, and sends a heartbeat after each pause in the stream."""

    def __init__(
        self, exchange: Exchange, encoded: EncodedAnswer, content_type: str, heartbeat: bytes, settings: Settings
    ) -> None:
        """Prepare the response. `encoded` returns the events that end an incomplete answer at a shutdown; `heartbeat`
        is the format's event or comment that keeps an idle connection open.
        """
        self._exchange = exchange
        self._encoded = encoded
        self._headers = {hdrs.CONTENT_TYPE: content_type, **HEADERS}
        self._loop = asyncio.get_running_loop()
        self._seconds = settings.heartbeat_seconds
        self._heartbeat = heartbeat
        self._ended = False
        # a client of HTTP/1.0 gets the frames as they are, and sees the end by the close of the connection
        self._end = b"" if exchange.request.version < HttpVersion11 else b"0\r\n\r\n"
        self._unsent = memoryview(b"")  # rest of the frames that `write_large` sends
        self._sent_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.response: web.StreamResponse = SENT_LAST
        """Response for aiohttp, once it was sent."""

    async def begin(self, headers: Mapping[str, str], frames: bytes = b"") -> None:
        """Send the status line, the headers and the first events. After that, a failure can only be sent as an
        event.
        """
        own = CIMultiDict(self._headers)
        own.extend(headers)  # metadata may have a name several times
        head, self.response = encode_head(self._exchange, own, None)
        self._exchange.is_begun = True
        self._exchange.cut_off = self.cut_off
        self._sent_at = self._loop.time()
        self._timer = self._loop.call_later(self._seconds, self._check_pause)
        await self._exchange.connection.write(head, self._chunk(frames))

    async def write(self, frames: bytes) -> None:
        """Write encoded events; wait while the write buffer is full."""
        self._sent_at = self._loop.time()
        if not self._ended:
            await self._exchange.connection.write(self._chunk(frames))

    async def write_large(self, frames: bytes) -> None:
        """Write many encoded events in parts, because the transport copies all bytes that the socket does not take at
        once.
        """
        self._unsent = memoryview(frames)
        while part := bytes(self._unsent[:PART_BYTES]):
            self._unsent = self._unsent[PART_BYTES:]
            await self.write(part)

    def cut_off(self) -> None:
        """End the stream at once with a shutdown error; later writes of the handler send nothing."""
        if not self._ended:
            self._ended = True
            # the error must not be inside another event; a write that waits for the client has handed over its part
            frames = bytes(self._unsent) + self._encoded.cut(shutting_down())
            self._exchange.connection.write_now(self._chunk(frames) + self._end)

    def _chunk(self, frames: bytes) -> bytes:
        """Return the bytes as one chunk of the chunked transfer encoding; empty bytes give none, since an empty chunk
        would end the body.
        """
        if not (frames and self._end):
            return frames
        return b"%x\r\n%b\r\n" % (len(frames), frames)

    def _check_pause(self) -> None:
        transport, pause = self._exchange.request.transport, self._loop.time() - self._sent_at
        if self._ended or transport is None or transport.is_closing():
            return
        if pause >= self._seconds:
            if not transport.get_write_buffer_size():  # a client with unread bytes needs no heartbeat
                transport.write(self._chunk(self._heartbeat))
            pause = 0.0
            self._sent_at = self._loop.time()
        self._timer = self._loop.call_later(self._seconds - pause, self._check_pause)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        was_cut, self._ended = self._ended, True
        self._exchange.cut_off = None
        if self._timer is not None:
            self._timer.cancel()
        self._encoded.release()
        if kind is None:
            await self._exchange.connection.write(b"" if was_cut else self._end)
