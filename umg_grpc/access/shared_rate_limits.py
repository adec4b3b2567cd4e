"""The windows of requests a minute that replicas share in Redis."""

from typing import TYPE_CHECKING

from umg_grpc.store.redis import Redis

if TYPE_CHECKING:
    from redis.asyncio import Redis as Client
    from redis.commands.core import AsyncScript

PREFIX = "umg:requests:"

# In one step, by the server's clock, which is the same for all: the library `limits` would take that of each process.
# KEYS[1]: the times of the requests, the newest first. ARGV: the limit, and the seconds of the window. Gives back how
# many milliseconds are left until one more is let in; 0 when it was.
HIT = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local limit, span = tonumber(ARGV[1]), tonumber(ARGV[2])
local last = redis.call('LINDEX', KEYS[1], limit - 1)
if last and now - tonumber(last) < span then
  return math.max(1, math.ceil((tonumber(last) + span - now) * 1000))
end
redis.call('LPUSH', KEYS[1], string.format('%.6f', now))
redis.call('LTRIM', KEYS[1], 0, limit - 1)
redis.call('EXPIRE', KEYS[1], span)
return 0
"""


class SharedWindows:
    """Those of all callers, by their keys' ids."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._script: AsyncScript | None = None

    async def hit(self, key_id: str, limit: int, span: int) -> float:
        """Counts a request, of which `span` seconds may have `limit`; 0 when it was let in, else the seconds until one
        will be. Raises RedisAway.
        """
        milliseconds = await self._redis.run(lambda client: self._hit(client, key_id, limit, span))
        return milliseconds / 1000

    async def _hit(self, client: "Client", key_id: str, limit: int, span: int) -> int:
        if self._script is None:
            self._script = client.register_script(HIT)
        return int(await self._script([PREFIX + key_id], [limit, span]))
