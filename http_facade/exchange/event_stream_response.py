"""Streamed HTTP responses: server-sent events, or one JSON array that is sent in parts."""

import asyncio
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol, Self

import msgspec
from aiohttp import HttpVersion11, hdrs, web
from multidict import CIMultiDict

from http_facade.exchange.grpc_service_calls import Pairs, response_headers
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.response_head import SENT_LAST, encode_head
from http_facade.exchange.server_settings import Settings
from umg_grpc.base.errors import UmgError, shutting_down
from umg_grpc.wire.core.stream_memory_limits import MemoryReservation

PART_BYTES = 128 << 10
NO_BYTES = memoryview(b"")
STREAM_HEADERS = {
    hdrs.CACHE_CONTROL: "no-cache",
    "x-accel-buffering": "no",  # keeps nginx from buffering the events
}


class EncodedResponse(Protocol):
    """Interface of a streamed response's encoder, by which `EventStream` ends the response at a shutdown."""

    def cut(self, error: UmgError) -> bytes | None:
        """Return the encoded events that end the response with the error; the encoder then returns nothing more. None
        if the format cannot express errors: the connection is closed.
        """
        ...

    @property
    def reservation(self) -> MemoryReservation | None:
        """Memory that is reserved for the response and released at its end; None if none is reserved."""
        ...


class EventStream(msgspec.Struct, eq=False):
    """One streamed response: writes encoded events at once, and sends a heartbeat after each pause in the stream."""

    exchange: HttpExchange
    encoded: EncodedResponse
    """Returns the events that end an incomplete response at a shutdown."""
    content_type: str
    heartbeat: bytes
    """Event or comment of the format that keeps an idle connection open."""
    settings: Settings
    is_ended: bool = False
    last_chunk: bytes = b"0\r\n\r\n"
    """End of the body; empty for HTTP/1.0, which has no chunks: the closed connection ends its body."""
    unsent: memoryview = NO_BYTES
    """Rest of the events that `write_large` sends."""
    sent_at: float = 0.0
    timer: asyncio.TimerHandle | None = None
    response: web.StreamResponse = SENT_LAST
    """Response for aiohttp, once it was sent."""

    async def begin(self, headers: Mapping[str, str], frames: bytes = b"") -> None:
        """Send the status line, the headers and the first events. Later failures can only be sent as events."""
        head = self._begin(headers)
        await self.exchange.connection.write(head, self._chunk(frames))

    def begin_early(self, metadata: Pairs) -> None:
        """Send the status line, the headers and a heartbeat, because the first events are late; no `begin` follows."""
        self.begin_now(response_headers(metadata))

    def begin_now(self, headers: Mapping[str, str]) -> None:
        """Send the status line, the headers and a heartbeat without waiting; do nothing if they were sent."""
        if not (self.exchange.is_begun or self.is_ended):
            head = self._begin(headers)
            self.exchange.connection.write_now(head + self._chunk(self.heartbeat))

    def _begin(self, headers: Mapping[str, str]) -> bytes:
        """Return the encoded status line and headers, and start the timer of the heartbeats."""
        exchange, own = self.exchange, CIMultiDict({hdrs.CONTENT_TYPE: self.content_type, **STREAM_HEADERS})
        own.extend(headers)  # metadata may have a name several times
        head, self.response = encode_head(exchange, own, None)
        if exchange.request.version < HttpVersion11:
            self.last_chunk = b""
        exchange.is_begun = True
        exchange.cut_off = self.cut_off
        self.sent_at = time.monotonic()
        seconds = self.settings.heartbeat_seconds
        self.timer = asyncio.get_running_loop().call_later(seconds, self._check_pause)
        return head

    async def write(self, frames: bytes) -> None:
        """Write encoded events; wait while the write buffer is full."""
        self.sent_at = time.monotonic()
        if not self.is_ended:
            await self.exchange.connection.write(self._chunk(frames))

    def is_relayed(self, encode: Callable[[bytes], bytes], frames: bytes) -> bool:
        """Write frames of the provider, after `encode`, if they can be written at once. Return whether they were."""
        connection = self.exchange.connection
        if self.is_ended or not self.exchange.is_begun or not connection.is_writable():
            return False
        self.sent_at = time.monotonic()
        connection.write_now(self._chunk(encode(frames)))
        return True

    async def write_large(self, frames: bytes) -> None:
        """Write many events in parts: of one large write, the transport copies all that the socket does not accept."""
        self.unsent = memoryview(frames)
        while part := bytes(self.unsent[:PART_BYTES]):
            self.unsent = self.unsent[PART_BYTES:]
            await self.write(part)

    def cut_off(self) -> None:
        """End the stream at once with a shutdown error; later writes of the handler send nothing."""
        if not self.is_ended:
            self.is_ended = True
            # the error must not be inside another event; a write that waits for the client has handed over its part
            if (end := self.encoded.cut(shutting_down())) is not None:
                self.exchange.connection.write_now(self._chunk(bytes(self.unsent) + end) + self.last_chunk)
            else:
                self.break_off()

    def break_off(self) -> None:
        """Close the connection without an orderly end of the body, which would mean that the body is complete."""
        self.is_ended = True
        if (transport := self.exchange.request.transport) is not None:
            transport.close()

    def _chunk(self, frames: bytes) -> bytes:
        """Return a chunk of the chunked transfer encoding; nothing for no bytes, since an empty chunk ends the body."""
        if not (frames and self.last_chunk):
            return frames
        return b"%x\r\n%b\r\n" % (len(frames), frames)

    def _check_pause(self) -> None:
        transport, pause = self.exchange.request.transport, time.monotonic() - self.sent_at
        if self.is_ended or transport is None or transport.is_closing():
            return
        seconds = self.settings.heartbeat_seconds
        if pause >= seconds:
            if not transport.get_write_buffer_size():  # a client with unread bytes needs no heartbeat
                transport.write(self._chunk(self.heartbeat))
            pause = 0.0
            self.sent_at = time.monotonic()
        self.timer = asyncio.get_running_loop().call_later(seconds - pause, self._check_pause)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        was_cut, self.is_ended = self.is_ended, True
        self.exchange.cut_off = None
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None  # its context refers to the call, which refers to this object
        if self.encoded.reservation is not None:
            self.encoded.reservation.release()
        if kind is None:
            await self.exchange.connection.write(b"" if was_cut else self.last_chunk)
