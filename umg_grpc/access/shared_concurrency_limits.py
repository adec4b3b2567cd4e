"""Limits of concurrent requests that the replicas share in Redis."""

import itertools
import secrets
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from umg_grpc.store.background_tasks import Background
from umg_grpc.store.redis import Redis, RedisUnavailable

if TYPE_CHECKING:
    from redis.asyncio import Redis as Client
    from redis.commands.core import AsyncScript

PREFIX = "umg:running:"
LEASE_SECONDS = 30
RENEW_SECONDS = 5.0
CLOSE_SECONDS = 1.0

# Atomic, and by the server's clock. KEYS[1]: the calls in flight, by the time at which their lease ends. ARGV: the
# limit, the seconds of a lease, and the id of the call. Returns 1 if it is admitted, else 0.
ACQUIRE = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then
  return 0
end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
"""
# KEYS[1]: as above. ARGV: the seconds of a lease, and the ids of calls in flight, whose leases begin again.
RENEW = """
local ends = redis.call('TIME')[1] + ARGV[1]
for place = 2, #ARGV do
  redis.call('ZADD', KEYS[1], ends, ARGV[place])
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return 0
"""


class SharedConcurrencyLimits:
    """Concurrent requests of all keys over all processes that share a Redis, until `aclose`.

    Each call holds a lease, which the process renews while the call is in flight; those of a process that was killed
    end after half a minute. No call waits for the return of its lease.
    """

    def __init__(self, redis: Redis, now: Callable[[], float] = time.monotonic) -> None:
        self._redis = redis
        self._now = now
        self._renew_at = now() + RENEW_SECONDS
        self._process, self._numbers = secrets.token_hex(8), itertools.count()
        self._running: dict[str, str] = {}  # id of the call -> id of its key
        self._ended: dict[str, str] = {}
        self._acquire: AsyncScript | None = None
        self._renew: AsyncScript | None = None
        self._returns: Background | None = None

    async def acquire(self, key_id: str, limit: int) -> str | None:
        """Return the id of the call's lease, which `release` ends; None for a call beyond the limit."""
        if self._returns is None:
            self._returns = Background("leases of calls", self.synchronize, every=RENEW_SECONDS, at_end=True)
        call_id = f"{self._process}:{next(self._numbers)}"
        self._running[call_id] = key_id
        try:
            admitted = await self._redis.run(lambda client: self._run_acquire(client, key_id, limit, call_id))
        except RedisUnavailable:
            return call_id
        except BaseException:
            self.release(call_id)
            raise
        if not admitted:
            del self._running[call_id]
        return call_id if admitted else None

    def release(self, call_id: str) -> None:
        """End a lease."""
        key_id = self._running.pop(call_id, None)
        if key_id is not None:
            self._ended[call_id] = key_id
            if self._returns is not None:
                self._returns.wake()

    async def synchronize(self) -> None:
        """Return the leases of calls that ended, and renew the others."""
        ended, self._ended = self._ended, {}
        try:
            for key_id, calls in _by_key(ended).items():
                await self._redis.run(partial(_remove, key_id=key_id, calls=calls))
            if self._now() < self._renew_at:
                return
            self._renew_at = self._now() + RENEW_SECONDS
            for key_id, calls in _by_key(self._running).items():
                await self._redis.run(partial(self._run_renew, key_id=key_id, calls=calls))
        except RedisUnavailable:
            return  # the leases end by themselves

    async def aclose(self) -> None:
        """Return the leases of calls that ended within a bounded time."""
        if self._returns is not None:
            await self._returns.aclose(CLOSE_SECONDS)

    async def _run_acquire(self, client: "Client", key_id: str, limit: int, call_id: str) -> bool:
        if self._acquire is None:
            self._acquire = client.register_script(ACQUIRE)
        return bool(await self._acquire([PREFIX + key_id], [limit, LEASE_SECONDS, call_id]))

    async def _run_renew(self, client: "Client", key_id: str, calls: Sequence[str]) -> None:
        if self._renew is None:
            self._renew = client.register_script(RENEW)
        still = [call_id for call_id in calls if call_id in self._running]
        await self._renew([PREFIX + key_id], [LEASE_SECONDS, *still])


async def _remove(client: "Client", key_id: str, calls: Sequence[str]) -> None:
    await client.zrem(PREFIX + key_id, *calls)


def _by_key(calls: dict[str, str]) -> dict[str, list[str]]:
    """Return the ids of the calls by the ids of their keys."""
    found: dict[str, list[str]] = {}
    for call_id, key_id in calls.items():
        found.setdefault(key_id, []).append(call_id)
    return found
