"""Limits of requests per minute across all gateway processes that share a Redis.

Redis stores the time of each admitted request. A process whose calls follow each other quickly leases a slice, a number
of requests that it may admit without further commands. Redis counts all of a slice as used in its last moment, until
the process reports the actual times, with its next command or when the slice expires. So never fewer requests are
counted than were admitted, and no span of a minute has more than the limit.

A slice is at most a fiftieth of the limit and at most a quarter of the remaining requests, so that near the limit each
call has its own command. A call that finds all remaining requests in slices of other processes waits until these
expire, at most half a second. So no call is rejected while another process has an unused request.
"""

import asyncio
import math
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from umg_grpc.access.limit_errors import WINDOW_SECONDS
from umg_grpc.access.per_process_limit_shares import Remaining
from umg_grpc.access.redis_count_restoration import Amount, Hash, Restoring
from umg_grpc.access.redis_lease_queue import LeaseQueue
from umg_grpc.store.redis_client import Redis, RedisUnavailable
from umg_grpc.store.repeated_background_tasks import Background

if TYPE_CHECKING:
    from redis.asyncio import Redis as Client
    from redis.commands.core import AsyncScript

RATE_KEY_PREFIX = "umg:requests:"
LEASE_SECONDS = 0.5
RATE_SLICES = 50
"""Smallest quotient of a limit and a slice."""
REPORT_SECONDS = 0.1
"""Time after the end of a slice until its requests are reported, unless the next call does so before."""
GRACE_SECONDS = 0.3
"""Time after the end of a slice in which its process is expected to report its requests."""
POLL_SECONDS = 0.05
REFUSED_SECONDS = 1.0
"""Longest time for which a refusal of Redis applies to later calls without a command."""
EXACT_REQUESTS = 1000
"""Largest limit whose requests are counted by their exact time; those of a larger one by a tenth of a second, rounded
up, which bounds the memory and time that they take in Redis.
"""
COARSE_STEP = 100_000  # microseconds
CLOSE_SECONDS = 1.0
MAX_ENDED = 16
"""Most slices that wait to be reported: several only if Redis does not answer."""

# Atomic, and by the server's clock, which is the same for all replicas. Times are microseconds. KEYS[1]: a hash of the
# numbers of requests by their time (`u<time>`), and of the leased slices (`l<id>`, as `<requests>:<end>`). ARGV: the
# limit, the window, the step of the times, the requests that wait, the size of a slice, its lifetime, its id, and the
# time after its end in which it may still be returned. Then slices that have ended: the id, and the number of times
# that follow with their requests. Returns the number of admitted requests, the size of the new slice, the time, the
# requests that remain, the time until another one is admitted, and whether slices of others may be returned before.
LEASE_SCRIPT = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local limit, span, step, need = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local place = 9
while place <= #ARGV do
  local known = redis.call('HDEL', KEYS[1], 'l' .. ARGV[place]) == 1
  local last = place + 1 + 2 * tonumber(ARGV[place + 1])
  for at = place + 2, last, 2 do
    if known then
      redis.call('HINCRBY', KEYS[1], 'u' .. ARGV[at], ARGV[at + 1])
    end
  end
  place = last + 1
end
local total, open, ends, counted = 0, 0, {}, redis.call('HGETALL', KEYS[1])
for at = 1, #counted, 2 do
  local requests, over = tonumber(counted[at + 1]), nil
  if string.sub(counted[at], 1, 1) == 'u' then
    over = tonumber(string.sub(counted[at], 2)) + span
  else
    local leased, last = string.match(counted[at + 1], '(%d+):(%d+)')
    requests, over = tonumber(leased), tonumber(last) + span
    if tonumber(last) + tonumber(ARGV[8]) > now then
      open = 1
    end
  end
  if over <= now then
    redis.call('HDEL', KEYS[1], counted[at])
  else
    total = total + requests
    table.insert(ends, {over, requests})
  end
end
local admitted = math.max(0, math.min(need, limit - total))
if admitted > 0 then
  local used = math.ceil(now / step) * step
  redis.call('HINCRBY', KEYS[1], 'u' .. string.format('%.0f', used), admitted)
  total = total + admitted
  table.insert(ends, {used + span, admitted})
end
local slice = 0
if admitted == need then
  slice = math.max(0, math.min(tonumber(ARGV[5]), math.floor((limit - total) / 4)))
end
if slice > 0 then
  redis.call('HSET', KEYS[1], 'l' .. ARGV[7], slice .. ':' .. string.format('%.0f', now + ARGV[6]))
  total = total + slice
end
redis.call('PEXPIRE', KEYS[1], math.ceil((span + ARGV[6] + step) / 1000))
local retry = 0
if admitted < need then
  local left = total
  table.sort(ends, function(one, other) return one[1] < other[1] end)
  for _, entry in ipairs(ends) do
    left = left - entry[2]
    if left < limit then
      retry = entry[1] - now
      break
    end
  end
end
return {admitted, slice, now, math.max(0, limit - total), retry, open}
"""


ADMITTED_WAIT, UNAVAILABLE_WAIT = 0.0, -1.0
"""Outcomes of an admitted request, and of one that Redis did not answer. Other outcomes are seconds to wait."""


class _SliceReply(NamedTuple):
    admitted: int
    slice: int
    server_time: int
    remaining: int
    retry: int
    is_open: int


@dataclass(slots=True)
class _Slice:
    """Requests leased from Redis: the number that may still be admitted without a command, and the times of others."""

    slice_id: str
    began_at: float
    """Time before the command that leased it, on this process's clock."""
    left: int = 0
    server_time: int = 0
    """Time of the server at the command, in microseconds."""
    step: int = 1
    used: Counter[int] = field(default_factory=Counter)
    """Requests by their time on the server's clock, which is rounded up."""

    def is_current(self, now: float) -> bool:
        """Return whether the slice is valid at the time `now`, even if it has no requests left."""
        return now < self.began_at + LEASE_SECONDS

    def is_usable(self, now: float) -> bool:
        """Return whether the slice can admit a request at the time `now`: it is valid, and has requests left."""
        return self.left > 0 and now < self.began_at + LEASE_SECONDS

    def take(self, now: float) -> None:
        """Admit a request from the slice, and record its time on the clock of Redis, which is rounded up."""
        self.left -= 1
        elapsed = (now - self.began_at) * 1e6
        self.used[math.ceil((self.server_time + elapsed) / self.step) * self.step] += 1


class _Refusal(NamedTuple):
    """Rejection by Redis. For a moment, later calls are rejected in the same way without a command."""

    until: float
    free_at: float


@dataclass(slots=True)
class _KeySlices:
    """Slices and last rejection of one API key or model in this process."""

    limit: int
    slice: _Slice | None = None
    ended: list[_Slice] = field(default_factory=list)
    """Slices that Redis has to receive the times of."""
    size: int = 0
    """Wanted size of the next slice; 0 while calls are rare."""
    taken: int = 0
    """Requests that were taken from the last slice."""
    leased_at: float = -math.inf
    remaining: int = 0
    replied_at: float = -math.inf
    """Time before the last command that Redis has answered."""
    refusal: _Refusal | None = None
    queue: LeaseQueue[float] = field(default_factory=LeaseQueue)

    def end_slice(self) -> None:
        """End the current slice; the times of its requests are reported to Redis with the next command."""
        if self.slice is not None:
            self.taken = self.slice.used.total()
            self.ended.append(self.slice)
            self.slice = None

    def next_size(self, now: float) -> int:
        """Return the size of the next slice; 0 if calls have become rare. It is twice the last one if that was used up
        early, otherwise the number of requests taken from it.
        """
        if now < self.leased_at + LEASE_SECONDS:
            return max(1, 2 * self.size)
        return self.taken if now < self.leased_at + 2 * LEASE_SECONDS else 0


class SharedRequestLimits:
    """Limiter of the requests per minute of each key or model across processes that share a Redis, until `aclose`."""

    def __init__(
        self,
        redis: Redis,
        now: Callable[[], float] = time.monotonic,
        admitted: Callable[[str, int], Iterable[float]] = lambda _id, _limit: (),
    ) -> None:
        """Create a limiter. `admitted`: returns the times of the requests that this process admitted in the last minute
        by a key or model and its limit; they are written to Redis after it has lost its data.
        """
        self._redis = redis
        self._now = now
        self._admitted = admitted
        form = Hash(RATE_KEY_PREFIX, "u", 1_000_000, math.ceil(WINDOW_SECONDS + LEASE_SECONDS))
        self._restoring = Restoring(redis, form, now, "restoring of requests")
        redis.on_data_lost.append(self._restore)
        self._keys: dict[str, _KeySlices] = {}
        self._unchecked: set[str] = set()  # ids of keys whose slice has expired
        self._search_at = -math.inf
        self._process, self._numbers = secrets.token_hex(8), count()
        self._script: AsyncScript | None = None
        self._reports: Background | None = None

    async def hit(self, key_id: str, limit: int) -> float:
        """Count a request. Return 0 if admitted, else the seconds until the next one. Raises RedisUnavailable."""
        now, key = self._now(), self._keys.get(key_id)
        if key is None or key.limit != limit:
            key = self._changed_key(key_id, limit)
        elif (leased := key.slice) is not None and leased.is_usable(now):
            leased.take(now)
            return ADMITTED_WAIT
        elif (refusal := key.refusal) is not None and now < refusal.until:
            return refusal.free_at - now
        outcome = await key.queue.wait(lambda: self._decide(key_id, key), lambda _: None)
        if outcome == UNAVAILABLE_WAIT:
            raise RedisUnavailable
        return outcome

    def remaining(self, key_id: str, limit: int) -> int:
        """Return the requests left in this minute at this process's last command; `limit` before the first one."""
        key = self._keys.get(key_id)
        if key is None or key.limit != limit:
            return limit
        return key.remaining + (key.slice.left if key.slice is not None else 0)

    def count_alone(self, key_id: str) -> None:
        """Count a request that was admitted while Redis was unavailable. Redis gets it later."""
        self._restoring.add(key_id, Amount(self._now(), 1))

    def last_remaining(self, key_id: str, limit: int) -> Remaining | None:
        """Return the requests that all processes had left when Redis last answered; None if it has not answered."""
        key = self._keys.get(key_id)
        if key is None or key.limit != limit or key.replied_at == -math.inf:
            return None
        return Remaining(key.replied_at, key.remaining)

    async def report(self) -> None:
        """Report the times of the requests in expired slices to Redis, which takes back their unused requests."""
        keys, self._unchecked = self._unchecked, set()
        now = self._now()
        if now >= self._search_at:
            self._search_at = now + WINDOW_SECONDS
            keys = keys | self._keys.keys()
        for key_id in keys:
            key = self._keys.get(key_id)
            if key is None or key.queue.is_busy:
                continue  # the next command reports them
            if key.slice is not None and not key.slice.is_current(now):
                key.end_slice()
            if key.ended:
                if await key.queue.send(partial(self._lease, key_id, key, 0)) is None:
                    return
            elif key.slice is None and now >= key.leased_at + WINDOW_SECONDS and not len(key.queue):
                del self._keys[key_id]

    async def aclose(self) -> None:
        """Report the times of the requests in all slices to Redis within a bounded time."""
        for key in self._keys.values():
            key.end_slice()
        self._search_at = -math.inf
        self._redis.on_data_lost.remove(self._restore)
        await self._restoring.aclose()
        if self._reports is not None:
            await self._reports.aclose(CLOSE_SECONDS)

    def _restore(self) -> None:
        for key_id, key in self._keys.items():
            key.end_slice()
            key.ended.clear()
            key.refusal = None
            self._restoring.replace(key_id, [Amount(time, 1) for time in self._admitted(key_id, key.limit)])

    def _changed_key(self, key_id: str, limit: int) -> _KeySlices:
        """Create the record of a key or model that is new, or reset it because its limit has changed."""
        key = self._keys.setdefault(key_id, _KeySlices(limit))
        key.limit, key.refusal, key.remaining, key.replied_at = limit, None, limit, -math.inf
        key.end_slice()
        return key

    async def _decide(self, key_id: str, key: _KeySlices) -> None:
        """Admit or reject the waiting requests of a key: from its slice, then by one command for all others."""
        now = self._now()
        while len(key.queue) and key.slice is not None and key.slice.is_usable(now):
            key.slice.take(now)
            key.queue.settle(ADMITTED_WAIT, 1)
        if not len(key.queue):
            return
        reply = await self._lease(key_id, key, len(key.queue))
        if reply is None:
            key.queue.settle(UNAVAILABLE_WAIT)
            return
        key.queue.settle(ADMITTED_WAIT, reply.admitted)
        if not reply.retry:
            return
        seconds = reply.retry / 1e6
        if not reply.is_open:
            key.refusal = _Refusal(now + min(seconds, REFUSED_SECONDS), now + seconds)
            key.queue.settle(seconds)
            return
        key.queue.settle_late(seconds, LEASE_SECONDS + GRACE_SECONDS)
        if len(key.queue):
            await asyncio.sleep(POLL_SECONDS)

    async def _lease(self, key_id: str, key: _KeySlices, need: int) -> _SliceReply | None:
        """Report the ended slices of a key to Redis and, if `need` requests wait, lease a new slice."""
        key.end_slice()
        now = self._now()
        if need:
            key.size = min(key.next_size(now), key.limit // RATE_SLICES)
            key.leased_at = now
        new = _Slice(f"{self._process}:{next(self._numbers)}", now, step=_step(key.limit))
        sent, key.ended = key.ended, []
        try:
            reply = await self._redis.count(
                partial(self._run_script, key_id=key_id, key=key, need=need, new=new, sent=sent)
            )
        except BaseException as error:
            key.ended = [*sent, new, *key.ended][-MAX_ENDED:]  # Redis may have leased the new one
            if isinstance(error, RedisUnavailable):
                return None
            raise
        key.remaining, key.replied_at = reply.remaining, now
        if reply.slice:
            new.left, new.server_time = reply.slice, reply.server_time
            key.slice = new
            asyncio.get_running_loop().call_later(LEASE_SECONDS + REPORT_SECONDS, self._check, key_id)
        return reply

    async def _run_script(
        self, client: "Client", *, key_id: str, key: _KeySlices, need: int, new: _Slice, sent: Sequence[_Slice]
    ) -> _SliceReply:
        if self._script is None:
            self._script = client.register_script(LEASE_SCRIPT)
        arguments: list[int | str] = [
            *(key.limit, _micros(WINDOW_SECONDS), new.step),
            *(need, key.size if need else 0, _micros(LEASE_SECONDS), new.slice_id, _micros(GRACE_SECONDS)),
        ]
        for ended in sent:
            arguments += [ended.slice_id, len(ended.used), *(each for pair in ended.used.items() for each in pair)]
        return _SliceReply(*await self._script([RATE_KEY_PREFIX + key_id], arguments))

    def _check(self, key_id: str) -> None:
        self._unchecked.add(key_id)
        if self._reports is None:
            self._reports = Background("report of requests", self.report, every=WINDOW_SECONDS, at_end=True)
        self._reports.wake()


def _step(limit: int) -> int:
    return 1 if limit <= EXACT_REQUESTS else COARSE_STEP


def _micros(seconds: float) -> int:
    return round(seconds * 1e6)
