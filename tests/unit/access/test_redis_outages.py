"""Limits of several processes while Redis is unavailable or late, and after it has lost its data."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest

from tests.support.polling import pause
from tests.support.redis import RedisServer, opened
from tests.unit.access.conftest import Clock
from tests.unit.access.test_shared_limits import admitted
from umg_grpc.access.redis_concurrency_limits import SharedConcurrencyLimits
from umg_grpc.access.redis_token_limits import SharedTokenLimits
from umg_grpc.access.request_rate_limits import RequestLimits
from umg_grpc.access.token_limits import TokenWindows
from umg_grpc.base.errors import UmgError
from umg_grpc.store.redis_client import PAUSE_SECONDS, REBUILD_SECONDS, Redis
from umg_grpc.store.redis_process_count import REMEMBERED_SECONDS, Presence


@dataclass
class Gateways:
    """Two gateway processes, each with a connection of its own to one Redis, and their clock."""

    clock: Clock
    server: RedisServer
    clients: list[Redis] = field(default_factory=list)

    def restart_without_data(self) -> None:
        self.server.stop()
        self.server.start()
        self.clock.seconds += PAUSE_SECONDS

    async def notice(self) -> None:
        """Let each process send its regular command, which shows that Redis has lost its data."""
        for client in self.clients:
            await client.run(lambda each: each.ping())

    async def wait_until_restored(self, name: str, amount: int) -> None:
        """Wait until the values of the hash `name` in Redis begin with numbers whose sum is `amount`."""
        async with asyncio.timeout(60):
            while sum(int(value.partition(b":")[0]) for value in await self._values(name)) != amount:
                await pause()
        self.clock.seconds += REBUILD_SECONDS

    async def _values(self, name: str) -> list[bytes]:
        values: list[bytes] = await self.clients[0].run(lambda client: client.hvals(name))
        return values


@pytest.fixture
async def gateways(redis_server: RedisServer, clock: Clock) -> AsyncIterator[Gateways]:
    async with AsyncExitStack() as stack:
        made = Gateways(clock, redis_server)
        for _ in range(2):
            made.clients.append(await stack.enter_async_context(opened(redis_server, clock)))
        yield made


def three() -> int:
    return 3


def two() -> int:
    return 2


async def test_a_process_admits_its_share_of_the_requests_while_redis_is_unavailable(gateways: Gateways) -> None:
    limits = [RequestLimits(gateways.clock, client, three) for client in gateways.clients]
    gateways.server.stop()
    assert [await admitted(each, times=20, rpm=10) for each in limits] == [3, 3]
    gateways.clock.seconds += 60
    assert [await admitted(each, times=20, rpm=10) for each in limits] == [3, 3]


async def test_a_limit_below_the_number_of_processes_admits_one_request_in_each(gateways: Gateways) -> None:
    limits = RequestLimits(gateways.clock, gateways.clients[0], three)
    gateways.server.stop()
    assert await admitted(limits, times=5, rpm=2) == 1


async def test_the_share_is_one_of_the_requests_that_were_left_at_the_last_answer(gateways: Gateways) -> None:
    one, other = (RequestLimits(gateways.clock, client, two) for client in gateways.clients)
    assert await admitted(one, times=6, rpm=11) == 6
    gateways.clock.seconds += 0.001
    assert await admitted(other, times=1, rpm=11) == 1
    gateways.server.stop()
    gateways.clock.seconds += 0.001
    assert await admitted(other, times=20, rpm=11) == 2  # half of 4
    assert await admitted(one, times=20, rpm=11) <= 3  # half of 5


async def test_requests_before_the_loss_of_the_data_count_after_it(gateways: Gateways) -> None:
    limits = [RequestLimits(gateways.clock, client, two) for client in gateways.clients]
    before = [await admitted(each, times=1, rpm=9) for each in 3 * limits]
    gateways.restart_without_data()
    await gateways.notice()
    during = [await admitted(each, times=9, rpm=9) for each in limits]
    await gateways.wait_until_restored("umg:requests:key_1", 9)
    after = [await admitted(each, times=9, rpm=9) for each in limits]
    assert sum(before) == 6
    assert during == [2, 1]  # halves of 4 and of 3 requests, which were left at the last answers
    assert after == [0, 0]


async def test_a_late_answer_admits_no_call_beyond_the_limit(gateways: Gateways) -> None:
    one, other = (SharedConcurrencyLimits(client, gateways.clock, two) for client in gateways.clients)
    assert all([await one.acquire("key_1", 10) for _ in range(10)])
    with gateways.server.silent():
        waiting = asyncio.create_task(other.acquire("key_1", 10))
        done, _ = await asyncio.wait({waiting}, timeout=0.3)
        assert not done
    assert not await waiting


async def test_concurrent_calls_have_a_share_and_no_permits_of_others_while_redis_is_unavailable(
    gateways: Gateways,
) -> None:
    one, other = (SharedConcurrencyLimits(client, gateways.clock, two) for client in gateways.clients)
    assert all([await one.acquire("key_1", 10) for _ in range(8)])
    assert await other.acquire("key_1", 10)
    gateways.server.stop()
    assert [await other.acquire("key_1", 10) for _ in range(3)] == [True, False, False]
    assert not await one.acquire("key_1", 10)


async def test_running_calls_keep_their_permits_after_the_loss_of_the_data(gateways: Gateways) -> None:
    one, other = (SharedConcurrencyLimits(client, gateways.clock, two) for client in gateways.clients)
    assert all([await one.acquire("key_1", 10) for _ in range(8)])
    gateways.restart_without_data()
    await gateways.notice()
    assert [await other.acquire("key_1", 10) for _ in range(6)] == [True] * 5 + [False]  # its share
    for _ in range(5):
        other.release("key_1")
    await gateways.wait_until_restored("umg:running:key_1", 8)
    assert [await other.acquire("key_1", 10) for _ in range(4)] == [True, True, False, False]


async def test_tokens_of_a_minute_have_a_share_and_count_after_the_loss_of_the_data(gateways: Gateways) -> None:
    windows = TokenWindows(gateways.clock)
    one = SharedTokenLimits(gateways.clients[0], gateways.clock, windows.used)
    other = SharedTokenLimits(gateways.clients[1], gateways.clock)
    windows.reserve("key_1", 1000, 600)
    assert await one.take("key_1", 1000, 600) is not None
    gateways.restart_without_data()
    await gateways.notice()
    assert await one.take("key_1", 1000, 100) is None  # the caller compares its window with the share
    await gateways.wait_until_restored("umg:tokens:key_1", 600)
    with pytest.raises(UmgError):
        await other.take("key_1", 1000, 500)
    assert await other.take("key_1", 1000, 300) is not None


async def test_processes_are_counted_while_they_send_and_remembered_without_redis(gateways: Gateways) -> None:
    one, other = (Presence(client, lambda: 7, gateways.clock) for client in gateways.clients)
    assert one.processes == 7  # those of this machine, before the first answer
    for each in (one, other, one):
        await each.send()
    assert (one.processes, other.processes) == (2, 2)
    gateways.restart_without_data()
    await one.send()
    assert one.processes == 2  # the others may come back a moment later
    gateways.clock.seconds += REMEMBERED_SECONDS
    await one.send()
    assert one.processes == 1
    gateways.server.stop()
    await one.send()
    assert one.processes == 1
