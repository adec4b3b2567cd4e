"""Number of gateway processes that share a Redis. Each process remembers the number while Redis is unavailable."""

import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from umg_grpc.store.redis_client import Redis, RedisUnavailable
from umg_grpc.store.repeated_background_tasks import Background

if TYPE_CHECKING:
    from redis.asyncio import Redis as Client

PROCESSES_KEY = "umg:processes"
PRESENCE_SECONDS = 1.0
"""Time between two commands of each process. They also show each process soon that Redis has lost its data."""
ABSENT_SECONDS = 10
"""Time after which a process without a command does not count any more."""
REMEMBERED_SECONDS = 60.0
"""Time for which the largest number of processes counts: right after a restart of Redis not all have come back."""

# Atomic, and by the server's clock. KEYS[1]: the processes by the time of their last command, in seconds. ARGV: the
# process, and the seconds after which a process is absent. Returns the number of processes.
PRESENCE_SCRIPT = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return redis.call('ZCARD', KEYS[1])
"""


class Presence:
    """Presence of this process in Redis, and the number of all present processes, from `start` to `aclose`."""

    def __init__(
        self, redis: Redis, on_this_machine: Callable[[], int] = lambda: 1, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Create the presence of a process. `on_this_machine`: returns the number of processes that share the data
        folder; it is used until Redis has answered; `now`: returns seconds of a monotonic clock.
        """
        self._redis, self._on_this_machine, self._now = redis, on_this_machine, now
        self._process = secrets.token_hex(8)
        self._counted: list[tuple[float, int]] = []  # numbers of the last minute with their times
        self._background: Background | None = None

    def start(self) -> None:
        """Start to send the presence regularly, the first time now."""
        self._background = Background("presence in Redis", self.send, every=PRESENCE_SECONDS)
        self._background.wake()

    @property
    def processes(self) -> int:
        """Largest number of processes in the last minute before the last response of Redis; at least 1."""
        if not self._counted:
            return max(1, self._on_this_machine())
        return max(count for _, count in self._counted)

    async def send(self) -> None:
        """Send the presence of this process, and receive the number of all processes. Do nothing without Redis."""
        try:
            count: int = await self._redis.run(self._run)
        except RedisUnavailable:
            return
        now = self._now()
        kept = [each for each in self._counted if each[0] > now - REMEMBERED_SECONDS and each[1] > count]
        self._counted = [*kept, (now, count)]

    async def aclose(self) -> None:
        """Stop sending the presence."""
        if self._background is not None:
            await self._background.aclose(PRESENCE_SECONDS)

    async def _run(self, client: "Client") -> int:
        return int(await client.eval(PRESENCE_SCRIPT, 1, PROCESSES_KEY, self._process, str(ABSENT_SECONDS)))
