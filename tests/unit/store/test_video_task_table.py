"""Table of video tasks: leases of several processes, states that move forward only, retention."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.store_fixtures import Clock, WrongClock
from umg_grpc.store import Store
from umg_grpc.store.callback_outbox import TaskCallbacks
from umg_grpc.store.database_time import GivenClock
from umg_grpc.store.table_definitions import MediaTask, TaskCallback
from umg_grpc.store.usage_record_table import UsageRecords
from umg_grpc.store.video_task_polls import Claim, OpenTasks, Poll, Stall, VideoTaskPolls
from umg_grpc.store.video_task_table import (
    FAILED_STATE,
    QUEUED_STATE,
    RUNNING_STATE,
    SUBMITTING_STATE,
    SUCCEEDED_STATE,
    VideoTasks,
)
from umg_grpc.v1 import pb

SECOND = 10**6
NOW = 1_800_000_000 * SECOND
START = datetime.fromtimestamp(NOW // SECOND, UTC)
TIME = Clock(START)
CHANNEL = "main"


@pytest.fixture
def store(prepared_store: Store) -> Store:
    return prepared_store


def task(
    number: int, *, state: int = QUEUED_STATE, next_poll_micros: int | None = NOW, lease_owner: str = ""
) -> MediaTask:
    return MediaTask(
        task_id=f"task_{number}", owner="key", entry=1, kind=1, model="m", public_model="m", body_hash=str(number),
        request_id="r", face="grpc", agent="", prices=b"", micro_credits=0, state=state, channel=CHANNEL,
        upstream_task_id=f"up-{number}", upstream_model="m", upstream_key_id="k", upstream_facts="",
        lease_owner=lease_owner, next_poll_micros=next_poll_micros, poll_failures=0,
        deadline_micros=NOW + 3600 * SECOND, create_micros=NOW + number, update_micros=NOW, request=b"",
    )  # fmt: skip


async def insert(store: Store, *tasks: MediaTask) -> None:
    async with store.write() as session:
        session.add_all(tasks)


def opened(store: Store, process: str) -> VideoTaskPolls:
    """Return the polls of a process, whose clock is `TIME`."""
    return VideoTaskPolls(store, process, clock=GivenClock(TIME))


def table_of(store: Store, process: str) -> VideoTasks:
    """Return the table of a process, whose clock is `TIME`."""
    return VideoTasks(store, process, clock=GivenClock(TIME))


def set_time(micros: int) -> None:
    TIME.time = START + timedelta(microseconds=micros - NOW)


async def claim(polls: VideoTaskPolls, now: int, limit: int = 100) -> list[Claim]:
    """Lease the tasks that are due at a time, for 30 seconds."""
    set_time(now)
    return await polls.claim(CHANNEL, 30, limit)


async def test_a_due_task_is_claimed_by_one_process(store: Store) -> None:
    await insert(store, *(task(number) for number in range(40)), task(40, next_poll_micros=NOW + SECOND))
    processes = [opened(store, f"process {number}") for number in range(4)]
    claimed = await asyncio.gather(*(claim(polls, NOW, 15) for polls in processes))
    ids = [each.task_id for claims in claimed for each in claims]
    ids += [each.task_id for each in await claim(processes[0], NOW)]
    assert sorted(ids) == sorted({f"task_{number}" for number in range(40)})


async def test_a_task_is_taken_over_at_the_end_of_the_lease(store: Store) -> None:
    await insert(store, task(1))
    slow, other = opened(store, "slow"), opened(store, "other")
    [first] = await claim(slow, NOW)
    assert await claim(other, NOW + 29 * SECOND) == []
    [second] = await claim(other, NOW + 30 * SECOND)
    await slow.reschedule([Poll(first, 969 * SECOND)], NOW)  # too late: it has no effect
    await other.reschedule([Poll(second, 10 * SECOND, 1, 35)], NOW)
    [third] = await claim(slow, NOW + 40 * SECOND)
    assert (third.poll_failures, third.progress) == (1, 35)


async def test_a_stall_lasts_from_poll_to_poll_and_ends_with_the_state(store: Store) -> None:
    polls, stall = opened(store, "process"), Stall("state reviewing 40", NOW)
    await insert(store, task(1))
    [polled] = await claim(polls, NOW)
    assert polled.stall is None
    await polls.reschedule([Poll(polled, SECOND, stall=stall)], NOW)
    [polled] = await claim(polls, NOW + SECOND)
    assert polled.stall == stall
    running = await table_of(store, "process").advance(polled.task_id, RUNNING_STATE, next_poll_micros=NOW + 2 * SECOND)
    assert running is not None
    assert (running.stall, running.stall_since_micros) == (None, None)


async def test_the_tasks_of_a_process_that_has_ended_are_due_at_once(store: Store) -> None:
    polls = opened(store, "alive")
    await insert(store, task(1, state=SUBMITTING_STATE, next_poll_micros=NOW + 20 * SECOND, lease_owner="ended"))
    set_time(NOW)
    await polls.release(["ended"])
    assert [each.state for each in await claim(polls, NOW)] == [SUBMITTING_STATE]


async def test_a_task_waits_for_the_report_of_its_submitter_also_while_others_look_for_it(
    store: Store,
) -> None:
    polls = opened(store, "other")
    set_time(NOW)
    new = task(1, state=SUBMITTING_STATE, lease_owner="ended", next_poll_micros=None)
    assert await table_of(store, "ended").insert(new, [], 20) is None
    [looked_up] = await claim(polls, NOW + 20 * SECOND)
    assert looked_up.submitter == "ended"
    await polls.reschedule([Poll(looked_up, 300 * SECOND, 1)], NOW)
    await polls.release(["ended"])
    assert [each.submitter for each in await claim(polls, NOW + 20 * SECOND)] == [None]


async def test_a_refused_task_is_withdrawn_after_the_end_of_its_lease(store: Store) -> None:
    rows, other = table_of(store, "submitting"), table_of(store, "other")
    set_time(NOW)
    new = task(1, state=SUBMITTING_STATE, lease_owner="submitting", next_poll_micros=None)
    assert await rows.insert(new, [], 20) is None
    assert len(await claim(opened(store, "other"), NOW + 20 * SECOND)) == 1
    assert not await other.withdraw("task_1"), "the task of another process"
    assert await rows.withdraw("task_1")
    assert await rows.get("task_1") is None


async def test_a_notification_during_a_poll_causes_another_poll(store: Store) -> None:
    polls = opened(store, "process")
    await insert(store, task(1))
    [polled] = await claim(polls, NOW)
    set_time(NOW + SECOND)
    await polls.make_due(polled.task_id)
    await polls.reschedule([Poll(polled, 9 * SECOND)], NOW)
    assert len(await claim(polls, NOW + SECOND)) == 1


async def test_a_state_moves_forward_only(store: Store) -> None:
    rows = table_of(store, "process")
    await insert(store, task(1))
    assert await rows.advance("task_1", RUNNING_STATE) is not None
    assert await rows.advance("task_1", QUEUED_STATE) is None
    assert await rows.advance("task_1", RUNNING_STATE) is None
    assert await rows.advance("task_1", SUCCEEDED_STATE, next_poll_micros=None) is not None
    assert await rows.advance("task_1", FAILED_STATE) is None
    found = await rows.get("task_1")
    assert found is not None
    assert (found.state, found.next_poll_micros) == (SUCCEEDED_STATE, None)
    assert await rows.advance("task_2", FAILED_STATE) is None


async def test_a_task_of_an_earlier_version_has_a_record_without_details(store: Store) -> None:
    await insert(store, task(1))
    error = pb.VideoTaskError(code="task_failed", message="no video").SerializeToString()
    await table_of(store, "process").advance("task_1", FAILED_STATE, next_poll_micros=None, error=error)
    [record] = await UsageRecords(store).find("r")
    assert record.details is not None
    assert (record.attempts, record.details.attempts) == (1, [])
    assert record.details.message == "task_failed: no video"


async def test_ended_tasks_are_deleted_by_age_and_number(store: Store) -> None:
    rows = table_of(store, "process")
    await insert(store, *(task(number) for number in range(6)))
    for number in range(5):
        expire = NOW if number == 4 else NOW + 9 * SECOND
        await rows.advance(f"task_{number}", FAILED_STATE, next_poll_micros=None, expire_micros=expire)
    set_time(NOW)
    await VideoTasks(store, "process", clock=WrongClock(TIME)).sweep(max_tasks=2)
    assert await rows.get("task_4") is not None
    await rows.sweep(max_tasks=2)
    left = {number for number in range(6) if await rows.get(f"task_{number}") is not None}
    assert left == {3, 5}  # 4 has expired, 0 to 2 are beyond the number, and 5 has not ended


async def test_a_submission_has_a_lease_by_the_clock_of_the_database(store: Store) -> None:
    rows, polls = table_of(store, "submitting"), opened(store, "submitting")
    set_time(NOW)
    new = task(1, state=SUBMITTING_STATE, lease_owner="submitting", next_poll_micros=None)
    assert await rows.insert(new, [], 20) is None
    assert new.next_poll_micros == NOW + 20 * SECOND
    assert await claim(polls, NOW + 19 * SECOND) == []
    await rows.renew("task_1", 20)
    assert await claim(polls, NOW + 38 * SECOND) == []
    await rows.report_unknown("task_1")
    assert [each.task_id for each in await claim(polls, NOW + 38 * SECOND)] == ["task_1"]


async def test_the_last_poll_of_a_task_is_followed_by_no_other(store: Store) -> None:
    polls = opened(store, "process")
    await insert(store, task(1))
    [polled] = await claim(polls, NOW)
    assert {channel: tasks.number for channel, tasks in (await polls.due()).items()} == {CHANNEL: 1}
    await polls.reschedule([Poll(polled, None)], NOW)
    assert await polls.due() == {}


async def test_the_lateness_of_a_channel_is_that_of_its_first_task(store: Store) -> None:
    polls = opened(store, "process")
    await insert(store, task(1, next_poll_micros=NOW + 3 * SECOND), task(2, next_poll_micros=NOW + 9 * SECOND))
    set_time(NOW)
    assert await polls.due() == {CHANNEL: OpenTasks(-3 * SECOND, 9 * SECOND, 2)}
    set_time(NOW + 5 * SECOND)
    assert await polls.due() == {CHANNEL: OpenTasks(2 * SECOND, 4 * SECOND, 2)}


async def test_a_time_that_a_wrong_clock_wrote_is_reset(store: Store) -> None:
    polls, callbacks = opened(store, "process"), TaskCallbacks(store, "process", clock=GivenClock(TIME))
    later = NOW + 48 * 3600 * SECOND
    await insert(store, task(1, next_poll_micros=later), task(2, next_poll_micros=NOW + SECOND))
    async with store.write() as session:
        session.add(
            TaskCallback(
                callback_id="msg",
                task_id="task_1",
                owner="key",
                url="https://receiver.example",
                attempts=1,
                lease_owner="",
                next_attempt_micros=later,
                create_micros=NOW,
                body=b"{}",
            )
        )
    set_time(NOW)
    assert await polls.due() == {CHANNEL: OpenTasks(-SECOND, later - NOW, 2)}
    await polls.reset_times(CHANNEL)
    await callbacks.reset_times()
    assert [each.task_id for each in await claim(polls, NOW)] == ["task_1"]
    assert [each.callback_id for each in await callbacks.claim(30, 10, 10)] == ["msg"]
