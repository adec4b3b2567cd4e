"""Requests a minute."""

import math
import time
from collections import deque
from collections.abc import Callable

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter

from umg_grpc.access.caller import Caller
from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb


class RequestLimits:
    """Holds each caller to the requests a minute of its key, in this process.

    The window moves: in no span of 60 seconds are more let in than the limit, and `retry_after_seconds` is when the
    next one will be. A refused request does not count. Nothing runs in the background.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._windows = _Windows(now)
        self._limiter = MovingWindowRateLimiter(self._windows)

    @property
    def remembered(self) -> int:
        """How many callers take up memory: those of the last two minutes."""
        return len(self._windows)

    async def admit(self, caller: Caller) -> None:
        """Counts a request. Raises UmgError(RATE_LIMITED)."""
        if caller.requests_per_minute is None:
            return
        limit = RateLimitItemPerMinute(caller.requests_per_minute)
        if await self._limiter.hit(limit, caller.key_id):
            return
        window = await self._limiter.get_window_stats(limit, caller.key_id)
        seconds = max(1, math.ceil(window.reset_time - self._now()))
        raise UmgError(
            pb.ERROR_REASON_RATE_LIMITED,
            f"this API key has made its {limit.amount} requests of a minute; try again in {seconds} s",
            retry_after_seconds=str(seconds),
            limit=str(limit.amount),
        )


class _Windows(MemoryStorage):
    """The library's memory, without the task that it starts at each hit to tidy up, and on a clock that is given."""

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self._now = now
        self._windows: dict[str, deque[float]] = {}
        self._tidy_at = 0.0

    def __len__(self) -> int:
        return len(self._windows)

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        now = self._now()
        if now >= self._tidy_at:
            self._tidy_at = now + expiry
            self._windows = {key: times for key, times in self._windows.items() if times and times[-1] > now - expiry}
        times = self._window(key, now - expiry)
        if len(times) + amount > limit:
            return False
        times.extend([now] * amount)
        self._windows[key] = times
        return True

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        now = self._now()
        times = self._window(key, now - expiry)
        return (times[0] if times else now, len(times))

    def _window(self, key: str, start: float) -> deque[float]:
        """When the requests after `start` came, the oldest first."""
        times = self._windows.get(key) or deque()
        while times and times[0] <= start:
            times.popleft()
        return times
