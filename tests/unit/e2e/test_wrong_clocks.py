"""A replica whose wall clock is hours or days off, beside a right one on the same PostgreSQL: it is not ready, and fails,
delays and deletes nothing.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from sqlalchemy import func, select, update

from tests.support.databases import Postgres
from tests.support.processes import UMG, Served, serve
from tests.support.providers.server import serve_provider
from tests.support.providers.video_a import VideoObjectProvider
from tests.support.shifted_clocks import ShiftedClock, needs_shifted_clocks
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.store import Store, open_store
from umg_grpc.store.blob_folder import BlobFolder
from umg_grpc.store.blob_store import BlobStore
from umg_grpc.store.table_definitions import BudgetLease, MediaTask
from umg_grpc.store.video_task_table import RUNNING_STATE, SUCCEEDED_STATE

HOUR, DAY = 3600, 86_400
TASKS = 20
KEY = "sk-umg-of-the-tests-of-wrong-clocks"
SKEW = re.compile(r"^umg_clock_skew_seconds (\S+)$", re.MULTILINE)
POLLS = re.compile(r'^umg_video_polls_total\{.*outcome="ok".*\} (\S+)$', re.MULTILINE)
LONGEST_PAUSE_SECONDS = 60


@dataclass
class World:
    """Right replica, a replica with a clock that the test shifts, and the provider of their videos."""

    right: Served
    wrong: Served
    clock: ShiftedClock
    provider: VideoObjectProvider
    store: Store
    session: aiohttp.ClientSession

    async def skew(self) -> float:
        async with self.session.get(f"{self.wrong.http}/metrics") as response:
            return float(SKEW.findall(await response.text())[0])

    async def readiness(self) -> tuple[int, list[str]]:
        async with self.session.get(f"{self.wrong.http}/readyz") as response:
            return response.status, (await response.json())["reasons"]

    async def polls(self) -> float:
        async with self.session.get(f"{self.wrong.http}/metrics") as response:
            return sum(map(float, POLLS.findall(await response.text())))

    async def submit(self, served: Served) -> str:
        body = {"model": "vidA-2", "prompt": "a paper boat", "seconds": "4"}
        async with self.session.post(f"{served.http}/v1/videos", json=body, headers=bearer(KEY)) as response:
            answer = await response.json()
            assert response.status == 200, answer
            return str(answer["id"])

    async def status(self, served: Served, key: str) -> int:
        async with self.session.get(f"{served.http}/v1/models", headers=bearer(key)) as response:
            return response.status

    async def make_due(self) -> None:
        async with self.store.write() as session:
            open_tasks = update(MediaTask).where(MediaTask.next_poll_micros.is_not(None), MediaTask.lease_owner == "")
            await session.execute(open_tasks.values(next_poll_micros=0))

    async def states(self) -> dict[int, int]:
        """Return state -> number of tasks in it."""
        async with self.store.read() as session:
            query = select(MediaTask.state, func.count()).group_by(MediaTask.state)
            return dict((await session.execute(query)).all())

    async def latest_poll(self) -> float:
        """Return the seconds until the last open task is polled, or its lease ends, by the clock of the database."""
        async with self.store.read() as session:
            last = func.max(MediaTask.next_poll_micros) - self.store.clock.sql_micros()
            return float(await session.scalar(select(last)) or 0) / 1e6

    async def until_all(self, *states: int) -> None:
        async with asyncio.timeout(60):
            while (await self.states()).keys() - set(states):
                await self.make_due()
                await asyncio.sleep(0.05)  # leaves the processor to the gateways


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


async def add_lease(store: Store) -> None:
    """Add a lease on a budget that another machine has just confirmed."""
    lease = BudgetLease(
        key_id="key", period_start=0, holder="another", directory="elsewhere", held_micro_credits=5,
        renew_micros=round(store.clock.now() * 1e6),
    )  # fmt: skip
    async with store.write() as session:
        session.add(lease)


@pytest.fixture
async def world(postgres: Postgres, tmp_path: Path) -> AsyncIterator[World]:
    url = await postgres.create_prepared("test_wrong_clocks")
    config, clock = tmp_path / "config.yaml", ShiftedClock(tmp_path / "shift")
    clock.set(2 * HOUR)
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(serve_provider(VideoObjectProvider(plan=("queued", "running"))))
        config.write_text(
            f"database: {url}\nblobs: {{ttl: 1h}}\nchannels:\n  - {{name: videos, protocols: [vidA],"
            f" base_url: '{provider.url}/v1', api_key: {provider.keys[0]}, models: [vidA-2]}}\n"
        )
        variables = {"UMG_API_KEY": KEY}
        right = serve(tmp_path / "right", "--config", str(config), environment=variables)
        wrong = serve(
            tmp_path / "wrong", "--config", str(config), environment=variables | clock.environment, program=UMG
        )
        store = await open_store(url, tmp_path)
        stack.push_async_callback(store.aclose)
        blobs = BlobStore(BlobFolder(tmp_path / "wrong"), ttl=HOUR, max_bytes=2**30)
        blob = await blobs.put(b"a file of the replica before its restart", "video/mp4")
        await add_lease(store)
        served = await stack.enter_async_context(right)
        made = World(
            *(served, await stack.enter_async_context(wrong), clock, provider, store),
            await stack.enter_async_context(aiohttp.ClientSession()),
        )
        yield made
        assert await blobs.head(blob.id) == blob
        async with store.read() as session:
            leases = select(BudgetLease.held_micro_credits, BudgetLease.booked_micros)
            assert (await session.execute(leases.where(BudgetLease.holder == "another"))).all() == [(5, None)]


@needs_shifted_clocks
async def test_a_replica_with_a_wrong_clock_does_no_harm(world: World) -> None:
    keys = ApiKeys(world.store)
    soon = datetime.now(UTC) + timedelta(hours=1)
    _, living = await keys.create("living", expire_time=soon)
    past = ApiKeys(world.store, now=lambda: soon - timedelta(hours=3))
    _, expired = await past.create("expired", expire_time=soon - timedelta(hours=2))

    # started two hours ahead
    assert await world.skew() == pytest.approx(2 * HOUR, abs=5)
    status, [reason] = await world.readiness()
    assert (status, reason.partition(" s ")[2]) == (
        503,
        "ahead of that of the database; synchronize both machines by NTP (chrony, systemd-timesyncd)",
    )
    assert [await world.status(world.wrong, key) for key in (living, expired)] == [200, 401]

    # two days ahead, with tasks of the right replica
    for _ in range(TASKS):
        await world.submit(world.right)
    world.clock.set(2 * DAY)
    before = await world.polls()
    async with asyncio.timeout(60):
        while await world.polls() < before + 2 * TASKS:
            await world.make_due()
    await world.until_all(RUNNING_STATE)  # the replicas may have polled some tasks more often than others
    assert await world.states() == {RUNNING_STATE: TASKS}
    assert await world.latest_poll() < LONGEST_PAUSE_SECONDS
    assert await world.skew() == pytest.approx(2 * DAY, abs=5)
    await world.wrong.until_logged("old data is not deleted")

    # two hours behind: its own task is as old as it is
    world.clock.set(-2 * HOUR)
    await world.submit(world.wrong)
    assert [await world.status(world.wrong, key) for key in (living, expired)] == [200, 401]
    await world.until_all(RUNNING_STATE)
    assert await world.latest_poll() < LONGEST_PAUSE_SECONDS

    world.provider.plan = ("succeeded",)
    await world.until_all(SUCCEEDED_STATE)
    assert await world.states() == {SUCCEEDED_STATE: TASKS + 1}
    assert world.provider.submissions == TASKS + 1
    world.clock.set(0)
    assert await world.readiness() == (200, [])
    await world.wrong.until_logged("the clock is right again")
