"""Requests per minute and concurrent requests, of which processes lease slices: few commands, and exact all the same."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.support.redis import RedisServer, opened, scripts
from tests.unit.access.conftest import Clock
from tests.unit.access.test_shared_limits import let_pass
from umg_grpc.access import redis_concurrency_limits, redis_request_limits
from umg_grpc.access.redis_concurrency_limits import SharedConcurrencyLimits
from umg_grpc.access.redis_lease_queue import LeaseQueue
from umg_grpc.access.redis_request_limits import LEASE_SECONDS, RATE_KEY_PREFIX, SharedRequestLimits
from umg_grpc.store.redis_client import Redis

KEY = "key_1"


@asynccontextmanager
async def requests(redis: Redis, *clock: Clock) -> AsyncIterator[SharedRequestLimits]:
    limits = SharedRequestLimits(redis, *clock)
    yield limits
    await limits.aclose()


@asynccontextmanager
async def concurrency(redis: Redis) -> AsyncIterator[SharedConcurrencyLimits]:
    limits = SharedConcurrencyLimits(redis)
    yield limits
    await limits.aclose()


@pytest.fixture
def late_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls wait for requests that other processes return late, as all processes do on a busy machine."""
    monkeypatch.setattr(redis_request_limits, "GRACE_SECONDS", 60.0)
    monkeypatch.setattr(redis_concurrency_limits, "GRACE_SECONDS", 60.0)


async def admitted(limits: SharedRequestLimits, calls: int, limit: int) -> int:
    return sum([not await limits.hit(KEY, limit) for _ in range(calls)])


async def leased(redis: Redis) -> dict[str, str]:
    fields: dict[bytes, bytes] = await redis.run(lambda client: client.hgetall(RATE_KEY_PREFIX + KEY))
    return {name.decode(): value.decode() for name, value in fields.items() if name.startswith(b"l")}


async def used(redis: Redis) -> list[int]:
    """Return the times at which Redis counts requests, one for each request."""
    fields: dict[bytes, bytes] = await redis.run(lambda client: client.hgetall(RATE_KEY_PREFIX + KEY))
    return sorted(int(name[1:]) for name, value in fields.items() if name.startswith(b"u") for _ in range(int(value)))


async def now_of(redis: Redis) -> int:
    seconds, microseconds = await redis.run(lambda client: client.time())
    return int(seconds) * 1_000_000 + int(microseconds)


async def test_most_requests_are_admitted_without_a_command(redis_server: RedisServer) -> None:
    async with opened(redis_server) as redis, requests(redis) as limits:
        before = scripts(redis_server)
        assert await admitted(limits, 200, 600) == 200
        assert scripts(redis_server) - before <= 40


async def test_most_concurrent_requests_are_admitted_without_a_command(redis_server: RedisServer) -> None:
    async with opened(redis_server) as redis, concurrency(redis) as limits:
        before = scripts(redis_server)
        for _ in range(200):
            assert await limits.acquire(KEY, 10)
            limits.release(KEY)
        assert scripts(redis_server) - before <= 20


@pytest.mark.usefixtures("late_returns")
@pytest.mark.parametrize("limit", [3, 100, 1500])
async def test_processes_together_admit_exactly_the_limit_of_concurrent_calls(
    redis_server: RedisServer, limit: int
) -> None:
    async def process() -> int:
        async with opened(redis_server) as redis, requests(redis) as limits:
            outcomes = await asyncio.gather(*(limits.hit(KEY, limit) for _ in range(limit)))
            return outcomes.count(0.0)

    assert sum(await asyncio.gather(process(), process(), process())) == limit


@pytest.mark.usefixtures("late_returns")
async def test_a_call_waits_for_the_unused_requests_of_another_process(redis: Redis) -> None:
    async with requests(redis) as one, requests(redis) as other:
        assert await admitted(one, 20, 100) == 20
        assert await leased(redis), "the first process has no slice"
        began_at = time.monotonic()
        assert await admitted(other, 100, 100) == 80
        assert time.monotonic() - began_at < 30
        assert len(await used(redis)) == 100


async def test_a_slice_is_not_used_after_its_end(redis: Redis, clock: Clock) -> None:
    async with requests(redis, clock) as limits:
        assert await admitted(limits, 4, 1000) == 4
        [slice_id] = await leased(redis)
        clock.seconds += LEASE_SECONDS
        assert await admitted(limits, 1, 1000) == 1
        assert slice_id not in await leased(redis)
        assert len(await used(redis)) == 5, "the unused requests of the slice count"


async def test_the_requests_of_a_slice_count_from_their_own_time(redis: Redis, clock: Clock) -> None:
    async with requests(redis, clock) as limits:
        assert await admitted(limits, 4, 1000) == 4
        clock.seconds += LEASE_SECONDS / 2
        assert await admitted(limits, 1, 1000) == 1
        assert len(await leased(redis)) == 1, "the last request is not of the slice"
        clock.seconds += LEASE_SECONDS
        await limits.report()
        times = await used(redis)
        assert times[-1] - times[-2] >= (LEASE_SECONDS / 2 - 0.1) * 1e6
        between = (times[-2] + times[-1]) // 2
        await let_pass(redis, clock, 60 - (await now_of(redis) - between) / 1e6)
        assert await admitted(limits, 1, 1000) == 1
        assert len(await used(redis)) == 2, "the earlier requests still count, or the last one of the slice does not"


async def test_the_slice_of_a_killed_process_counts_until_it_cannot_have_been_used(redis: Redis, clock: Clock) -> None:
    killed = SharedRequestLimits(redis, clock)
    assert await admitted(killed, 20, 100) == 20
    [slice_text] = (await leased(redis)).values()
    counted = len(await used(redis)) + int(slice_text.partition(":")[0])
    async with requests(redis, clock) as other:
        await let_pass(redis, clock, 10)
        assert await admitted(other, 100, 100) == 100 - counted
    await let_pass(redis, clock, 51)
    async with requests(redis, clock) as other:
        assert await admitted(other, 100, 100) == counted


async def test_a_flood_that_redis_refuses_does_not_reach_it_each_time(redis_server: RedisServer) -> None:
    async with opened(redis_server) as redis, requests(redis) as one, requests(redis) as other:
        assert await admitted(one, 2, 2) == 2
        assert await admitted(other, 1, 2) == 0
        before = scripts(redis_server)
        assert await admitted(other, 200, 2) == 0
        assert scripts(redis_server) - before <= 10
        assert await other.hit(KEY, 3) == 0, "the refusal was for another limit"


async def test_no_window_has_more_requests_than_the_limit(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, limit, seconds = 2.0, 200, 4.0
    monkeypatch.setattr(redis_request_limits, "WINDOW_SECONDS", window)
    for _ in range(8):  # the most admitted calls count: other processes may delay this one
        calls = await admitted_calls(redis_server, limit, seconds)
        for start, _ in calls:
            certain = sum(start <= began_at and ended_at <= start + window for began_at, ended_at in calls)
            assert certain <= limit
        if is_used := len(calls) > 0.8 * limit * seconds / window:
            break
        assert redis_server.command("FLUSHALL") == b"+OK\r\n"
    assert is_used


async def admitted_calls(redis_server: RedisServer, limit: int, seconds: float) -> list[tuple[float, float]]:
    """Make calls of three processes for some seconds. Return begin and end of the admission of each admitted one."""
    calls = list[tuple[float, float]]()
    end = time.monotonic() + seconds

    async def call(limits: SharedRequestLimits, pause: float) -> None:
        while (began_at := time.monotonic()) < end:
            if not await limits.hit(KEY, limit):
                calls.append((began_at, time.monotonic()))
            await asyncio.sleep(random.random() * pause)  # spreads the calls, more thinly in slower processes

    async def process(pause: float) -> None:
        async with opened(redis_server) as redis, requests(redis) as limits:
            await asyncio.gather(*(call(limits, pause) for _ in range(5)))

    await asyncio.gather(process(0.005), process(0.03), process(0.3))
    return calls


async def test_no_more_calls_run_than_the_limit(redis_server: RedisServer) -> None:
    limit, running, most, refused = 8, 0, 0, 0
    begin = time.monotonic()

    def is_over() -> bool:
        """Return whether calls were made for long enough, also on a busy machine."""
        seconds = time.monotonic() - begin
        return seconds > 60 or (seconds > 3 and most >= limit and refused > 0)

    async def call(limits: SharedConcurrencyLimits, pause: float) -> None:
        nonlocal running, most, refused
        while not is_over():
            if await limits.acquire(KEY, limit):
                running += 1
                most = max(most, running)
                await asyncio.sleep(random.random() * 0.01)  # the call runs
                running -= 1
                limits.release(KEY)
            else:
                refused += 1
            await asyncio.sleep(random.random() * pause)  # spreads the calls, more thinly in slower processes

    async def process(pause: float) -> None:
        async with opened(redis_server) as redis, concurrency(redis) as limits:
            await asyncio.gather(*(call(limits, pause) for _ in range(6)))

    await asyncio.gather(process(0.001), process(0.02), process(0.5))
    assert most == limit
    assert refused


@pytest.mark.usefixtures("late_returns")
async def test_a_call_waits_for_the_unused_permits_of_another_process(redis: Redis) -> None:
    async with concurrency(redis) as one, concurrency(redis) as other:
        for _ in range(2):  # calls that follow each other quickly: their permits are kept
            assert all(await asyncio.gather(*(one.acquire(KEY, 10) for _ in range(8))))
            for _ in range(8):
                one.release(KEY)
        began_at = time.monotonic()
        assert all(await asyncio.gather(*(other.acquire(KEY, 10) for _ in range(10))))
        assert time.monotonic() - began_at < 30
        assert not await one.acquire(KEY, 10)
        for _ in range(10):
            other.release(KEY)


async def test_calls_that_are_cancelled_while_they_wait_leave_no_permit(
    redis: Redis, redis_server: RedisServer
) -> None:
    async with concurrency(redis) as limits, concurrency(redis) as other:
        with redis_server.silent():
            waiting = [asyncio.create_task(limits.acquire(KEY, 2)) for _ in range(4)]
            await asyncio.sleep(0)  # the calls begin to wait
            for each in waiting:
                each.cancel()
        for outcome in await asyncio.gather(*waiting, return_exceptions=True):
            if outcome is True:  # the response came first
                limits.release(KEY)
        async with asyncio.timeout(60):
            while not await other.acquire(KEY, 1):
                await limits.synchronize()
        other.release(KEY)


async def test_the_next_call_sends_the_command_when_the_first_one_is_cancelled() -> None:
    queue, sent, began = LeaseQueue[bool](), list[int](), asyncio.Event()

    async def decide() -> None:
        sent.append(len(queue))
        began.set()
        if len(sent) == 1:
            await asyncio.Event().wait()
        queue.settle(True)

    calls = [asyncio.create_task(queue.wait(decide, lambda _: None)) for _ in range(3)]
    await began.wait()
    calls[0].cancel()
    assert await asyncio.gather(*calls[1:]) == [True, True]
    assert sent == [1, 2]
