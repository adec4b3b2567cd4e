"""Deadlines of providers that do not expire because of delays of this process itself."""

import asyncio
import math
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from umg_grpc.errors import Failure, UmgError
from umg_grpc.v1 import pb

TICK_SECONDS = 0.1
LATE_SECONDS = 0.02
"""Delay from which on a timer counts as late, because this process or another one occupied the processor."""
WAITS = {
    "connect": "a connection",
    "first_byte": "its first bytes",
    "idle": "the next part of its answer",
    "total": "the whole answer",
}


@dataclass(frozen=True)
class Deadlines:
    """Time limits for a provider, in seconds."""

    connect: float
    first_byte: float  # of a stream: from sending to its first event; keep-alive comments do not count
    idle: float  # of a stream: between two reads
    total: float
    caller: float = math.inf  # the caller's own deadline

    def within(self, seconds: float) -> Self:
        """Return these deadlines, each limited to the caller's `seconds`. Raise UmgError(DEADLINE_EXCEEDED),
        which counts as no failure of the provider, when no time is left.
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
        """Return UPSTREAM_TIMEOUT for the deadline of this name, or DEADLINE_EXCEEDED, which counts as no failure of
        the provider, if the caller's own deadline came first. `sent`: whether the provider may have received something.
        """
        seconds: float = getattr(self, name)
        if seconds >= self.caller:
            message = f"the call's own deadline was over before {WAITS[name]} came; give it more time"
            return UmgError(pb.ERROR_REASON_DEADLINE_EXCEEDED, message, deadline=name)
        message = f"the provider was too slow: more than {seconds:g} s for {WAITS[name]}; try again"
        error = UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, message, deadline=name)
        return error.with_failure(Failure.AMBIGUOUS if sent else Failure.NOT_SENT)


class LoopDelay:
    """Sum of the seconds by which timers of the event loop fire too late, measured from `start` to `close`."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start to measure the delay of the event loop."""
        self._tick(asyncio.get_running_loop(), due=None)

    def close(self) -> None:
        """Stop measuring the delay of the event loop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self, loop: asyncio.AbstractEventLoop, due: float | None) -> None:
        now = loop.time()
        if due is not None and now - due > LATE_SECONDS:
            self.seconds += now - due
        self._timer = loop.call_later(TICK_SECONDS, self._tick, loop, now + TICK_SECONDS)


class LoadAwareTimeout:
    """Timeout like `asyncio.timeout` that does not count the seconds by which the process is late in the meantime."""

    def __init__(self, seconds: float, lateness: LoopDelay) -> None:
        self._seconds = seconds
        self._lateness = lateness
        self._timeout = asyncio.timeout(None)
        self._loop = asyncio.get_running_loop()

    def expired(self) -> bool:
        """Return whether the timeout expired."""
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
        """Extend the wait by the time by which the process was late since the last check, else end the wait."""
        delay = max(self._loop.time() - due, self._lateness.seconds - self._began_late)
        self._began_late = self._lateness.seconds
        if delay > LATE_SECONDS:
            self._wait_until(self._loop.time() + delay)
        else:
            self._timeout.reschedule(self._loop.time())


class ExchangeDeadline:
    """Deadlines of one exchange on the event loop's clock: of all of it, and of a stream's read while one is waiting.

    Seconds by which this process is late extend the deadline of a read. The total deadline also applies while no read
    is waiting: a caller that stopped reading does not occupy the provider for ever.
    """

    read_end: float = math.inf  # of the read that is waiting
    has_begun: bool = False  # whether the stream has begun: reads have the idle deadline from then on
    _began_late: float = 0.0

    def __init__(self, deadlines: Deadlines, lateness: LoopDelay, started: float) -> None:
        self.deadlines = deadlines
        self.end = started + deadlines.total
        self.first = started + deadlines.first_byte  # of the reads before the stream has begun
        self._lateness = lateness

    def start_read(self, now: float) -> float:
        """Set the deadline of a read. Return the time at which the earliest deadline expires."""
        self._began_late = self._lateness.seconds
        self.read_end = now + self.deadlines.idle if self.has_begun else self.first
        return min(self.read_end, self.end)

    def expired(self, now: float, due: float) -> str:
        """Return the name of the deadline that expired, else "". `due`: when the timer that fired was due."""
        if now >= self.end:
            return "total"
        if now < self.read_end:
            return ""
        began_late, self._began_late = self._began_late, self._lateness.seconds
        if (delay := max(now - due, self._lateness.seconds - began_late)) > LATE_SECONDS:
            self.first = self.read_end = self.read_end + delay
            return ""
        return "idle" if self.has_begun else "first_byte"
