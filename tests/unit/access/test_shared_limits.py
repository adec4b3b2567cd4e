"""Limits of requests per minute, counted over all processes that share a Redis."""

import asyncio

import pytest

from tests.support.redis import RedisServer, opened
from tests.unit.access.conftest import Clock
from tests.unit.access.test_limits import caller, refused
from umg_grpc.access.redis_request_limits import COARSE_STEP, LEASE_SECONDS, RATE_KEY_PREFIX
from umg_grpc.access.request_rate_limits import RequestLimits
from umg_grpc.base.errors import UmgError
from umg_grpc.store.redis_client import PAUSE_SECONDS, REBUILD_SECONDS, Redis

EARLIER = """
local counted, passed = redis.call('HGETALL', KEYS[1]), tonumber(ARGV[1])
for at = 1, #counted, 2 do
  redis.call('HDEL', KEYS[1], counted[at])
end
for at = 1, #counted, 2 do
  local name, value = counted[at], counted[at + 1]
  if string.sub(name, 1, 1) == 'u' then
    name = string.format('u%.0f', tonumber(string.sub(name, 2)) - passed)
  else
    local requests, ends = string.match(value, '(%d+):(%d+)')
    value = string.format('%s:%.0f', requests, tonumber(ends) - passed)
  end
  redis.call('HSET', KEYS[1], name, value)
end
return 0
"""


async def let_pass(redis: Redis, clock: Clock, seconds: float) -> None:
    """Let seconds pass. The server's clock cannot be moved, so its counted requests are moved into the past."""
    clock.seconds += seconds
    await redis.run(lambda client: client.eval(EARLIER, 1, RATE_KEY_PREFIX + "key_1", str(round(1e6 * seconds))))


async def admitted(limits: RequestLimits, times: int, rpm: int) -> int:
    count = 0
    for _ in range(times):
        try:
            await limits.admit(caller(rpm))
            count += 1
        except UmgError:
            pass
    return count


async def test_requests_of_another_process_count_towards_the_limit(redis: Redis, clock: Clock) -> None:
    one, other = RequestLimits(clock, redis), RequestLimits(clock, redis)
    await one.admit(caller(2))
    await let_pass(redis, clock, 20)
    await other.admit(caller(2))
    assert int(await refused(other, caller(2))) in range(30, 41)
    await let_pass(redis, clock, 30)
    assert int(await refused(other, caller(2))) in range(1, 11)
    await let_pass(redis, clock, 10)
    await other.admit(caller(2))
    assert int(await refused(other, caller(2))) in range(10, 21)


async def test_a_limit_that_was_lowered_holds_at_once(redis: Redis, clock: Clock) -> None:
    one, other = RequestLimits(clock, redis), RequestLimits(clock, redis)
    assert await admitted(one, times=5, rpm=5) == 5
    await let_pass(redis, clock, 50)
    assert int(await refused(other, caller(2))) in range(1, 11)


async def test_refused_requests_count_neither_in_the_process_nor_in_redis(redis: Redis, clock: Clock) -> None:
    one, other = RequestLimits(clock, redis), RequestLimits(clock, redis)
    await one.admit(caller(1))
    for _ in range(5):
        await refused(other, caller(1))
    await let_pass(redis, clock, 60)
    await other.admit(caller(1))


async def test_a_flood_that_this_process_can_refuse_does_not_reach_redis(redis_server: RedisServer) -> None:
    async with opened(redis_server) as redis:
        limits = RequestLimits(redis=redis)
        await limits.admit(caller(1))
        before = commands(redis_server)
        for _ in range(50):
            await refused(limits, caller(1))
        assert commands(redis_server) - before <= 1  # the check itself


async def test_without_redis_each_process_continues_with_its_own_window(
    redis_server: RedisServer, redis: Redis
) -> None:
    one, other = RequestLimits(redis=redis), RequestLimits(redis=redis)
    await admitted(one, times=2, rpm=3)
    redis_server.stop()
    assert await admitted(one, times=5, rpm=3) == 1  # the requests that it admitted before count
    assert await admitted(other, times=5, rpm=3) == 3


async def test_redis_counts_again_when_it_is_back(redis_server: RedisServer, clock: Clock) -> None:
    async with opened(redis_server, clock) as redis:
        one, other = RequestLimits(clock, redis), RequestLimits(clock, redis)
        redis_server.stop()
        await one.admit(caller(5))
        redis_server.start()
        clock.seconds += PAUSE_SECONDS
        async with asyncio.timeout(60):
            while not await redis.run(lambda client: client.hlen(RATE_KEY_PREFIX + "key_1")):
                pass  # until Redis has received the request that was admitted without it
        clock.seconds += REBUILD_SECONDS
        assert await admitted(one, times=4, rpm=5) == 4
        assert await admitted(other, times=4, rpm=5) == 0


@pytest.mark.parametrize("rpm", [1, 7, 5000])
async def test_a_window_is_stored_no_longer_than_it_counts(redis: Redis, rpm: int) -> None:
    await RequestLimits(redis=redis).admit(caller(rpm))
    left = await redis.run(lambda client: client.pttl(RATE_KEY_PREFIX + "key_1"))
    assert 50_000 < left <= 60_000 + 1000 * LEASE_SECONDS + COARSE_STEP / 1000


def commands(server: RedisServer) -> int:
    """Return the number of commands that the server has run."""
    lines = server.command("INFO", "stats").decode().splitlines()
    return int(next(line for line in lines if line.startswith("total_commands_processed:")).partition(":")[2])
