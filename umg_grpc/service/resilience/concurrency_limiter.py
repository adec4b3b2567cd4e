"""Concurrency limiter: at most N calls in flight and M waiting; the rest are rejected at once."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from umg_grpc.base.errors import Failure, UmgError, overloaded

MIN_SAMPLES = 8
"""Ended calls from which on the mean duration of calls is computed; with more slots, the number of slots."""
WAIT_MARGIN = 2.0
"""Factor of a call's time limit above its expected wait, since slots are released at uneven intervals."""


class ConcurrencyLimiter:
    """Limit on the calls in flight. Waiting calls get slots in the order of their arrival; a call whose expected wait
    exceeds its time limit is rejected at once.
    """

    def __init__(
        self, limit: int, queue: int, wait: float, resource: str, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Allow `limit` calls in flight and `queue` waiting calls, each up to `wait` seconds. `resource`: name of the
        limited resource in error messages, for example `the gateway`. `now`: returns monotonic seconds.
        """
        self.free = limit
        """Number of free slots."""
        self._queue = queue
        self._wait = wait
        self._resource = resource
        self._now = now
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self.limit = limit
        self.bounds = (limit, queue, wait)
        # For the mean duration of a call: the seconds that slots were in use, as the times of releases minus those of
        # acquisitions (for the slots in use, the current time is missing), and the number of slots released.
        self._busy_seconds = 0.0
        self._released = 0
        self._max_released = 2 * max(MIN_SAMPLES, limit)
        self._blocked_from = 0.0  # when all slots were taken, or the last one was passed on since then

    @property
    def taken(self) -> int:
        """Number of slots in use, which is the number of calls in flight."""
        return self.limit - self.free

    @property
    def waiting(self) -> int:
        """Number of waiting calls."""
        return len(self._waiting)

    def refuses(self, seconds: float = float("inf")) -> bool:
        """Return whether a call would be rejected at once. `seconds`: time for which the call can wait."""
        if self.free > 0:
            return False
        within = min(self._wait, seconds)
        if len(self._waiting) >= self._queue or within <= 0:
            return True
        # The mean duration does not show calls that hold their slots for long, for example streams that sleep.
        is_blocked = bool(self._waiting) and self._now() - self._blocked_from > within
        return is_blocked or WAIT_MARGIN * self.expected_wait > within

    async def take(self, seconds: float = float("inf")) -> None:
        """Take a slot within `seconds`; `release` returns it. Raise UmgError(UNAVAILABLE) if that takes too long."""
        if self.try_take():
            return
        if self.refuses(seconds):
            raise self._full_error()
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[bool] = loop.create_future()
        self._waiting.append(turn)
        timer = loop.call_later(min(self._wait, seconds), _reject, turn)
        try:
            granted = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.result():
                self.release()
            self._remove(turn)
            raise
        finally:
            timer.cancel()
        if not granted:
            self._remove(turn)
            raise self._full_error()

    def try_take(self) -> bool:
        """Take a slot if one is free, and return whether one was. The caller must release it by `release`."""
        if self.free <= 0:
            return False
        self.free -= 1
        now = self._now()
        self._busy_seconds -= now
        if not self.free:
            self._blocked_from = now
        return True

    def release(self) -> None:
        """Release a slot: pass it to the call that has waited longest, or mark it as free."""
        self._released += 1
        if self._released >= self._max_released:
            self._released //= 2
            self._busy_seconds -= self._all_busy_seconds / 2
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(True)
                self._blocked_from = self._now()
                return
        self.free += 1
        self._busy_seconds += self._now()

    def _remove(self, turn: asyncio.Future[bool]) -> None:
        with suppress(ValueError):  # `release` may have removed it already
            self._waiting.remove(turn)

    @property
    def _all_busy_seconds(self) -> float:
        return self._busy_seconds + self.taken * self._now()

    @property
    def expected_wait(self) -> float:
        """Estimated seconds until a call that joins the queue now gets a slot. They grow while no slot is released."""
        length = self._all_busy_seconds / max(1, self._released)
        return length / self.limit * (len(self._waiting) + 1)

    def _full_error(self) -> UmgError:
        return overloaded(f"{self._resource} has as many calls under way as it takes").with_failure(Failure.NOT_SENT)


def _reject(turn: asyncio.Future[bool]) -> None:
    if not turn.done():
        turn.set_result(False)
