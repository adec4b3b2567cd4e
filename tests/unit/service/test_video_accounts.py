"""Money of video tasks: reserved with the task, charged once at its success, released at every other end."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import grpc
import pytest

from tests.support import fake_video_upstream
from tests.support.databases import Database
from tests.support.fake_video_upstream import FAILED, QUEUED, RUNNING, FakeVideos
from tests.support.gateways import Running, running
from tests.support.video_calls import SECONDS, Stub, eventually, reason, request, stub_of
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.store.budget_accounts import NO_BALANCE, Balance, BudgetAccounts
from umg_grpc.store.usage_parts import CallFilter
from umg_grpc.store.usage_record_table import UsageRecord, UsageRecords
from umg_grpc.v1 import pb

CREDIT = 1_000_000
PRICE = "models: {clips-1: {price: {video_second: {any: '0.1'}}}}\n"
COST = 5 * CREDIT // 10


@dataclass(frozen=True)
class Spender:
    gateway: Running
    fake: FakeVideos
    stub: Stub
    key_id: str
    secret: str

    async def create(self, prompt: str = "a cat") -> str:
        made = await self.stub.CreateVideoTask(request(prompt), metadata=self.metadata)
        return made.task.task_id

    async def ended(self, task_id: str) -> pb.VideoTask:
        async with asyncio.timeout(SECONDS):
            async for message in self.stub.WatchVideoTask(
                pb.WatchVideoTaskRequest(task_id=task_id), metadata=self.metadata
            ):
                last = message.task
        return last

    @property
    def metadata(self) -> tuple[tuple[str, str]]:
        return (("authorization", f"Bearer {self.secret}"),)

    async def balance(self) -> Balance:
        return (await BudgetAccounts(self.gateway.service.store).balances({self.key_id: 0})).get(
            self.key_id, NO_BALANCE
        )

    async def returned(self) -> Balance:
        """Return the balance after the process has returned its unused lease."""
        return await eventually(self.balance, lambda balance: not balance.held)

    async def records(self) -> list[UsageRecord]:
        since = datetime.now(UTC) - timedelta(hours=1)
        records = UsageRecords(self.gateway.service.store)
        return await records.page(CallFilter(since, only={"key": [self.key_id]}), None, 100)


@pytest.fixture
def database(prepared_database: Database) -> Database:
    return prepared_database


@asynccontextmanager
async def spender(database: Database, budget: int) -> AsyncGenerator[Spender, None]:
    config = f"database: {database.url}\n{fake_video_upstream.config('clips-1')}{PRICE}"
    async with running(config, database.data_dir) as gateway, grpc.aio.insecure_channel(gateway.grpc) as channel:
        fake = FakeVideos()
        gateway.service._channels.videos["videos"] = fake
        key, secret = await ApiKeys(gateway.service.store).create("spender", budget_micro_credits=budget)
        yield Spender(gateway, fake, stub_of(channel), key.key_id, secret)


async def test_a_task_is_charged_once_for_its_seconds(database: Database) -> None:
    async with spender(database, 10 * CREDIT) as caller:
        task = await caller.ended(await caller.create())
        assert task.usage.output_seconds == 5
        assert await caller.returned() == Balance(COST, 0)
        (record,) = await caller.records()
        assert (record.record_id, record.micro_credits, record.status) == (task.task_id, COST, "OK")
        assert (record.operation, record.videos, record.video_seconds) == ("create_video", 1, 5)
        assert record.agent == "grpc"


async def test_a_failed_task_costs_nothing(database: Database) -> None:
    async with spender(database, 10 * CREDIT) as caller:
        caller.fake.script = [RUNNING, FAILED]
        await caller.ended(await caller.create())
        assert await caller.returned() == Balance(0, 0)
        (record,) = await caller.records()
        assert (record.micro_credits, record.reason) == (0, "UPSTREAM_FAILED")


async def test_an_open_task_holds_its_maximum(database: Database) -> None:
    async with spender(database, COST) as caller:
        caller.fake.script = [QUEUED]
        task_id = await caller.create()
        assert (
            await reason(caller.stub.CreateVideoTask(request("a dog"), metadata=caller.metadata)) == "QUOTA_EXHAUSTED"
        )
        await caller.stub.DeleteVideoTask(pb.DeleteVideoTaskRequest(task_id=task_id), metadata=caller.metadata)
        caller.fake.script = [fake_video_upstream.SUCCEEDED]
        await asyncio.sleep(0.6)  # a refusal is repeated for half a second without the database
        await caller.ended(await caller.create("a dog"))
        assert await caller.returned() == Balance(COST, 0)


async def test_a_refused_submission_releases_its_reservation(database: Database) -> None:
    async with spender(database, COST) as caller:
        refusal = UmgError(pb.ERROR_REASON_UPSTREAM_REJECTED, "the prompt is not allowed")
        caller.fake.refusals = [refusal.with_failure(Failure.CALLER)]
        assert await reason(caller.stub.CreateVideoTask(request(), metadata=caller.metadata)) == "UPSTREAM_REJECTED"
        await caller.ended(await caller.create())
        assert await caller.returned() == Balance(COST, 0)


async def test_two_ends_at_once_are_charged_once(database: Database) -> None:
    async with spender(database, 10 * CREDIT) as caller:
        caller.fake.script = [QUEUED]
        task_id = await caller.create()
        rows = caller.gateway.service.tasks.context.rows
        ends = [
            rows.advance(task_id, pb.VIDEO_TASK_STATE_SUCCEEDED, micro_credits=COST, next_poll_micros=None)
            for _ in range(4)
        ] + [rows.advance(task_id, pb.VIDEO_TASK_STATE_FAILED, next_poll_micros=None) for _ in range(4)]
        won = [row for row in await asyncio.gather(*ends) if row is not None]
        assert len(won) == 1
        charged = won[0].micro_credits
        assert await caller.returned() == Balance(charged, 0)
        (record,) = await caller.records()
        assert record.micro_credits == charged
