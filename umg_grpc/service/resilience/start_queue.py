"""Start queue: the process starts a few calls in each iteration of the event loop, and the others wait in a queue."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

AT_ONCE = 8
"""Maximum number of calls started in one iteration of the event loop. A call takes about a quarter of a millisecond in
all, so rejections, stream events and health checks wait about 2 milliseconds for the next iteration. With a smaller
number more calls wait in the queue for a later iteration, which costs a call 20 microseconds.
"""
ALWAYS = 64
"""Number of calls that may always wait, however slow the process is: a host that pauses the process is no overload."""


class StartQueue:
    """First-in, first-out queue of calls to start, which rejects calls that could not start soon.

    The queue is bounded by its length and by the time that its first call has waited (as in CoDel, RFC 8289: the time
    in the queue shows an overload, the length of the queue does not). Neither bound depends on a measured capacity, so
    nothing has to adapt when the load, the calls or the speed of the host change.
    """

    def __init__(self, most: int, wait: float, now: Callable[[], float] = time.thread_time) -> None:
        """Queue at most `most` calls. While the first one has waited over `wait` seconds, at most `ALWAYS`.

        `now`: seconds of processor time, so that a pause of the process does not count as waiting.
        """
        self._most = max(most, ALWAYS)
        self._wait = wait
        self._now = now
        self._queue = deque[tuple[asyncio.Future[None], float]]()  # each with its time of arrival
        self._starts_left = AT_ONCE  # calls that may still start in this iteration
        self._round_scheduled = False  # whether the next iteration is scheduled
        # Calls that were announced in this iteration and in the one before it, and are not in the queue yet.
        self._expected_now = self._expected_before = 0

    @property
    def waiting(self) -> int:
        """Number of calls in the queue."""
        return len(self._queue)

    def refuses(self) -> bool:
        """Return whether one more call would be rejected."""
        count = len(self._queue) + self._expected_now + self._expected_before
        if count < ALWAYS:
            return False
        return count >= self._most or (bool(self._queue) and self._now() - self._queue[0][1] > self._wait)

    def expect(self) -> None:
        """Count a call that calls `take` in this iteration or the next one, or never."""
        self._expected_now += 1
        self._begin_round()

    async def take(self) -> None:
        """Wait until the call may start."""
        if self._expected_before:
            self._expected_before -= 1
        elif self._expected_now:
            self._expected_now -= 1
        self._begin_round()
        if self._starts_left > 0 and not self._queue:
            self._starts_left -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append((turn, self._now()))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._starts_left += 1  # for another call of this iteration
            raise

    def _begin_round(self) -> None:
        if not self._round_scheduled:
            self._round_scheduled = True
            asyncio.get_running_loop().call_soon(self._next_round)

    def _next_round(self) -> None:
        was_idle = self._starts_left == AT_ONCE and not (self._expected_now or self._expected_before)
        self._expected_before, self._expected_now = self._expected_now, 0
        self._starts_left = AT_ONCE
        while self._starts_left and self._queue:
            turn, _ = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                self._starts_left -= 1
        self._round_scheduled = False
        if not was_idle:
            self._begin_round()
