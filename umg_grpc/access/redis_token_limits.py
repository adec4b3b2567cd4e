"""Limits of tokens per minute across all gateway processes that share a Redis. A process leases a part of the tokens
from Redis in advance (a slice), so that most calls need no command.
"""

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from umg_grpc.access.limit_errors import WINDOW_SECONDS, tokens_exceeded
from umg_grpc.access.per_process_limit_shares import Remaining
from umg_grpc.access.redis_count_restoration import Amount, Hash, Restoring
from umg_grpc.store.redis_client import Redis, RedisUnavailable
from umg_grpc.store.repeated_background_tasks import Background

if TYPE_CHECKING:
    from redis.asyncio import Redis as Client
    from redis.commands.core import AsyncScript

TOKENS_KEY_PREFIX = "umg:tokens:"
LEASE_SECONDS = 2
LIMIT_SLICES = 50
"""Number of slices of a limit, unless a call needs a larger one."""
RETURN_SECONDS = 1.0
CLOSE_SECONDS = 1.0
COUNTED_SECONDS = WINDOW_SECONDS + LEASE_SECONDS + 1
"""Time that leased tokens count: a minute from the last moment at which they may be used, in whole seconds."""

# Atomic, and by the server's clock. KEYS[1]: the tokens leased in each second. ARGV: the limit, the tokens that a call
# needs, the size of a slice, the seconds that a lease counts, then corrections: a second, and tokens to add to it.
# Returns the tokens leased, their second, the seconds until the call is admitted if the tokens are not available, and
# the tokens that no process has leased.
LEASE_SCRIPT = """
local now = tonumber(redis.call('TIME')[1])
local limit, need, slice, span = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
for place = 5, #ARGV, 2 do
  local second, tokens = tonumber(ARGV[place]), tonumber(ARGV[place + 1])
  if second > now - span then
    redis.call('HINCRBY', KEYS[1], second, tokens)
  elseif tokens > 0 then
    redis.call('HINCRBY', KEYS[1], now, tokens)
  end
end
local total, seconds, leased = 0, {}, redis.call('HGETALL', KEYS[1])
for place = 1, #leased, 2 do
  local second, tokens = tonumber(leased[place]), tonumber(leased[place + 1])
  if second > now - span then
    total = total + tokens
    table.insert(seconds, {second, tokens})
  else
    redis.call('HDEL', KEYS[1], leased[place])
  end
end
redis.call('EXPIRE', KEYS[1], span)
local left = math.max(0, limit - total)
if total + need > limit then
  table.sort(seconds, function(one, other) return one[1] < other[1] end)
  for _, entry in ipairs(seconds) do
    total = total - entry[2]
    if total + need <= limit then
      return {0, now, entry[1] + span - now, left}
    end
  end
  return {0, now, span, left}
end
local granted = math.max(need, math.min(slice, math.floor((limit - total) / 4)))
if granted > 0 then
  redis.call('HINCRBY', KEYS[1], now, granted)
  redis.call('EXPIRE', KEYS[1], span)
end
return {granted, now, 0, left - granted}
"""


class _Lease(NamedTuple):
    granted: int
    second: int
    retry_seconds: int
    unleased: int


@dataclass(slots=True)
class _KeyTokens:
    """Leased tokens of one key or model in this process, and corrections of estimates that Redis lacks yet."""

    limit: int
    second: int = 0
    left: int = 0
    unleased: int = 0
    replied_at: float = -math.inf
    """Time before the last lease that Redis has answered."""
    expires_at: float = 0.0
    corrections: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    leasing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def return_slice(self) -> None:
        """Mark the unused leased tokens for return; the next command to Redis returns them."""
        if self.left:
            self.corrections[self.second] -= self.left
            self.left = 0


class SharedTokenLimits:
    """Limiter of the tokens per minute of each key or model across all processes that share a Redis, until `aclose`.

    A call takes its estimated tokens from the lease of this process; Redis is called only if that does not suffice.
    Unused tokens, and the differences between estimates and actual numbers, are returned within seconds in the
    background. The leases of a minute never exceed the limit.
    """

    def __init__(
        self,
        redis: Redis,
        now: Callable[[], float] = time.monotonic,
        used: Callable[[str], Iterable[Amount]] = lambda _: (),
    ) -> None:
        """Create a limiter. `now`: returns seconds of a monotonic clock. `used`: returns the tokens of the calls
        of the last minute of a key or model in this process; they are written to Redis after it has lost its data.
        """
        self._redis = redis
        self._now = now
        form = Hash(TOKENS_KEY_PREFIX, "", 1, COUNTED_SECONDS)
        self._restoring = Restoring(redis, form, now, "restoring of tokens")
        self._used = used
        redis.on_data_lost.append(self._restore)
        self._keys: dict[str, _KeyTokens] = {}
        self._script: AsyncScript | None = None
        self._returns: Background | None = None

    async def take(self, key_id: str, limit: int, tokens: int) -> int | None:
        """Take the estimated tokens of a call. Return the second in which they count, for `correct`; None while Redis
        is unavailable. Raise UmgError(RATE_LIMITED) if the tokens of the minute do not suffice.
        """
        key = self._keys.get(key_id)
        if key is None:
            key = self._keys[key_id] = _KeyTokens(limit)
        key.limit = limit
        if not self._has(key, tokens):
            async with key.leasing:
                if not self._has(key, tokens):
                    try:
                        await self._lease_slice(key_id, key, tokens)
                    except RedisUnavailable:
                        return None
                key.left -= tokens
                return key.second
        key.left -= tokens
        return key.second

    def correct(self, key_id: str, second: int, difference: int) -> None:
        """Correct the tokens of an ended call by `difference`, actual minus estimated tokens, in the second that `take`
        returned. Redis gets the correction later.
        """
        if difference:
            self._keys.setdefault(key_id, _KeyTokens(0)).corrections[second] += difference

    def remaining(self, key_id: str, limit: int) -> int:
        """Return the tokens that this process could still take, as of its last lease; `limit` before the first one."""
        key = self._keys.get(key_id)
        return limit if key is None or not key.limit else key.left + key.unleased

    def count_alone(self, key_id: str, tokens: int) -> None:
        """Count the tokens of a call that was admitted while Redis was unavailable. Redis gets them later."""
        self._restoring.add(key_id, Amount(self._now(), tokens))

    def last_remaining(self, key_id: str) -> Remaining | None:
        """Return the tokens that all processes had left when Redis last answered; None if it has not answered."""
        key = self._keys.get(key_id)
        return None if key is None or key.replied_at == -math.inf else Remaining(key.replied_at, key.unleased)

    async def return_unused(self) -> None:
        """Return expired leases and all corrections to Redis."""
        now = self._now()
        for key_id, key in [*self._keys.items()]:
            if key.leasing.locked():
                continue  # the lease returns them
            if now >= key.expires_at:
                key.return_slice()
            if key.corrections:
                try:
                    await self._call(key_id, key, 0, 0)
                except RedisUnavailable:
                    return
            elif now >= key.expires_at:
                del self._keys[key_id]

    async def aclose(self) -> None:
        """Return all leased tokens and corrections to Redis within a bounded time."""
        for key in self._keys.values():
            key.expires_at = 0.0
        self._redis.on_data_lost.remove(self._restore)
        await self._restoring.aclose()
        if self._returns is not None:
            await self._returns.aclose(CLOSE_SECONDS)

    def _restore(self) -> None:
        for key_id, key in self._keys.items():
            key.left, key.expires_at = 0, 0.0
            key.corrections.clear()
            self._restoring.replace(key_id, self._used(key_id))

    def _has(self, key: _KeyTokens, tokens: int) -> bool:
        return key.left >= tokens and self._now() < key.expires_at

    async def _lease_slice(self, key_id: str, key: _KeyTokens, tokens: int) -> None:
        if self._returns is None:
            self._returns = Background("return of tokens", self.return_unused, every=RETURN_SECONDS, at_end=True)
        key.return_slice()
        now = self._now()
        expires_at = now + LEASE_SECONDS  # before the command, whose seconds begin later
        lease = await self._call(key_id, key, tokens, max(tokens, key.limit // LIMIT_SLICES))
        self._keys[key_id] = key
        key.unleased, key.replied_at = lease.unleased, now
        if lease.granted < tokens:
            raise tokens_exceeded(key_id, key.limit, lease.retry_seconds)
        key.second, key.left, key.expires_at = lease.second, lease.granted, expires_at

    async def _call(self, key_id: str, key: _KeyTokens, need: int, size: int) -> _Lease:
        sent, key.corrections = key.corrections, defaultdict(int)
        arguments = [key.limit, need, size, COUNTED_SECONDS, *(each for pair in sent.items() for each in pair)]
        send = self._redis.count if need else self._redis.run
        return await send(lambda client: self._run_script(client, key_id, arguments))

    async def _run_script(self, client: "Client", key_id: str, arguments: list[int]) -> _Lease:
        if self._script is None:
            self._script = client.register_script(LEASE_SCRIPT)
        return _Lease(*await self._script([TOKENS_KEY_PREFIX + key_id], arguments))
