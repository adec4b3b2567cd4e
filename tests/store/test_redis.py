"""A Redis that may be away: nobody waits for it long, and nobody fails."""

import asyncio
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass

import pytest
import structlog
from redis.asyncio import Redis as Client
from structlog.testing import capture_logs

from tests.redis import RedisServer, opened
from umg_grpc.store.redis import ANSWER_SECONDS, CONNECTIONS, PAUSE_SECONDS, Redis, RedisAway


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
    except RedisAway:
        return False
    return True


async def test_it_answers(redis: Redis) -> None:
    assert await answers(redis)


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "rediss://127.0.0.1:1", "unix:///nowhere/redis.sock"])
async def test_one_that_was_never_there_is_away(url: str) -> None:
    async with Redis.opened(url) as redis:
        assert not await answers(redis)


async def test_it_is_asked_again_after_a_pause_and_the_log_says_both_once(
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
    assert [event["event"] for event in logs] == ["Redis is away; each process goes on by itself", "Redis is back"]


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
        with pytest.raises(RedisAway):
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


async def test_those_who_wait_go_on_without_as_soon_as_one_finds_it_away(
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
    assert steps == CONNECTIONS
    assert {type(result) for result in results} == {RedisAway}


async def test_a_call_that_is_given_up_leaves_its_answer_to_nobody(redis_server: RedisServer) -> None:
    async with opened(redis_server) as redis:
        for name in ("mine", "yours"):
            await redis.run(lambda client, name=name: client.set(name, name))

        async def got(name: str) -> object:
            return await redis.run(lambda client: client.get(name))

        for _ in range(50):
            asking = asyncio.create_task(got("mine"))
            for _ in range(3):  # sent, and not answered yet
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait([asking])
            assert await got("yours") == b"yours"


async def test_an_answer_that_is_an_error_is_no_answer(redis: Redis) -> None:
    await redis.run(lambda client: client.set("text", "x"))
    with pytest.raises(RedisAway):
        await redis.run(lambda client: client.lrange("text", 0, 1))


async def test_the_log_has_no_password(logs: list[structlog.typing.EventDict]) -> None:
    async with Redis.opened("redis://user:hunter2@127.0.0.1:1/0") as redis:
        assert not await answers(redis)
    assert "hunter2" not in str(logs)
