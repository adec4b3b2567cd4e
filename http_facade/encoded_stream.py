"""Encoding of a streamed text answer into the caller's format, within a memory budget."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from threading import Lock

from umg_grpc.errors import Failure, UmgError, overloaded
from umg_grpc.v1 import pb
from umg_grpc.wire.core.stream_memory import FREE_BYTES, Budget, Reservation
from umg_grpc.wire.text_format import StreamEncoder


class EncodedStream:
    """Encoder of one streamed answer, which limits the memory for the text that its last events repeat.

    In some formats the last events contain the complete answer again. The bytes kept for them count against the budget
    until `release`; large last events are encoded in a thread.
    """

    def __init__(self, encoder: StreamEncoder, budget: Budget) -> None:
        self._encoder = encoder
        self._budget = budget
        self._lock = Lock()  # held by a thread while it encodes the last events
        self.is_cut = False  # whether a shutdown has ended the answer
        self._reservation: Reservation | None = None  # once the encoder keeps more than is free

    def feed(self, message: pb.StreamGenerateResponse) -> bytes:
        """Return the encoded events of one message of the service.

        Raises UmgError if the text kept for the last events exceeds the memory budget: UPSTREAM_FAILED for the limit of
        one answer, UNAVAILABLE for that of all answers together.
        """
        frames = self._encoder.feed(message)
        if (retained := self._encoder.retained_bytes) > FREE_BYTES:
            self._reservation = self._reservation or Reservation(self._budget)
            if not self._reservation.hold(retained):
                raise self._too_large()
        return frames

    async def close(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send the events that end a complete answer. If they are large, each part is encoded after the previous one
        was sent.
        """
        if self._encoder.retained_bytes <= FREE_BYTES:
            if frames := self._encoder.close():
                await send(frames)
            return
        parts = self._encoder.closing()
        while (part := await asyncio.to_thread(self._next, parts)) is not None:
            await send(part)

    async def error(self, error: UmgError) -> bytes:
        """Return the events that end a failed answer; empty if `cut` has already ended it."""
        is_large = self._encoder.retained_bytes > FREE_BYTES
        return await asyncio.to_thread(self._error, error) if is_large else self._error(error)

    def cut(self, error: UmgError) -> bytes:
        """Return the events that end the answer at once with a shutdown error; later calls return nothing.

        Blocks for some milliseconds if a thread is encoding a part of the last events.
        """
        self.is_cut = True
        with self._lock:
            return self._encoder.error(error)

    def release(self) -> None:
        """Release the memory that is reserved for the last events."""
        if self._reservation is not None:
            self._reservation.release()

    def _error(self, error: UmgError) -> bytes:
        with self._lock:
            return b"" if self.is_cut else self._encoder.error(error)

    def _next(self, parts: Iterator[bytes]) -> bytes | None:
        with self._lock:
            return None if self.is_cut else next(parts, None)

    def _too_large(self) -> UmgError:
        max_bytes = self._budget.per_answer
        if self._encoder.retained_bytes <= max_bytes:
            return overloaded("the gateway has as many large answers under way as it takes")
        message = (
            f"the answer has more than {max_bytes >> 20} MiB that this format repeats at its end or shows as a whole; "
            "ask for a shorter one, or for chat completions"
        )
        return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.TOO_LARGE)
