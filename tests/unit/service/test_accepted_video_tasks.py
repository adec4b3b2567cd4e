"""Video tasks that a provider accepts while the database does not answer: none is lost, and none is sent twice."""

import asyncio
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import grpc
import msgspec
import pytest

from tests.support import fake_video_upstream
from tests.support.databases import Postgres
from tests.support.fake_video_upstream import FakeVideos
from tests.support.gateways import running
from tests.support.video_calls import (
    AUTHORIZED,
    MODEL,
    Stub,
    create,
    ended,
    eventually,
    get,
    reason,
    request,
    stub_of,
    until,
)
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.service.operations.video import video_submission
from umg_grpc.service.video_tasks import accepted_tasks, poll_outcomes, task_background_worker
from umg_grpc.store import open_store
from umg_grpc.store.usage_record_table import decode_details
from umg_grpc.store.video_task_table import VideoTasks
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


async def start_again(postgres: Postgres, stub: Stub) -> None:
    """Start the database, and wait until the gateway has found it: after a long outage calls fail at once until then."""

    async def is_back() -> bool:
        with suppress(grpc.aio.AioRpcError):
            await stub.ListVideoTasks(pb.ListVideoTasksRequest(), metadata=AUTHORIZED)
            return True
        return False

    await asyncio.to_thread(postgres.start)
    await eventually(is_back, bool)


async def test_a_caller_gets_its_task_and_the_database_has_it_later(postgres: Postgres, tmp_path: Path) -> None:
    fake, database = FakeVideos(), await postgres.create_prepared("test_accepted_tasks")
    async with served(database, tmp_path, fake) as stub:
        try:
            task = await (await accept_without(postgres, stub, fake))
            fake.accepted.clear()  # the provider does not find it by the id of the gateway
        finally:
            await start_again(postgres, stub)
        assert task.state == pb.VIDEO_TASK_STATE_QUEUED
        assert (await ended(stub, task.task_id)).state == pb.VIDEO_TASK_STATE_SUCCEEDED
    assert fake.submitted == {task.task_id: 1}
    store = await open_store(database, tmp_path)
    found = await VideoTasks(store, "reader").get(task.task_id)
    assert found is not None
    assert [attempt.channel for attempt in decode_details(found.details or "").attempts] == ["videos"]
    await store.aclose()


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
    monkeypatch.setattr(video_submission, "DATABASE_PAUSES", (None,))
    monkeypatch.setattr(video_submission, "LEASE_SECONDS", 1.0)
    fake = FakeVideos()
    async with served(await postgres.create_prepared("test_unjournaled_tasks"), tmp_path, fake) as stub:
        shutil.rmtree(tmp_path / "tasks")
        try:
            assert await reason(await accept_without(postgres, stub, fake)) == "UNAVAILABLE"
        finally:
            await start_again(postgres, stub)
        [task_id] = fake.submitted
        assert (await ended(stub, task_id)).state == pb.VIDEO_TASK_STATE_SUCCEEDED
    assert fake.submitted == {task_id: 1}


@pytest.fixture
def few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten leases, the pauses between look-ups, and the time in which a gateway without a database closes."""
    monkeypatch.setattr(video_submission, "LEASE_SECONDS", 1.0)
    monkeypatch.setattr(poll_outcomes, "FIND_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(task_background_worker, "CLOSE_SECONDS", 1.0)
    monkeypatch.setattr(video_submission, "CLOSE_SECONDS", 1.0)
    monkeypatch.setattr(accepted_tasks, "CLOSE_SECONDS", 1.0)


async def until_looked_up(fake: FakeVideos, task_id: str) -> None:
    """Wait until a task was looked up more often than one whose submitter does not know the outcome."""
    await until(lambda: fake.looked_up[task_id] > poll_outcomes.FIND_ATTEMPTS)


@pytest.mark.usefixtures("few_seconds")
async def test_another_machine_does_not_give_up_a_task_that_a_stopped_one_has_in_its_folder(
    postgres: Postgres, tmp_path: Path
) -> None:
    """The machine stops before the database is back, and starts again when others have looked for its task for long."""
    database, fake = await postgres.create_prepared("test_stopped_submitter"), FakeVideos()
    async with served(database, tmp_path / "other", fake) as other:
        try:
            async with served(database, tmp_path / "stopped", fake) as stub:
                task = await (await accept_without(postgres, stub, fake))
            fake.accepted.clear()  # the provider does not find it by the id of the gateway, also for the other machine
        finally:
            await asyncio.to_thread(postgres.start)
        await until_looked_up(fake, task.task_id)
        assert (await get(other, task.task_id)).state == pb.VIDEO_TASK_STATE_SUBMITTING
        async with served(database, tmp_path / "stopped", fake):
            assert (await ended(other, task.task_id)).state == pb.VIDEO_TASK_STATE_SUCCEEDED
    assert fake.submitted == {task.task_id: 1}


@pytest.mark.usefixtures("few_seconds")
async def test_a_submitter_that_does_not_know_the_outcome_reports_it_when_the_database_is_back(
    postgres: Postgres, tmp_path: Path
) -> None:
    database = await postgres.create_prepared("test_unknown_outcome")
    fake = FakeVideos(refusals=[UmgError(pb.ERROR_REASON_UPSTREAM_CUT, "cut").with_failure(Failure.AMBIGUOUS)])
    async with served(database, tmp_path, fake) as stub:
        try:
            task = await (await accept_without(postgres, stub, fake))
        finally:
            await start_again(postgres, stub)
        assert (await ended(stub, task.task_id)).error.code == "submit_unconfirmed"
    assert fake.submitted == {task.task_id: 1}


@pytest.mark.usefixtures("few_seconds")
async def test_a_submitter_that_closes_reports_the_submissions_that_it_cancels(
    postgres: Postgres, tmp_path: Path
) -> None:
    database, fake = await postgres.create_prepared("test_closed_submitter"), FakeVideos(hold=asyncio.Event())
    async with served(database, tmp_path / "closed", fake) as stub:
        call = stub.CreateVideoTask(request(), metadata=AUTHORIZED)
        await until(lambda: bool(fake.submitted))
        call.cancel()  # the submission goes on
    [task_id] = fake.submitted
    async with served(database, tmp_path / "other", fake) as other:
        assert (await ended(other, task_id)).error.code == "submit_unconfirmed"


@pytest.mark.usefixtures("few_seconds")
async def test_a_task_whose_submitter_never_reports_is_given_up(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, fake = await postgres.create_prepared("test_lost_submitter"), FakeVideos()
    try:
        async with served(database, tmp_path / "lost", fake) as stub:
            task = await (await accept_without(postgres, stub, fake))
    finally:
        await asyncio.to_thread(postgres.start)
    fake.accepted.clear()
    async with served(database, tmp_path / "other", fake) as other:
        await until_looked_up(fake, task.task_id)
        monkeypatch.setattr(poll_outcomes, "SUBMITTER_SECONDS", 1.0)
        assert (await ended(other, task.task_id)).error.code == "submit_unconfirmed"
