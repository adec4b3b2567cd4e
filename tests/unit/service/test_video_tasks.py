"""Video tasks of a running gateway: submitted once, polled to their end, charged once."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
from aiohttp import ClientSession
from sqlalchemy import text

from tests.support import fake_video_upstream
from tests.support.fake_video_upstream import FAILED, QUEUED, RUNNING, FakeVideos
from tests.support.gateways import Running, running
from tests.support.store_fixtures import WrongClock
from tests.support.video_calls import AUTHORIZED, MODEL, SECONDS, Stub, create, ended, get, reason, request, until
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.service.video_tasks import stalled_tasks
from umg_grpc.store.database_time import utc_of
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.video.provider_task_types import ProviderStatus
from umg_grpc.wire.video.providers.response_decoding import unknown_state

NO_VIDEO = ProviderStatus(state=pb.VIDEO_TASK_STATE_SUCCEEDED)


@pytest.fixture
def fake() -> FakeVideos:
    return FakeVideos()


@pytest_asyncio.fixture
async def gateway(tmp_path: Path, fake: FakeVideos) -> AsyncGenerator[Running, None]:
    async with running(fake_video_upstream.config(MODEL), tmp_path) as made:
        made.service._channels.videos["videos"] = fake
        yield made


@pytest_asyncio.fixture
async def stub(gateway: Running) -> AsyncGenerator[Stub, None]:
    async with grpc.aio.insecure_channel(gateway.grpc) as channel:
        yield rpc.VideoServiceStub(channel)  # type: ignore[misc]


async def test_a_task_passes_through_its_states_to_its_results(stub: Stub, fake: FakeVideos) -> None:
    task = await create(stub)
    assert task.state == pb.VIDEO_TASK_STATE_QUEUED
    assert task.task_id.startswith("task_")
    assert len(task.task_id) == 37
    seen = list[tuple[int, int]]()
    async with asyncio.timeout(SECONDS):
        async for message in stub.WatchVideoTask(pb.WatchVideoTaskRequest(task_id=task.task_id), metadata=AUTHORIZED):
            seen.append((message.task.state, message.task.progress_percent))
    assert [state for state, _ in seen][-1] == pb.VIDEO_TASK_STATE_SUCCEEDED
    assert seen == sorted(seen)
    assert seen[-1][1] == 100
    done = await get(stub, task.task_id)
    assert [result.url for result in done.results] == [fake_video_upstream.URL]
    assert (done.usage.video_count, done.usage.output_seconds) == (1, 5)
    assert done.expire_time.ToMicroseconds() > done.complete_time.ToMicroseconds()
    assert fake.submitted == {task.task_id: 1}


async def test_a_failed_task_has_its_reason(stub: Stub, fake: FakeVideos) -> None:
    fake.script = [RUNNING, FAILED]
    done = await ended(stub, (await create(stub)).task_id)
    assert done.state == pb.VIDEO_TASK_STATE_FAILED
    assert (done.error.code, done.error.status_code) == ("content_policy_violation", 400)
    assert not done.HasField("usage")


async def test_a_success_without_a_video_is_polled_again_then_a_failure(
    stub: Stub, fake: FakeVideos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stalled_tasks, "NO_VIDEO_SECONDS", 0)
    fake.script = [NO_VIDEO]
    task = await create(stub)
    done = await ended(stub, task.task_id)
    assert (done.state, done.error.code) == (pb.VIDEO_TASK_STATE_FAILED, "task_failed")
    assert fake.polled[f"up-{task.task_id}"] == 5


async def test_a_task_that_its_provider_has_lost_expires(
    stub: Stub, fake: FakeVideos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stalled_tasks, "LOST_SECONDS", 0)
    lost = UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, "no such task").with_failure(Failure.CALLER)
    fake.script = [RUNNING, lost]
    task = await create(stub)
    done = await ended(stub, task.task_id)
    assert (done.state, done.error.code) == (pb.VIDEO_TASK_STATE_FAILED, "task_expired")
    assert fake.polled[f"up-{task.task_id}"] == 4


async def test_a_task_without_an_end_expires(stub: Stub, fake: FakeVideos) -> None:
    fake.script, fake.deadline_seconds = [RUNNING], 0.2
    done = await ended(stub, (await create(stub)).task_id)
    assert (done.state, done.error.code, done.error.status_code) == (pb.VIDEO_TASK_STATE_FAILED, "task_expired", 504)


LOST = UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, "no such task").with_failure(Failure.CALLER)


@dataclass(frozen=True)
class GivenUp:
    """Answers of a provider to which a task is given up after a time."""

    id: str
    script: Sequence[ProviderStatus | UmgError]
    deadline_seconds: float = 60.0


GIVEN_UP = [
    GivenUp("no end before the deadline", [RUNNING], 0.2),
    GivenUp("a lost task", [RUNNING, LOST]),
    GivenUp("a success without a video", [NO_VIDEO]),
    GivenUp("an unknown state", [replace(RUNNING, unknown_word="reviewing")]),
]


@pytest.mark.parametrize("case", GIVEN_UP, ids=lambda case: case.id)
async def test_no_task_is_given_up_while_the_clock_is_wrong(
    case: GivenUp, gateway: Running, stub: Stub, fake: FakeVideos, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_VIDEO_SECONDS", "LOST_SECONDS", "UNKNOWN_STATE_SECONDS"):
        monkeypatch.setattr(stalled_tasks, name, 0)
    tasks, right = gateway.service.tasks.context, gateway.service.store.clock
    tasks.clock = WrongClock(partial(utc_of, right))
    fake.script, fake.deadline_seconds = case.script, case.deadline_seconds
    task = await create(stub)
    await until(lambda: fake.polled[f"up-{task.task_id}"] >= 7)
    assert (await get(stub, task.task_id)).state != pb.VIDEO_TASK_STATE_FAILED
    tasks.clock = right
    assert (await ended(stub, task.task_id)).state == pb.VIDEO_TASK_STATE_FAILED


# --- stalls


async def test_a_new_task_that_a_relay_does_not_know_yet_is_polled_on(stub: Stub, fake: FakeVideos) -> None:
    lost = UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, "no such task").with_failure(Failure.CALLER)
    fake.script = [lost, lost, lost, lost, fake_video_upstream.SUCCEEDED]
    done = await ended(stub, (await create(stub)).task_id)
    assert done.state == pb.VIDEO_TASK_STATE_SUCCEEDED


async def test_a_video_that_a_relay_still_copies_is_waited_for(stub: Stub, fake: FakeVideos) -> None:
    fake.script = [*[NO_VIDEO] * 8, fake_video_upstream.SUCCEEDED]
    done = await ended(stub, (await create(stub)).task_id)
    assert (done.state, len(done.results)) == (pb.VIDEO_TASK_STATE_SUCCEEDED, 1)


async def test_failures_of_polls_do_not_fail_the_task(stub: Stub, fake: FakeVideos) -> None:
    busy = UmgError(pb.ERROR_REASON_UPSTREAM_RATE_LIMITED, "too many").with_failure(Failure.OVERLOADED)
    down = UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "bad gateway").with_failure(Failure.TRANSIENT)
    lost = UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, "no such task").with_failure(Failure.CALLER)
    fake.script = [busy, down, lost, NO_VIDEO, fake_video_upstream.SUCCEEDED]
    done = await ended(stub, (await create(stub)).task_id)
    assert done.state == pb.VIDEO_TASK_STATE_SUCCEEDED


async def test_a_task_whose_queries_are_refused_fails_with_the_reason(
    stub: Stub, fake: FakeVideos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stalled_tasks, "REFUSED_SECONDS", 0.2)
    refusal = UmgError(pb.ERROR_REASON_CONTENT_BLOCKED, "a person is named").with_failure(Failure.CALLER)
    fake.script = [RUNNING, refusal]
    done = await ended(stub, (await create(stub)).task_id)
    assert (done.state, done.error.code) == (pb.VIDEO_TASK_STATE_FAILED, "content_policy_violation")
    assert done.error.message == "a person is named"


async def test_an_unknown_state_counts_as_running_for_a_time_and_then_fails_the_task(
    gateway: Running, stub: Stub, fake: FakeVideos, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.script = [QUEUED, unknown_state("Re-rendering", 40)]
    task = await create(stub)
    await until(lambda: fake.polled[f"up-{task.task_id}"] > 3)
    assert (await get(stub, task.task_id)).state == pb.VIDEO_TASK_STATE_RUNNING
    monkeypatch.setattr(stalled_tasks, "UNKNOWN_STATE_SECONDS", 0.0)
    done = await ended(stub, task.task_id)
    assert (done.state, done.error.code, done.error.status_code) == (pb.VIDEO_TASK_STATE_FAILED, "task_expired", 504)
    assert "`Re-rendering`" in done.error.message
    async with ClientSession(headers=gateway.headers) as client, client.get(gateway.url + "/metrics") as answer:
        assert 'umg_video_unknown_states_total{channel="videos"} 1.0' in await answer.text()


async def test_the_deadline_of_a_task_names_its_unknown_state(stub: Stub, fake: FakeVideos) -> None:
    fake.script, fake.deadline_seconds = [unknown_state("Re-rendering")], 0.2
    done = await ended(stub, (await create(stub)).task_id)
    assert (done.error.code, "`Re-rendering`" in done.error.message) == ("task_expired", True)


async def test_an_unknown_state_with_a_video_is_a_success_in_the_end(
    stub: Stub, fake: FakeVideos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stalled_tasks, "UNKNOWN_STATE_SECONDS", 0.2)
    fake.script = [unknown_state("Rendered", 100, [fake_video_upstream.VIDEO])]
    done = await ended(stub, (await create(stub)).task_id)
    assert (done.state, done.results[0].url) == (pb.VIDEO_TASK_STATE_SUCCEEDED, fake_video_upstream.URL)


async def test_an_unknown_state_with_progress_is_no_stall(
    stub: Stub, fake: FakeVideos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stalled_tasks, "UNKNOWN_STATE_SECONDS", 0.5)
    fake.script = [*[unknown_state("Re-rendering", percent) for percent in range(20)], fake_video_upstream.SUCCEEDED]
    done = await ended(stub, (await create(stub)).task_id)
    assert done.state == pb.VIDEO_TASK_STATE_SUCCEEDED


# --- submission


async def test_a_refused_submission_leaves_no_task(stub: Stub, fake: FakeVideos) -> None:
    refusal = UmgError(pb.ERROR_REASON_UPSTREAM_REJECTED, "the prompt is not allowed").with_failure(Failure.CALLER)
    fake.refusals = [refusal]
    assert await reason(create(stub)) == "UPSTREAM_REJECTED"
    listed = await stub.ListVideoTasks(pb.ListVideoTasksRequest(), metadata=AUTHORIZED)
    assert listed.total_count == 0


async def test_strict_mode_applies_to_the_submission(stub: Stub, fake: FakeVideos) -> None:
    await create(stub, "one", ("x-umg-strict", "true"))
    await create(stub, "two", ("x-umg-strict", "false"))
    await create(stub, "three")
    assert [each.strict for each in fake.requests] == [True, False, False]
    assert await reason(create(stub, "four", ("x-umg-strict", "maybe"))) == "INVALID_FIELD"
    assert len(fake.requests) == 3


async def test_an_unknown_outcome_is_looked_up_and_never_sent_again(stub: Stub, fake: FakeVideos) -> None:
    cut = UmgError(pb.ERROR_REASON_UPSTREAM_CUT, "the connection broke").with_failure(Failure.AMBIGUOUS)
    fake.refusals, fake.accepts_before_refusal = [cut], True
    task = await create(stub)
    assert task.state == pb.VIDEO_TASK_STATE_SUBMITTING
    done = await ended(stub, task.task_id)
    assert done.state == pb.VIDEO_TASK_STATE_SUCCEEDED
    assert fake.submitted == {task.task_id: 1}


async def test_a_submission_that_is_not_found_fails_as_unconfirmed(
    stub: Stub, fake: FakeVideos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("umg_grpc.service.video_tasks.poll_outcomes.FIND_PAUSE_SECONDS", 0.05)
    fake.refusals = [ValueError("a defect")]
    task = await create(stub)
    done = await ended(stub, task.task_id)
    assert (done.state, done.error.code) == (pb.VIDEO_TASK_STATE_FAILED, "submit_unconfirmed")
    assert fake.submitted == {task.task_id: 1}


async def test_a_caller_that_leaves_does_not_lose_its_task(stub: Stub, fake: FakeVideos) -> None:
    fake.hold = asyncio.Event()
    call = stub.CreateVideoTask(request(), metadata=AUTHORIZED)
    await until(lambda: bool(fake.submitted))
    call.cancel()
    fake.hold.set()
    (task_id,) = fake.submitted
    assert (await ended(stub, task_id)).state == pb.VIDEO_TASK_STATE_SUCCEEDED


async def test_a_refusal_may_be_followed_by_another_channel(tmp_path: Path) -> None:
    first, second = FakeVideos(), FakeVideos()
    down = UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "out of credit").with_failure(Failure.DOWN)
    first.refusals = [down] * 10
    async with running(fake_video_upstream.config(MODEL, channels=["one", "two"]), tmp_path) as made:
        made.service._channels.videos.update(one=first, two=second)
        async with grpc.aio.insecure_channel(made.grpc) as channel:
            stub: Stub = rpc.VideoServiceStub(channel)  # type: ignore[assignment]
            tasks = [await create(stub, f"cat {number}") for number in range(2)]
            for task in tasks:
                assert (await ended(stub, task.task_id)).state == pb.VIDEO_TASK_STATE_SUCCEEDED
    assert second.submitted == {task.task_id: 1 for task in tasks}


async def test_simultaneous_repetitions_are_one_task(stub: Stub, fake: FakeVideos) -> None:
    tasks = await asyncio.gather(*(create(stub, idempotency_key="one") for _ in range(5)))
    assert len({task.task_id for task in tasks}) == 1
    assert len(fake.submitted) == 1


async def test_a_repetition_by_an_sdk_is_the_same_task(stub: Stub, fake: FakeVideos) -> None:
    first = await create(stub)
    assert (await create(stub)).task_id != first.task_id
    again = await create(stub, "a cat", ("x-stainless-retry-count", "1"))
    other = await create(stub, "a dog", ("x-stainless-retry-count", "1"))
    assert again.task_id in fake.submitted
    assert len(fake.submitted) == 3
    assert other.task_id != again.task_id


# --- look-up


async def test_tasks_are_listed_in_pages(stub: Stub) -> None:
    made = [(await create(stub, f"cat {number}")).task_id for number in range(5)]
    token, seen = "", list[str]()
    while True:
        page = await stub.ListVideoTasks(pb.ListVideoTasksRequest(page_size=2, page_token=token), metadata=AUTHORIZED)
        seen += [task.task_id for task in page.tasks]
        assert page.total_count == 5
        if not (token := page.next_page_token):
            break
    assert seen == made[::-1]
    oldest = pb.ListVideoTasksRequest(order=pb.VIDEO_TASK_ORDER_OLDEST_FIRST, page_token=made[1])
    assert [task.task_id for task in (await stub.ListVideoTasks(oldest, metadata=AUTHORIZED)).tasks] == made[2:]


async def test_a_queued_task_is_cancelled_and_an_ended_one_deleted(stub: Stub, fake: FakeVideos) -> None:
    fake.script = [QUEUED]
    task = await create(stub)
    request = pb.DeleteVideoTaskRequest(task_id=task.task_id)
    cancelled = (await stub.DeleteVideoTask(request, metadata=AUTHORIZED)).task
    assert (cancelled.state, cancelled.error.code) == (pb.VIDEO_TASK_STATE_CANCELLED, "task_cancelled")
    assert (await get(stub, task.task_id)).state == pb.VIDEO_TASK_STATE_CANCELLED
    await stub.DeleteVideoTask(request, metadata=AUTHORIZED)
    assert await reason(get(stub, task.task_id)) == "OBJECT_NOT_FOUND"


async def test_a_running_task_is_not_deleted(stub: Stub, fake: FakeVideos) -> None:
    fake.script = [RUNNING]
    task = await create(stub)
    async for message in stub.WatchVideoTask(pb.WatchVideoTaskRequest(task_id=task.task_id), metadata=AUTHORIZED):
        if message.task.state == pb.VIDEO_TASK_STATE_RUNNING:
            break
    call = stub.DeleteVideoTask(pb.DeleteVideoTaskRequest(task_id=task.task_id), metadata=AUTHORIZED)
    assert await reason(call) == "WRONG_STATE"


async def test_a_remix_is_made_where_its_source_was(stub: Stub, fake: FakeVideos) -> None:
    source = await ended(stub, (await create(stub)).task_id)
    wanted = pb.RemixVideoTaskRequest(task_id=source.task_id, prompt="a red cat")
    remix = (await stub.RemixVideoTask(wanted, metadata=AUTHORIZED)).task
    assert (remix.kind, remix.remixed_from_task_id) == (pb.VIDEO_TASK_KIND_REMIX, source.task_id)
    sent = fake.requests[-1]
    assert sent.source is not None
    assert (sent.source.id, sent.source.key_id) == (f"up-{source.task_id}", "key")
    assert sent.request.parameters.prompt == "a red cat"


def of_draft(task_id: str) -> pb.CreateVideoTaskRequest:
    return pb.CreateVideoTaskRequest(model=MODEL, parameters=pb.VideoParameters(draft_task_id=task_id))


async def test_a_draft_is_made_into_a_video_where_it_was_made(stub: Stub, fake: FakeVideos) -> None:
    draft = await ended(stub, (await create(stub)).task_id)
    made = (await stub.CreateVideoTask(of_draft(draft.task_id), metadata=AUTHORIZED)).task
    assert (made.kind, made.remixed_from_task_id) == (pb.VIDEO_TASK_KIND_TEXT_TO_VIDEO, "")
    sent = fake.requests[-1]
    assert sent.source is not None
    assert (sent.source.id, sent.source.key_id) == (f"up-{draft.task_id}", "key")


async def test_a_draft_that_is_not_finished_or_not_the_callers_is_refused(stub: Stub, fake: FakeVideos) -> None:
    fake.script = [RUNNING]
    task = await create(stub)
    call = stub.CreateVideoTask(of_draft(task.task_id), metadata=AUTHORIZED)
    assert await reason(call) == "WRONG_STATE"
    call = stub.CreateVideoTask(of_draft("cgt-of-another"), metadata=AUTHORIZED)
    assert await reason(call) == "OBJECT_NOT_FOUND"


async def test_a_database_that_fails_is_reported_as_unavailable(gateway: Running, stub: Stub) -> None:
    task = await create(stub)
    async with gateway.service.store.write() as session:
        await session.execute(text("ALTER TABLE media_tasks RENAME TO moved"))
    assert await reason(get(stub, task.task_id)) == "UNAVAILABLE"
    assert await reason(create(stub)) == "UNAVAILABLE"
    async with gateway.service.store.write() as session:
        await session.execute(text("ALTER TABLE moved RENAME TO media_tasks"))
    assert (await ended(stub, task.task_id)).state == pb.VIDEO_TASK_STATE_SUCCEEDED
