"""Limits of concurrent requests across all gateway processes that share a Redis.

Redis counts permits, one for each concurrent request. A process leases permits for its calls; all processes together
never have more than the limit. While its calls follow each other quickly, a process keeps the permits of ended calls
for later ones, leases some in advance, and synchronizes with Redis every half a second. Otherwise each call leases its
own permit and returns it at its end.

A call that gets no permit waits until all processes with unused permits have synchronized and returned them. For some
seconds after that, no process keeps unused permits. So no call is rejected while another process has one.
"""

import asyncio
import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from umg_grpc.access.per_process_limit_shares import Processes, one_process
from umg_grpc.access.redis_lease_queue import LeaseQueue
from umg_grpc.store.redis_client import Redis, RedisUnavailable
from umg_grpc.store.repeated_background_tasks import Background

if TYPE_CHECKING:
    from redis.asyncio import Redis as Client
    from redis.commands.core import AsyncScript

CONCURRENCY_KEY_PREFIX = "umg:running:"
LEASE_SECONDS = 30
"""Time after which the permits of a killed process return."""
RENEW_SECONDS = 5.0
SEARCH_SECONDS = 1.0
"""Time between two searches for leases to renew."""
SYNCHRONIZE_SECONDS = 0.5
"""Longest time for which a process keeps unused permits without a command."""
GRACE_SECONDS = 0.3
"""Time after which a process that should synchronize is no longer waited for."""
WANTED_SECONDS = 2.0
"""Time after a call without a permit in which no process keeps unused permits."""
POLL_SECONDS = 0.05
PERMIT_SLICES = 10
"""Smallest quotient of a limit and the permits that a process leases beyond its calls."""
CLOSE_SECONDS = 1.0

# Atomic, and by the server's clock. Times are milliseconds. KEYS[1]: a hash of the permits of each process, as
# `<permits>:<end of the lease>:<time until which it may keep unused ones>`, and of the time until which permits are
# wanted (`wanted`). ARGV: the process, the limit, the permits in use, the calls that wait, the additional permits to
# lease (at most a quarter of the free ones), the unused permits to keep, 1 if unused permits may be kept, the lifetime
# of a lease, and the times for which unused permits may be kept and for which permits are wanted. Returns the number of
# calls that are admitted, the additional permits, 1 if unused ones may be kept, 1 if others may keep some, and the
# permits of the others.
SYNCHRONIZE_SCRIPT = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, running, need = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local others, keeping, wanted, held = 0, 0, 0, redis.call('HGETALL', KEYS[1])
for at = 1, #held, 2 do
  if held[at] == 'wanted' then
    wanted = tonumber(held[at + 1])
  elseif held[at] ~= ARGV[1] then
    local permits, ends, keeps = string.match(held[at + 1], '(%d+):(%d+):(%d+)')
    if tonumber(ends) <= now then
      redis.call('HDEL', KEYS[1], held[at])
    else
      others = others + tonumber(permits)
      if tonumber(keeps) > now then
        keeping = 1
      end
    end
  end
end
local free = math.max(0, limit - others - running)
local admitted = math.min(need, free)
free = free - admitted
if admitted < need and others > 0 then
  wanted = now + tonumber(ARGV[10])
  redis.call('HSET', KEYS[1], 'wanted', string.format('%.0f', wanted))
end
local keeps, more = 0, 0
if ARGV[7] == '1' and wanted <= now then
  keeps = now + tonumber(ARGV[9])
  more = math.max(math.min(tonumber(ARGV[6]), free), math.min(tonumber(ARGV[5]), math.floor(free / 4)))
end
local permits = running + admitted + more
if permits > 0 then
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f:%.0f:%.0f', permits, now + ARGV[8], keeps))
else
  redis.call('HDEL', KEYS[1], ARGV[1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[8])
return {admitted, more, math.min(keeps, 1), keeping, others}
"""


class _PermitReply(NamedTuple):
    admitted: int
    more: int
    keeps: int
    others_keep: int
    others: int
    """Permits that other processes have leased."""


@dataclass(slots=True)
class _KeyPermits:
    """Calls and leased permits of one API key or model in this process."""

    limit: int
    running: int = 0
    held: int = 0
    """Permits that this process has leased; fewer than the calls that run if Redis did not answer."""
    keeps: bool = False
    """Whether unused permits are kept, until the next command."""
    peak: int = 0
    """Largest number of calls since the last command."""
    calls: int = 0
    """Number of calls since the last command."""
    size: int = 0
    """Additional permits that the next command requests; 0 while calls are rare."""
    leased_at: float = -math.inf
    synchronized_at: float = -math.inf
    others: int = 0
    """Permits of other processes at the last response of Redis."""
    answered_at: float = -math.inf
    queue: LeaseQueue[bool] = field(default_factory=LeaseQueue)

    def start(self, calls: int = 1) -> None:
        """Count the start of `calls` calls: as running, for the peak, and since the last command to Redis."""
        self.running += calls
        self.calls += calls
        self.peak = max(self.peak, self.running)


class SharedConcurrencyLimits:
    """Limiter of the concurrent requests of each key or model across all processes that share a Redis, until `aclose`.
    The permits of a killed process return to Redis after half a minute.
    """

    def __init__(
        self, redis: Redis, now: Callable[[], float] = time.monotonic, processes: Processes = one_process
    ) -> None:
        """Create a limiter. `processes`: returns the number of processes, which share the permits without Redis."""
        self._redis = redis
        self._now = now
        self._processes = processes
        redis.on_data_lost.append(self._restore)
        self._process = secrets.token_hex(8)
        self._keys: dict[str, _KeyPermits] = {}
        self._unchecked: set[str] = set()  # ids of keys that may have permits to return
        self._search_at = -math.inf
        self._script: AsyncScript | None = None
        self._returns: Background | None = None

    async def acquire(self, key_id: str, limit: int) -> bool:
        """Take one of `limit` permits for a call; `release` returns it. Return whether a permit was free. While Redis
        is unavailable, this process has an equal part of the permits.
        """
        key = self._keys.get(key_id)
        if key is None:
            key = self._keys[key_id] = _KeyPermits(limit)
        if key.limit != limit:
            key.limit, key.held, key.synchronized_at = limit, min(key.held, key.running), -math.inf
        if key.running < key.held:
            key.start()
            return True
        return await key.queue.wait(partial(self._decide, key_id, key), partial(self._give_back, key_id))

    def release(self, key_id: str) -> None:
        """Free the permit of an ended call of the key or model `key_id`, for later calls or for Redis."""
        key = self._keys[key_id]
        key.running -= 1
        if not key.keeps:
            self._check(key_id)

    async def synchronize(self) -> None:
        """Send the number of used permits of each due key, which renews their leases, and returns unused permits."""
        keys, self._unchecked = self._unchecked, set()
        now = self._now()
        if now >= self._search_at:
            self._search_at = now + SEARCH_SECONDS
            keys = keys | self._keys.keys()
        for key_id in keys:
            key = self._keys.get(key_id)
            if key is None or key.queue.is_busy:
                continue  # its command has the calls that ended before
            if self._is_due(key, now):
                if await self._return_unused(key_id, key) is None:
                    return  # the leases end by themselves
            elif not key.running and not key.held and now >= key.leased_at + SYNCHRONIZE_SECONDS:
                del self._keys[key_id]

    async def aclose(self) -> None:
        """Return the permits of ended calls to Redis within a bounded time."""
        for key in self._keys.values():
            key.keeps = False
        self._search_at = -math.inf
        self._redis.on_data_lost.remove(self._restore)
        if self._returns is not None:
            await self._returns.aclose(CLOSE_SECONDS)

    def _restore(self) -> None:
        """Lease the permits of the running calls again, since Redis does not know them any more."""
        for key in self._keys.values():
            key.held, key.keeps, key.synchronized_at = key.running, False, -math.inf
        self._search_at = -math.inf
        if self._returns is not None:
            self._returns.wake()

    def _alone(self, key: _KeyPermits) -> int:
        share = max(1, key.limit // self._processes())
        if self._now() < key.answered_at + LEASE_SECONDS:
            share = min(share, key.limit - key.others)
        return max(0, share - key.running)

    def _check(self, key_id: str) -> None:
        self._unchecked.add(key_id)
        if self._returns is not None:
            self._returns.wake()

    def _is_due(self, key: _KeyPermits, now: float) -> bool:
        if key.keeps:
            return now >= key.synchronized_at + SYNCHRONIZE_SECONDS
        is_unused = not key.running and not key.held and key.synchronized_at > -math.inf
        return key.held != key.running or (not is_unused and now >= key.synchronized_at + RENEW_SECONDS)

    def _give_back(self, key_id: str, admitted: bool) -> None:
        if admitted:
            self.release(key_id)

    async def _decide(self, key_id: str, key: _KeyPermits) -> None:
        """Lease permits for the waiting calls of a key by one command, and admit or reject these calls."""
        key.start(key.queue.settle(True, max(0, key.held - key.running)))
        if not len(key.queue):
            return
        now = self._now()
        is_frequent = now < key.leased_at + SYNCHRONIZE_SECONDS
        key.size = min(max(1, 2 * key.size), key.limit // PERMIT_SLICES) if is_frequent else 0
        key.leased_at = now
        need = len(key.queue)
        reply = await self._send(key_id, key, need=need, more=key.size, keeps=is_frequent)
        if reply is None:
            key.start(key.queue.settle(True, self._alone(key)))
            key.queue.settle(False)
            return
        key.start(key.queue.settle(True, reply.admitted))
        if key.running < key.held and not key.keeps:  # a call was cancelled meanwhile
            self._check(key_id)
        if reply.admitted == need:
            return
        if not reply.others_keep:
            key.queue.settle(False)
            return
        key.queue.settle_late(False, SYNCHRONIZE_SECONDS + GRACE_SECONDS)
        if len(key.queue):
            await asyncio.sleep(POLL_SECONDS)

    async def _return_unused(self, key_id: str, key: _KeyPermits) -> _PermitReply | None:
        keeps = key.keeps and key.calls > 1
        kept = max(0, key.peak - key.running) if keeps else 0
        return await key.queue.send(partial(self._send, key_id, key, need=0, kept=kept, keeps=keeps))

    async def _send(
        self, key_id: str, key: _KeyPermits, *, need: int, more: int = 0, kept: int = 0, keeps: bool
    ) -> _PermitReply | None:
        """Send the number of permits in use to Redis, and lease more permits. Until Redis replies, no unused permit is
        given to a call, since Redis takes unused permits back.
        """
        if self._returns is None:
            self._returns = Background("return of permits", self.synchronize, every=SEARCH_SECONDS, at_end=True)
        now, running = self._now(), key.running
        key.held, key.keeps, key.peak, key.calls = running, False, running, 0
        key.synchronized_at = -math.inf  # without a response the server may have leased permits: it is to be sent again
        arguments: list[int | str] = [
            *(self._process, key.limit, running, need, more, kept, int(keeps)),
            *(1000 * LEASE_SECONDS, round(1000 * (SYNCHRONIZE_SECONDS + GRACE_SECONDS)), round(1000 * WANTED_SECONDS)),
        ]
        try:
            send = self._redis.count if need else self._redis.run  # permits in use are no count, but facts
            reply = await send(partial(self._run_script, key_id=key_id, arguments=arguments))
        except RedisUnavailable:
            return None
        key.synchronized_at = key.answered_at = now
        key.others = reply.others
        key.held, key.keeps = running + reply.admitted + reply.more, bool(reply.keeps)
        if key.keeps:
            asyncio.get_running_loop().call_later(SYNCHRONIZE_SECONDS, self._check, key_id)
        return reply

    async def _run_script(self, client: "Client", *, key_id: str, arguments: list[int | str]) -> _PermitReply:
        if self._script is None:
            self._script = client.register_script(SYNCHRONIZE_SCRIPT)
        return _PermitReply(*await self._script([CONCURRENCY_KEY_PREFIX + key_id], arguments))
