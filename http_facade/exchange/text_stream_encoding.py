"""Encoding of a streamed text response into the caller's format, within a memory budget."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from threading import Lock

import msgspec

from umg_grpc.base.errors import Failure, UmgError, overloaded
from umg_grpc.v1 import pb
from umg_grpc.wire.core.stream_memory_limits import FREE_BYTES, MemoryReservation, StreamMemory
from umg_grpc.wire.text_format_interface import StreamEncoder


class EncodedStream(msgspec.Struct, eq=False):
    """Encoder of one streamed response. In some formats the last events repeat the text: the bytes kept for them count
    against the memory budget until the response ends, and large last events are encoded in a thread.
    """

    encoder: StreamEncoder
    budget: StreamMemory
    lock: Lock = msgspec.field(default_factory=Lock)
    """Held by a thread while it encodes the last events."""
    is_cut: bool = False
    """Whether a shutdown has ended the response."""
    reservation: MemoryReservation | None = None
    """Memory of the last events, once it is more than is free."""

    def reserve(self) -> None:
        """Reserve memory for the text that is kept for the last events, if it exceeds the bytes free for each response.
        Raises UmgError: UPSTREAM_FAILED beyond the limit of one response, UNAVAILABLE beyond that of all.
        """
        self.reservation = self.reservation or MemoryReservation(self.budget)
        if not self.reservation.hold(self.encoder.retained_bytes):
            raise self._too_large()

    async def close(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send the last events of a complete response by `send`, which waits while the client is slow. Large events are
        encoded in parts: each part after the previous one was sent.
        """
        if self.encoder.retained_bytes <= FREE_BYTES:
            if frames := self.encoder.close():
                await send(frames)
            return
        parts = self.encoder.closing()
        while (part := await asyncio.to_thread(self._next, parts)) is not None:
            await send(part)

    async def error(self, error: UmgError) -> bytes:
        """Return the events that end a failed response; empty if `cut` has already ended it."""
        is_large = self.encoder.retained_bytes > FREE_BYTES
        return await asyncio.to_thread(self._error, error) if is_large else self._error(error)

    def cut(self, error: UmgError) -> bytes:
        """Return the events that end the response at once with a shutdown error; later calls return nothing. Blocks for
        some milliseconds if a thread is encoding a part of the last events.
        """
        self.is_cut = True
        with self.lock:
            return self.encoder.error(error)

    def _error(self, error: UmgError) -> bytes:
        with self.lock:
            return b"" if self.is_cut else self.encoder.error(error)

    def _next(self, parts: Iterator[bytes]) -> bytes | None:
        with self.lock:
            return None if self.is_cut else next(parts, None)

    def _too_large(self) -> UmgError:
        max_bytes = self.budget.per_response
        if self.encoder.retained_bytes <= max_bytes:
            return overloaded("the gateway has as many large responses under way as it takes")
        message = (
            f"the response has more than {max_bytes >> 20} MiB that this format repeats at its end or shows whole; "
            "ask for a shorter one, or for chat completions"
        )
        return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.TOO_LARGE)
