"""Rate limits: requests per minute of each API key or model."""

import time
from collections import deque
from collections.abc import Callable, Iterable

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter

from umg_grpc.access.limit_errors import requests_exceeded
from umg_grpc.access.limit_subjects import Limited
from umg_grpc.access.per_process_limit_shares import Processes, one_process, share_alone
from umg_grpc.access.redis_request_limits import SharedRequestLimits
from umg_grpc.store.redis_client import Redis, RedisUnavailable
from umg_grpc.wire.core.rate_limit_headers import LimitStatus

MIN_RETRY_SECONDS = 1.0


class RequestLimits:
    """Limiter of requests per minute of each key or model, in this process or, with Redis, in all processes that share
    it.

    The window slides: no span of 60 seconds has more requests than the limit. Rejected requests do not count, and the
    error states the time until the next request is admitted.

    The counts of this process are checked first, also with Redis: a rejection by them needs no command. While Redis is
    unavailable, they are compared with this process's share of the limit.
    """

    def __init__(
        self, now: Callable[[], float] = time.monotonic, redis: Redis | None = None, processes: Processes = one_process
    ) -> None:
        """Create a limiter. `now`: monotonic seconds. `processes`: returns the number of processes that share Redis."""
        self._now = now
        self._processes = processes
        self._windows = _Windows(now)
        self._limiter = MovingWindowRateLimiter(self._windows)
        self._shared = None if redis is None else SharedRequestLimits(redis, now, self._times)

    @property
    def remembered(self) -> int:
        """Number of keys and models whose requests are in memory, those of the last two minutes."""
        return len(self._windows)

    async def admit(self, limited: Limited) -> None:
        """Count a request of the key or model. Raises UmgError(RATE_LIMITED), and counts nothing, at the limit."""
        if limited.requests_per_minute is None:
            return
        limit = RateLimitItemPerMinute(limited.requests_per_minute)
        if not await self._limiter.hit(limit, limited.limit_id):
            window = await self._limiter.get_window_stats(limit, limited.limit_id)
            raise requests_exceeded(limited.limit_id, limit.amount, window.reset_time - self._now())
        if self._shared is None:
            return
        try:
            seconds = await self._shared.hit(limited.limit_id, limit.amount)
        except RedisUnavailable:
            seconds = self._seconds_alone(limit, limited.limit_id)
            if seconds == 0:
                self._shared.count_alone(limited.limit_id)
        if seconds > 0:
            self._windows.take_back(limit.key_for(limited.limit_id))
            raise requests_exceeded(limited.limit_id, limit.amount, seconds)

    def _seconds_alone(self, limit: RateLimitItemPerMinute, limit_id: str) -> float:
        """Return the seconds until a counted request is admitted without Redis; 0 within the share of this process."""
        if self._shared is None:
            return 0.0
        now, remaining = self._now(), self._shared.last_remaining(limit_id, limit.amount)
        share = share_alone(limit.amount, self._processes(), remaining, now)
        times = [
            each for each in self._windows.times(limit.key_for(limit_id), limit.get_expiry()) if each > share.since
        ]
        if len(times) <= share.amount:
            return 0.0
        return max(times[0] + limit.get_expiry() - now, MIN_RETRY_SECONDS)

    def _times(self, limit_id: str, amount: int) -> Iterable[float]:
        limit = RateLimitItemPerMinute(amount)
        return self._windows.times(limit.key_for(limit_id), limit.get_expiry())

    async def aclose(self) -> None:
        """Return the requests that this process has leased in Redis and not used, within a bounded time."""
        if self._shared is not None:
            await self._shared.aclose()

    def status(self, limited: Limited) -> LimitStatus | None:
        """Return the limit, the remaining requests, and the seconds until all are available; None without a limit."""
        if limited.requests_per_minute is None:
            return None
        limit = RateLimitItemPerMinute(limited.requests_per_minute)
        count, newest = self._windows.count(limit.key_for(limited.limit_id), limit.get_expiry())
        remaining = limit.amount - count
        if self._shared is not None:
            remaining = min(remaining, self._shared.remaining(limited.limit_id, limit.amount))
        return LimitStatus(limit.amount, max(0, remaining), newest + limit.get_expiry() - self._now())


class _Windows(MemoryStorage):
    """Sliding windows of request times in memory: a storage for the `limits` library, with an exchangeable clock. The
    library's own class starts a clean-up task at each request.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self._now = now
        self._windows: dict[str, deque[float]] = {}
        self._clean_up_at = 0.0

    def __len__(self) -> int:
        return len(self._windows)

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        now = self._now()
        if now >= self._clean_up_at:
            self._clean_up_at = now + expiry
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

    def count(self, key: str, expiry: int) -> tuple[int, float]:
        """Return the number of requests of `key` in the last `expiry` seconds, and the time of the newest request.

        Without requests the time is the beginning of that span.
        """
        start = self._now() - expiry
        times = self._window(key, start)
        return len(times), times[-1] if times else start

    def times(self, key: str, expiry: int) -> list[float]:
        """Return the times of the requests of `key` in the last `expiry` seconds, oldest first."""
        return [*self._window(key, self._now() - expiry)]

    def take_back(self, key: str) -> None:
        """Remove the newest request of `key` from its window, because Redis has rejected the request."""
        if times := self._windows.get(key):
            times.pop()

    def _window(self, key: str, start: float) -> deque[float]:
        times = self._windows.get(key) or deque()
        while times and times[0] <= start:
            times.popleft()
        return times
