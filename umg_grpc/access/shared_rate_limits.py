"""Rate limit windows that the replicas share in Redis."""

from typing import TYPE_CHECKING

from umg_grpc.store.redis import Redis

if TYPE_CHECKING:
    from redis.asyncio import Redis as Client
    from redis.commands.core import AsyncScript

PREFIX = "umg:requests:"

# Atomic, and by the server's clock, which is the same for all replicas; the library `limits` uses the clock of each
# process. KEYS[1]: the times of the requests, the newest first. ARGV: the limit, and the seconds of the window. Returns
# the milliseconds until the next request is admitted, 0 if this one was, and the number of requests that remain.
HIT = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local limit, span = tonumber(ARGV[1]), tonumber(ARGV[2])
local last = redis.call('LINDEX', KEYS[1], limit - 1)
if last and now - tonumber(last) < span then
  return {math.max(1, math.ceil((tonumber(last) + span - now) * 1000)), 0}
end
redis.call('LPUSH', KEYS[1], string.format('%.6f', now))
redis.call('LTRIM', KEYS[1], 0, limit - 1)
redis.call('EXPIRE', KEYS[1], span)
while now - tonumber(redis.call('LINDEX', KEYS[1], -1)) >= span do
  redis.call('RPOP', KEYS[1])
end
return {0, limit - redis.call('LLEN', KEYS[1])}
"""


class SharedWindows:
    """Rate limit windows of all callers, by the ids of their keys."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._script: AsyncScript | None = None

    async def hit(self, key_id: str, limit: int, span: int) -> tuple[float, int]:
        """Count a request, with at most `limit` requests in `span` seconds. Return 0 if it is admitted, otherwise the
        seconds until the next one is, and the number of requests that remain. Raises RedisUnavailable.
        """
        milliseconds, remaining = await self._redis.run(lambda client: self._hit(client, key_id, limit, span))
        return milliseconds / 1000, remaining

    async def _hit(self, client: "Client", key_id: str, limit: int, span: int) -> tuple[int, int]:
        if self._script is None:
            self._script = client.register_script(HIT)
        milliseconds, remaining = await self._script([PREFIX + key_id], [limit, span])
        return milliseconds, remaining
