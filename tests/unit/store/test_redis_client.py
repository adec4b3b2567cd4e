"""Unavailable Redis: calls neither wait for it long nor fail because of it."""

import asyncio
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass

import pytest
import structlog
from redis.asyncio import Redis as Client
from structlog.testing import capture_logs

from tests.support.redis import RedisServer, opened
from umg_grpc.store.redis_client import (
    ANSWER_SECONDS,
    MAX_CONNECTIONS,
    PAUSE_SECONDS,
    WAITING_BYTES,
    Redis,
    RedisUnavailable,
    Writes,
)


@dataclass
class Clock:
    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def logs() -> Iterator[list[structlog.typing.EventDict]]:
    with capture_logs() as events:
        yield events


async def answers(redis: Redis) -> bool:
    async def ping(client: Client) -> bytes | str | bool:
        return await client.execute_command("PING")

    try:
        await redis.run(ping)
    except RedisUnavailable:
        return False
    return True


async def test_it_answers(redis: Redis) -> None:
    assert await answers(redis)


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "rediss://127.0.0.1:1", "unix:///nowhere/redis.sock"])
async def test_a_dependency_that_never_answered_is_unavailable(url: str) -> None:
    async with Redis.opened(url) as redis:
        assert not await answers(redis)


async def test_it_is_called_again_after_a_pause_and_both_are_logged_once(
    redis_server: RedisServer, clock: Clock, logs: list[structlog.typing.EventDict]
) -> None:
    async with opened(redis_server, clock) as redis:
        assert await answers(redis)
        redis_server.stop()
        for _ in range(3):
            assert not await answers(redis)
            clock.seconds += PAUSE_SECONDS
            assert not await answers(redis)
        redis_server.start()
        assert not await answers(redis)
        clock.seconds += PAUSE_SECONDS
        assert await answers(redis)
        assert await answers(redis)
    assert [event["event"] for event in logs] == [
        "Redis is away; each process goes on by itself",
        "Redis has lost its data; the limits are counted from the requests that the processes know",
        "Redis is back",
    ]


async def test_a_restart_between_two_calls_goes_unnoticed(redis_server: RedisServer) -> None:
    async with opened(redis_server) as redis:
        assert await answers(redis)
        redis_server.stop()
        redis_server.start()
        assert await answers(redis)


async def test_a_silent_one_is_waited_for_briefly_and_after_that_by_one_call_a_second(
    redis_server: RedisServer, clock: Clock
) -> None:
    steps = 0

    def counted(client: Client) -> Awaitable[bytes | str | bool]:
        nonlocal steps
        steps += 1
        return client.execute_command("PING")

    async def away(redis: Redis) -> None:
        with pytest.raises(RedisUnavailable):
            await redis.run(counted)

    async with Redis.opened(redis_server.url, clock) as redis:
        with redis_server.silent():
            began = asyncio.get_running_loop().time()
            await asyncio.gather(*(away(redis) for _ in range(50)))
            assert asyncio.get_running_loop().time() - began < 20 * ANSWER_SECONDS
            clock.seconds += PAUSE_SECONDS
            steps = 0
            await asyncio.gather(*(away(redis) for _ in range(50)))
            assert steps == 1


async def test_many_at_once_wait_for_each_other_and_none_takes_that_for_silence(redis: Redis) -> None:
    assert all(await asyncio.gather(*(answers(redis) for _ in range(500))))


async def test_waiting_calls_fail_as_soon_as_one_finds_redis_unavailable(
    redis_server: RedisServer, clock: Clock
) -> None:
    steps = 0

    def counted(client: Client) -> Awaitable[bytes | str | bool]:
        nonlocal steps
        steps += 1
        return client.execute_command("PING")

    async with Redis.opened(redis_server.url, clock) as redis:
        with redis_server.silent():
            results = await asyncio.gather(*(redis.run(counted) for _ in range(500)), return_exceptions=True)
    assert steps == MAX_CONNECTIONS
    assert {type(result) for result in results} == {RedisUnavailable}


async def test_waiting_for_a_connection_takes_no_longer_than_waiting_for_an_answer(redis_server: RedisServer) -> None:
    async with Redis.opened(redis_server.url, seconds=4.0) as redis:
        go = asyncio.Event()
        began, reached = asyncio.get_running_loop().time(), False

        async def busy(client: Client) -> None:
            await go.wait()

        async def reach(client: Client) -> None:
            nonlocal reached
            reached = True

        holders = [asyncio.create_task(redis.run(busy)) for _ in range(MAX_CONNECTIONS)]
        await asyncio.sleep(0)
        with pytest.raises(RedisUnavailable):
            await redis.run(reach)
        assert asyncio.get_running_loop().time() - began < 4.0
        assert not reached
        go.set()
        await asyncio.gather(*holders)
        assert await answers(redis)  # a long queue does not mean that it is away


async def test_no_other_call_gets_the_answer_of_a_cancelled_call(redis_server: RedisServer) -> None:
    async with opened(redis_server) as redis:
        for name in ("mine", "yours"):
            await redis.run(lambda client, name=name: client.set(name, name))

        async def got(name: str) -> object:
            return await redis.run(lambda client: client.get(name))

        for _ in range(50):
            cancelled_call = asyncio.create_task(got("mine"))
            for _ in range(3):  # sent, and not answered yet
                await asyncio.sleep(0)
            cancelled_call.cancel()
            await asyncio.wait([cancelled_call])
            assert await got("yours") == b"yours"


async def test_an_answer_that_is_an_error_is_no_answer(redis: Redis) -> None:
    await redis.run(lambda client: client.set("text", "x"))
    with pytest.raises(RedisUnavailable):
        await redis.run(lambda client: client.lrange("text", 0, 1))


async def test_the_log_has_no_password(logs: list[structlog.typing.EventDict]) -> None:
    async with Redis.opened("redis://user:hunter2@127.0.0.1:1/0") as redis:
        assert not await answers(redis)
    assert "hunter2" not in str(logs)


async def test_writes_are_made_in_the_background_and_the_last_ones_at_the_end(redis: Redis) -> None:
    writes = Writes(redis, "writing")
    writes.set("a", b"1", 60)
    writes.set("b", b"2", 60)
    writes.set("a", b"3", 60)  # the newer value is kept
    await writes.done()
    writes.set("c", b"4", 60)
    await writes.aclose()
    assert await redis.run(lambda client: client.mget("a", "b", "c")) == [b"3", b"2", b"4"]
    assert 0 < await redis.run(lambda client: client.pttl("a")) <= 60_000


async def test_writes_that_wait_are_bounded_and_the_oldest_go(redis: Redis) -> None:
    writes = Writes(redis, "writing")
    for name in ("a", "b", "c"):
        writes.set(name, bytes(WAITING_BYTES // 2), 60)
    await writes.aclose()
    there = await redis.run(lambda client: client.exists("a")), await redis.run(lambda client: client.exists("b", "c"))
    assert there == (0, 2)


async def test_writes_during_an_outage_are_lost_and_later_ones_succeed(redis_server: RedisServer, clock: Clock) -> None:
    async with opened(redis_server, clock) as redis:
        writes = Writes(redis, "writing")
        redis_server.stop()
        writes.set("a", b"1", 60)
        await writes.done()
        redis_server.start()
        clock.seconds += PAUSE_SECONDS
        writes.set("b", b"2", 60)
        await writes.aclose()
        assert await redis.run(lambda client: client.mget("a", "b")) == [None, b"2"]
