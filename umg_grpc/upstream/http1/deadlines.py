"""Time limits for providers, which are extended if this process itself is delayed."""

import asyncio
import math
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import msgspec

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb

TICK_SECONDS = 0.1
LATE_SECONDS = 0.02
"""Seconds after its due time from which on a timer counts as late, because the processor was busy with other work."""
WAIT_NAMES = {
    "connect": "a connection",
    "first_byte": "its first bytes",
    "idle": "the next part of its response",
    "total": "the whole response",
}


@dataclass(frozen=True)
class Deadlines:
    """Time limits of one call of a provider, in seconds."""

    connect: float
    first_byte: float  # of a stream: to the first byte, then to each keep-alive comment before its first event
    idle: float  # of a stream: between two reads
    total: float
    caller: float = math.inf  # the caller's own deadline

    @classmethod
    def all_of(cls, seconds: float) -> Self:
        """Return limits that are all `seconds`, for short calls of services of the operator."""
        return cls(connect=seconds, first_byte=seconds, idle=seconds, total=seconds)

    def within(self, seconds: float) -> Self:
        """Return a copy in which no limit is longer than `seconds`, the time until the caller's deadline. Raise
        UmgError(DEADLINE_EXCEEDED), which is no failure of the provider, if `seconds` is not positive.
        """
        if seconds <= 0:
            raise UmgError(pb.ERROR_REASON_DEADLINE_EXCEEDED, "the call's own deadline is over", deadline="total")
        return type(self)(
            min(self.connect, seconds),
            min(self.first_byte, seconds),
            min(self.idle, seconds),
            min(self.total, seconds),
            seconds,
        )

    def late(self, name: str, *, sent: bool = True) -> UmgError:
        """Return the error for the exceeded limit `name` (`connect`, `first_byte`, `idle`, `total`). It is
        UPSTREAM_TIMEOUT, or DEADLINE_EXCEEDED if the caller's deadline was the cause, which is no failure of the
        provider. `sent`: the provider may have received a part of the request.
        """
        seconds: float = getattr(self, name)
        if seconds >= self.caller:
            message = f"the call's own deadline was over before {WAIT_NAMES[name]} came; give it more time"
            return UmgError(pb.ERROR_REASON_DEADLINE_EXCEEDED, message, deadline=name)
        message = f"the provider was too slow: more than {seconds:g} s for {WAIT_NAMES[name]}; try again"
        error = UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, message, deadline=name)
        return error.with_failure(Failure.AMBIGUOUS if sent else Failure.NOT_SENT)


class LoopDelay:
    """Measurement of the delay of the event loop: the total seconds by which its timers fired late since `start`."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the measurement, in the running event loop."""
        self._tick(asyncio.get_running_loop(), due=None)

    def close(self) -> None:
        """Stop the measurement."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self, loop: asyncio.AbstractEventLoop, due: float | None) -> None:
        now = loop.time()
        if due is not None and now - due > LATE_SECONDS:
            self.seconds += now - due
        self._timer = loop.call_later(TICK_SECONDS, self._tick, loop, now + TICK_SECONDS)


class LoadAwareTimeout:
    """Context manager like `asyncio.timeout`, whose time is extended by the delays of this process."""

    def __init__(self, seconds: float, lateness: LoopDelay) -> None:
        self._seconds = seconds
        self._lateness = lateness
        self._timeout = asyncio.timeout(None)
        self._loop = asyncio.get_running_loop()

    def expired(self) -> bool:
        """Return whether the block was ended because its time limit was exceeded."""
        return self._timeout.expired()

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._began_late = self._lateness.seconds
        self._wait_until(self._loop.time() + self._seconds)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._timer.cancel()
        await self._timeout.__aexit__(kind, error, traceback)

    def _wait_until(self, due: float) -> None:
        self._timer = self._loop.call_at(due, self._on_timer, due)

    def _on_timer(self, due: float) -> None:
        """End the block, or extend its time if this process was delayed since the last check."""
        delay = max(self._loop.time() - due, self._lateness.seconds - self._began_late)
        self._began_late = self._lateness.seconds
        if delay > LATE_SECONDS:
            self._wait_until(self._loop.time() + delay)
        else:
            self._timeout.reschedule(self._loop.time())


class ExchangeDeadline(msgspec.Struct, eq=False):
    """Deadlines of one request and its response on the event loop's clock: one for both together, one for a read of a
    stream.

    The deadline of a read is extended by delays of this process. The other also applies while nothing is read, so that
    a caller which stops reading does not occupy the provider for ever.
    """

    deadlines: Deadlines
    _lateness: LoopDelay
    end: float  # of the whole exchange
    first: float  # of the reads before the stream has begun
    read_end: float = math.inf  # of the read that is waiting
    has_begun: bool = False  # whether the stream has begun: reads have the idle deadline from then on
    _began_late: float = 0.0

    def start_read(self, now: float) -> float:
        """Set the deadline of a read that begins at the time `now`. Return the earlier of both deadlines."""
        self._began_late = self._lateness.seconds
        self.read_end = now + self.deadlines.idle if self.has_begun else self.first
        return min(self.read_end, self.end)

    def extend_first(self, now: float) -> None:
        """Restart the time limit `first_byte` at `now`: the provider sent a keep-alive before the first event."""
        self.first = now + self.deadlines.first_byte

    def expired(self, now: float, due: float) -> str:
        """Return the name of the time limit that is exceeded at the time `now` (`total`, `idle` or `first_byte`); ""
        if none is. `due`: time for which the timer was set that fired now.
        """
        if now >= self.end:
            return "total"
        if now < self.read_end:
            return ""
        began_late, self._began_late = self._began_late, self._lateness.seconds
        if (delay := max(now - due, self._lateness.seconds - began_late)) > LATE_SECONDS:
            self.first = self.read_end = self.read_end + delay
            return ""
        return "idle" if self.has_begun else "first_byte"
