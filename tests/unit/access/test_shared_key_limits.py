"""Tokens per minute and concurrent requests, counted over all processes that share a Redis."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.redis import RedisServer
from tests.unit.access.conftest import Clock
from tests.unit.access.test_shared_limits import commands
from tests.unit.access.test_token_limits import acquired, caller, rejected
from umg_grpc.access.key_limits import Admission, KeyLimits
from umg_grpc.access.redis_concurrency_limits import CONCURRENCY_KEY_PREFIX as RUNNING
from umg_grpc.access.redis_concurrency_limits import RENEW_SECONDS, SharedConcurrencyLimits
from umg_grpc.access.redis_token_limits import LEASE_SECONDS, SharedTokenLimits
from umg_grpc.base.errors import UmgError
from umg_grpc.store.redis_client import Redis


@pytest.fixture
async def processes(redis: Redis, clock: Clock) -> AsyncIterator[tuple[KeyLimits, KeyLimits]]:
    both = KeyLimits(clock, redis), KeyLimits(clock, redis)
    yield both
    for limits in both:
        await limits.aclose()


@pytest.fixture
async def tokens(redis: Redis, clock: Clock) -> AsyncIterator[tuple[SharedTokenLimits, SharedTokenLimits]]:
    both = SharedTokenLimits(redis, clock), SharedTokenLimits(redis, clock)
    yield both
    for limits in both:
        await limits.aclose()


async def is_taken(limits: SharedTokenLimits, limit: int, tokens: int) -> bool:
    try:
        return await limits.take("key_1", limit, tokens) is not None
    except UmgError:
        return False


async def test_two_processes_together_use_exactly_the_tokens_of_a_minute(
    processes: tuple[KeyLimits, KeyLimits],
) -> None:
    admitted = 0
    for _ in range(100):
        for limits in processes:
            try:
                await acquired(limits, caller(tpm=100), 1)
                admitted += 1
            except UmgError:
                pass
    assert admitted == 100


async def test_calls_take_tokens_from_a_slice_without_a_command(
    processes: tuple[KeyLimits, KeyLimits], redis_server: RedisServer
) -> None:
    await acquired(processes[0], caller(tpm=100_000), 10)
    before = commands(redis_server)
    for _ in range(100):
        await acquired(processes[0], caller(tpm=100_000), 10)
    assert commands(redis_server) - before <= 10  # and not one for each call


async def test_a_call_waits_for_tokens_of_another_process(tokens: tuple[SharedTokenLimits, SharedTokenLimits]) -> None:
    one, other = tokens
    assert await is_taken(one, 100, 80)
    with pytest.raises(UmgError) as caught:
        await other.take("key_1", 100, 30)
    assert int(caught.value.metadata["retry_after_seconds"]) in range(50, 64)


async def test_corrections_reach_the_other_process(tokens: tuple[SharedTokenLimits, SharedTokenLimits]) -> None:
    one, other = tokens
    second = await one.take("key_1", 100, 80)
    assert second is not None
    one.correct("key_1", second, -70)
    await one.return_unused()
    assert await is_taken(other, 100, 90)
    one.correct("key_1", second, 5)
    await one.return_unused()
    assert not await is_taken(other, 104, 1), "the tokens above the estimate are not counted"


async def test_unused_tokens_of_an_expired_slice_return(
    tokens: tuple[SharedTokenLimits, SharedTokenLimits], clock: Clock
) -> None:
    one, other = tokens
    assert await is_taken(one, 1000, 1)
    assert not await is_taken(other, 1000, 999), "the slice is shared before it expires"
    clock.seconds += LEASE_SECONDS
    await one.return_unused()
    assert await is_taken(other, 1000, 999)


async def test_a_closed_process_returns_its_slice(redis: Redis, clock: Clock) -> None:
    one, other = SharedTokenLimits(redis, clock), SharedTokenLimits(redis, clock)
    assert await is_taken(one, 1000, 1)
    await one.aclose()
    assert await is_taken(other, 1000, 999)
    await other.aclose()


async def test_two_processes_together_run_exactly_the_concurrent_requests(
    processes: tuple[KeyLimits, KeyLimits],
) -> None:
    attempts = (acquired(limits, caller(concurrency=10)) for limits in processes for _ in range(25))
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    assert sum(isinstance(each, Admission) for each in outcomes) == 10, outcomes


async def test_a_slot_that_one_process_frees_is_for_all(redis: Redis) -> None:
    one, other = SharedConcurrencyLimits(redis), SharedConcurrencyLimits(redis)
    assert await one.acquire("key_1", 1)
    assert not await other.acquire("key_1", 1)
    assert await redis.run(lambda client: client.ttl(RUNNING + "key_1")) in range(1, 31), "a killed process keeps it"
    one.release("key_1")
    await one.synchronize()
    assert await other.acquire("key_1", 1)
    await one.aclose()
    await other.aclose()


async def test_a_call_in_flight_renews_its_lease(redis: Redis, clock: Clock) -> None:
    one, other = SharedConcurrencyLimits(redis, clock), SharedConcurrencyLimits(redis, clock)
    assert await one.acquire("key_1", 1)
    await redis.run(lambda client: client.delete(RUNNING + "key_1"))  # as after half a minute
    clock.seconds += RENEW_SECONDS
    await one.synchronize()
    assert not await other.acquire("key_1", 1)
    await one.aclose()
    await other.aclose()


async def test_without_redis_each_process_limits_its_own_calls(redis: Redis, redis_server: RedisServer) -> None:
    redis_server.stop()
    for limits in (KeyLimits(redis=redis), KeyLimits(redis=redis)):
        limited_caller = caller(tpm=100, concurrency=2)
        await acquired(limits, limited_caller, 50)
        async with rejected("tokens_per_minute", "60"):
            await acquired(limits, limited_caller, 60)
        await acquired(limits, limited_caller, 50)
        async with rejected("concurrent_requests", "1"):
            await acquired(limits, limited_caller, 1)
        await limits.aclose()
