"""Video tasks that a provider accepts while the database does not answer: none is lost, and none is sent twice."""

import asyncio
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import msgspec
import pytest

from tests.support import fake_video_upstream
from tests.support.databases import Postgres
from tests.support.fake_video_upstream import FakeVideos
from tests.support.gateways import running
from tests.support.video_calls import MODEL, Stub, create, ended, reason, stub_of, until
from umg_grpc.errors import Failure, UmgError
from umg_grpc.service.video_tasks import submission
from umg_grpc.v1 import pb


@asynccontextmanager
async def served(database: str, data: Path, fake: FakeVideos) -> AsyncGenerator[Stub, None]:
    config = f"database: {database}\n{fake_video_upstream.config(MODEL)}"
    async with running(config, data) as gateway, grpc.aio.insecure_channel(gateway.grpc) as channel:
        gateway.service._channels.videos["videos"] = fake
        yield stub_of(channel)


async def accept_without(postgres: Postgres, stub: Stub, fake: FakeVideos) -> "asyncio.Task[pb.VideoTask]":
    """Submit a task, which the provider accepts after the database has stopped. Return the call."""
    fake.hold = asyncio.Event()
    call = asyncio.create_task(create(stub))
    await until(lambda: bool(fake.submitted))
    await asyncio.to_thread(postgres.stop)
    fake.hold.set()
    return call


async def test_a_caller_gets_its_task_and_the_database_has_it_later(postgres: Postgres, tmp_path: Path) -> None:
    fake = FakeVideos()
    async with served(await postgres.create_prepared("test_accepted_tasks"), tmp_path, fake) as stub:
        try:
            task = await (await accept_without(postgres, stub, fake))
        finally:
            await asyncio.to_thread(postgres.start)
        assert task.state == pb.VIDEO_TASK_STATE_QUEUED
        fake.accepted.clear()  # the provider does not find it by the id of the gateway
        assert (await ended(stub, task.task_id)).state == pb.VIDEO_TASK_STATE_SUCCEEDED
    assert fake.submitted == {task.task_id: 1}


async def test_the_next_process_writes_the_tasks_that_a_killed_one_left(tmp_path: Path) -> None:
    """The file is that of a process which was killed after the provider had accepted its task."""
    fake = FakeVideos(refusals=[UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "cut").with_failure(Failure.AMBIGUOUS)])
    async with served("sqlite", tmp_path, fake) as stub:
        task = await create(stub)
        [sent] = fake.requests
    record = [task.task_id, f"up-{task.task_id}", sent.model, "key", "{}", 0.05]
    (tmp_path / "tasks" / "killed-0.jsonl").write_bytes(msgspec.json.encode(record) + b"\n" + bytes(100))
    async with served("sqlite", tmp_path, fake) as stub:
        assert (await ended(stub, task.task_id)).state == pb.VIDEO_TASK_STATE_SUCCEEDED
    assert fake.submitted == {task.task_id: 1}
    assert not [*(tmp_path / "tasks").glob("*.jsonl")]


async def test_a_task_that_the_journal_does_not_take_is_looked_for_at_the_provider(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submission, "DATABASE_PAUSES", (None,))
    monkeypatch.setattr(submission, "LEASE_SECONDS", 1.0)
    fake = FakeVideos()
    async with served(await postgres.create_prepared("test_unjournaled_tasks"), tmp_path, fake) as stub:
        shutil.rmtree(tmp_path / "tasks")
        try:
            assert await reason(await accept_without(postgres, stub, fake)) == "UNAVAILABLE"
        finally:
            await asyncio.to_thread(postgres.start)
        [task_id] = fake.submitted
        assert (await ended(stub, task_id)).state == pb.VIDEO_TASK_STATE_SUCCEEDED
    assert fake.submitted == {task_id: 1}
