"""Start queue. In each iteration of the event loop the process starts a few calls; other calls wait in the queue."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

AT_ONCE = 16
"""Maximum number of calls started in one iteration of the event loop. A call takes about a quarter of a millisecond in
all, so rejections, stream events and health checks wait about 4 milliseconds for the next iteration. With a smaller
number more calls wait in the queue for a later iteration, which costs a call 20 microseconds.
"""
FEW_STARTS = AT_ONCE // 2
"""If fewer calls than this number may still start in the iteration, the next iteration is scheduled at once."""
ALWAYS_STARTED = 64
"""Number of calls that may wait even if the process is slow: a host that pauses the process is no overload."""


WINDOW_SECONDS = 30.0


@dataclass(frozen=True)
class WarmUp:
    """Period after the first call in which long waits reject no calls, since modules are being loaded."""

    seconds: float
    max_waiting: int
    """Maximum number of calls that may wait during the period."""


class RecentMaximum:
    """Largest of the values that were recorded in the last 30 to 60 seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._latest = self._before = 0.0  # of the current window and of the one before it
        self._ends = clock() + WINDOW_SECONDS

    @property
    def value(self) -> float:
        """Largest recent value; 0 if there is no value."""
        self._rotate()
        return max(self._latest, self._before)

    def add(self, value: float) -> None:
        """Record a value, which counts for the next 30 to 60 seconds."""
        self._rotate()
        self._latest = max(self._latest, value)

    def _rotate(self) -> None:
        now = self._clock()
        if now >= self._ends:
            self._before = self._latest if now < self._ends + WINDOW_SECONDS else 0.0
            self._latest, self._ends = 0.0, now + WINDOW_SECONDS


class _Waiting(NamedTuple):
    """Call that waits for its start: the future that is set at its start, and its arrival. The arrival is stored in
    processor time, in wall time, and as the number of calls that waited before it.
    """

    turn: "asyncio.Future[None]"
    arrived_now: float
    arrived_clock: float
    before: int


class StartQueue:
    """First-in, first-out queue of calls to start, which rejects calls that could not start soon. It is limited by its
    length and by the time that its first call has waited (as in CoDel, RFC 8289: the time in the queue shows an
    overload, the length of the queue does not). The wait of the first call alone shows an overload too late: later
    calls will wait longer. So after a wait the queue has room for as many calls as start in the permitted time
    (Little's law, by the wait of the first call and the number of calls before it). An empty queue has all of its room
    again.
    """

    def __init__(
        self,
        max_waiting: int,
        wait: float,
        now: Callable[[], float] = time.thread_time,
        *,
        warm_up: WarmUp | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a queue of at most `max_waiting` calls; at most `ALWAYS_STARTED` while the first has waited for more
        than `wait` seconds. `now`: seconds of processor time, so that a pause of the process does not count as waiting.
        `warm_up`: period without rejections for long waits. `clock`: seconds of wall time.
        """
        self._max_waiting = max(max_waiting, ALWAYS_STARTED)
        self._wait = wait
        self._now = now
        self._clock = clock
        self._warm_up = warm_up or WarmUp(0.0, 0)
        self._is_warm_from: float | None = None  # set by the first call
        self._lag, self._delay = RecentMaximum(clock), RecentMaximum(clock)
        self._queue = deque[_Waiting]()
        self._room = self._max_waiting
        """Number of calls that may wait, by the last wait; the maximum if the queue was empty since."""
        self._starts_left = AT_ONCE  # calls that may still start in this iteration
        self._round_scheduled = False  # whether the next iteration is scheduled
        # Calls that were announced in this iteration and in the one before it, and are not in the queue yet.
        self._expected_now = self._expected_before = 0

    @property
    def waiting(self) -> int:
        """Number of calls in the queue."""
        return len(self._queue)

    @property
    def lag(self) -> float:
        """Longest wait of a call in the last minute, in seconds of processor time; the queue is limited by it."""
        return max(self._lag.value, self._now() - self._queue[0].arrived_now if self._queue else 0.0)

    @property
    def delay(self) -> float:
        """Longest wait of a call in the last minute, in seconds of wall time, pauses of the process included."""
        return max(self._delay.value, self._clock() - self._queue[0].arrived_clock if self._queue else 0.0)

    def expect(self) -> bool:
        """Announce a call that will soon call `may_start`. Return False if the queue is full: the call is rejected."""
        count = len(self._queue) + self._expected_now + self._expected_before
        if count >= ALWAYS_STARTED and self._is_full(count):
            return False
        self._expected_now += 1
        # fewer calls need no iteration of their own: they are forgotten in those of the next calls
        if count >= AT_ONCE and not self._round_scheduled:
            self._schedule_round()
        return True

    def may_start(self) -> bool:
        """Return whether a call may start in this iteration, and count it then; otherwise it awaits `wait_turn`."""
        if self._expected_before:
            self._expected_before -= 1
        elif self._expected_now:
            self._expected_now -= 1
        if self._queue or not self._starts_left:
            return False
        self._starts_left -= 1
        # a few calls need no iteration of their own: the starts that they leave suffice for the next ones
        if not self._round_scheduled and (self._starts_left < FEW_STARTS or self._is_warm_from is None):
            self._schedule_round()
        return True

    async def wait_turn(self) -> None:
        """Wait until a call that could not start at once may start."""
        if not self._round_scheduled:
            self._schedule_round()
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(_Waiting(turn, self._now(), self._clock(), len(self._queue)))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._starts_left += 1  # for another call of this iteration
            raise

    def _is_full(self, count: int) -> bool:
        if self._is_warm_from is None or self._clock() < self._is_warm_from:
            return count >= max(self._max_waiting, self._warm_up.max_waiting)
        is_late = bool(self._queue) and self._now() - self._queue[0].arrived_now > self._wait
        return is_late or count >= self._room

    def _schedule_round(self) -> None:
        if self._is_warm_from is None:
            self._is_warm_from = self._clock() + self._warm_up.seconds
        self._round_scheduled = True
        asyncio.get_running_loop().call_soon(self._begin_round)

    def _begin_round(self) -> None:
        """Begin an iteration of the event loop: start the first calls in the queue, as many as may start in it."""
        self._expected_before, self._expected_now = self._expected_now, 0
        self._starts_left = AT_ONCE
        if self._queue:
            self._start_waiting()
        elif not self._expected_before:
            self._round_scheduled = False
            return
        asyncio.get_running_loop().call_soon(self._begin_round)

    def _fitting(self, before: int, waited: float) -> int:
        started = before + AT_ONCE
        if waited * (self._max_waiting + AT_ONCE) <= started * self._wait:
            return self._max_waiting
        return max(ALWAYS_STARTED, round(started * self._wait / waited) - AT_ONCE)

    def _start_waiting(self) -> None:
        first = self._queue[0]
        waited = self._now() - first.arrived_now
        self._lag.add(waited)
        self._delay.add(self._clock() - first.arrived_clock)
        self._room = self._fitting(first.before, waited)
        while self._starts_left and self._queue:
            turn = self._queue.popleft().turn
            if not turn.done():
                turn.set_result(None)
                self._starts_left -= 1
        if not self._queue:
            self._room = self._max_waiting
