"""Table of video tasks: leases of several processes, states that move forward only, retention."""

import asyncio

from tests.support.databases import Database
from umg_grpc.store import Store, open_store
from umg_grpc.store.tables import MediaTask
from umg_grpc.store.video_task_table import (
    FAILED,
    QUEUED,
    RUNNING,
    SUBMITTING,
    SUCCEEDED,
    Claim,
    Poll,
    Stall,
    VideoTasks,
)

SECOND = 10**6
NOW = 1_800_000_000 * SECOND
CHANNEL = "main"


def task(number: int, *, state: int = QUEUED, next_poll_micros: int | None = NOW, lease_owner: str = "") -> MediaTask:
    return MediaTask(
        task_id=f"task_{number}", owner="key", entry=1, kind=1, model="m", public_model="m", body_hash=str(number),
        request_id="r", face="grpc", prices=b"", micro_credits=0, state=state, channel=CHANNEL,
        upstream_task_id=f"up-{number}", upstream_model="m", upstream_key_id="k", upstream_facts="",
        lease_owner=lease_owner, next_poll_micros=next_poll_micros, poll_failures=0,
        deadline_micros=NOW + 3600 * SECOND, create_micros=NOW + number, update_micros=NOW, request=b"",
    )  # fmt: skip


async def insert(store: Store, *tasks: MediaTask) -> None:
    async with store.write() as session:
        session.add_all(tasks)


async def claim(rows: VideoTasks, now: int, limit: int = 100) -> list[Claim]:
    return await rows.claim(CHANNEL, now, now + 30 * SECOND, limit)


async def test_a_due_task_is_claimed_by_one_process(prepared_database: Database) -> None:
    store = await open_store(prepared_database.url, prepared_database.data_dir)
    await insert(store, *(task(number) for number in range(40)), task(40, next_poll_micros=NOW + SECOND))
    processes = [VideoTasks(store, f"process {number}") for number in range(4)]
    claimed = await asyncio.gather(*(claim(rows, NOW, 15) for rows in processes))
    ids = [each.task_id for claims in claimed for each in claims]
    ids += [each.task_id for each in await claim(processes[0], NOW)]
    assert sorted(ids) == sorted({f"task_{number}" for number in range(40)})
    await store.aclose()


async def test_a_task_is_taken_over_at_the_end_of_the_lease(prepared_database: Database) -> None:
    store = await open_store(prepared_database.url, prepared_database.data_dir)
    await insert(store, task(1))
    slow, other = VideoTasks(store, "slow"), VideoTasks(store, "other")
    [first] = await claim(slow, NOW)
    assert await claim(other, NOW + 29 * SECOND) == []
    [second] = await claim(other, NOW + 30 * SECOND)
    await slow.reschedule([Poll(first, NOW + 999 * SECOND)], NOW)  # too late: it has no effect
    await other.reschedule([Poll(second, NOW + 40 * SECOND, 1, 35)], NOW)
    [third] = await claim(slow, NOW + 40 * SECOND)
    assert (third.poll_failures, third.progress) == (1, 35)
    await store.aclose()


async def test_a_stall_lasts_from_poll_to_poll_and_ends_with_the_state(prepared_database: Database) -> None:
    store = await open_store(prepared_database.url, prepared_database.data_dir)
    rows, stall = VideoTasks(store, "process"), Stall("state reviewing 40", NOW)
    await insert(store, task(1))
    [polled] = await claim(rows, NOW)
    assert polled.stall is None
    await rows.reschedule([Poll(polled, NOW + SECOND, stall=stall)], NOW)
    [polled] = await claim(rows, NOW + SECOND)
    assert polled.stall == stall
    running = await rows.advance(polled.task_id, RUNNING, next_poll_micros=NOW + 2 * SECOND)
    assert running is not None
    assert (running.stall, running.stall_since_micros) == (None, None)
    await store.aclose()


async def test_the_tasks_of_a_process_that_has_ended_are_due_at_once(prepared_database: Database) -> None:
    store = await open_store(prepared_database.url, prepared_database.data_dir)
    rows = VideoTasks(store, "alive")
    await insert(store, task(1, state=SUBMITTING, next_poll_micros=NOW + 20 * SECOND, lease_owner="ended"))
    await rows.release(["ended"], NOW)
    assert [each.state for each in await claim(rows, NOW)] == [SUBMITTING]
    await store.aclose()


async def test_a_notification_during_a_poll_causes_another_poll(prepared_database: Database) -> None:
    store = await open_store(prepared_database.url, prepared_database.data_dir)
    rows = VideoTasks(store, "process")
    await insert(store, task(1))
    [polled] = await claim(rows, NOW)
    await rows.make_due(polled.task_id, NOW + SECOND)
    await rows.reschedule([Poll(polled, NOW + 10 * SECOND)], NOW)
    assert len(await claim(rows, NOW + SECOND)) == 1
    await store.aclose()


async def test_a_state_moves_forward_only(prepared_database: Database) -> None:
    store = await open_store(prepared_database.url, prepared_database.data_dir)
    rows = VideoTasks(store, "process")
    await insert(store, task(1))
    assert await rows.advance("task_1", RUNNING) is not None
    assert await rows.advance("task_1", QUEUED) is None
    assert await rows.advance("task_1", RUNNING) is None
    assert await rows.advance("task_1", SUCCEEDED, next_poll_micros=None) is not None
    assert await rows.advance("task_1", FAILED) is None
    found = await rows.get("task_1")
    assert found is not None
    assert (found.state, found.next_poll_micros) == (SUCCEEDED, None)
    assert await rows.advance("task_2", FAILED) is None
    await store.aclose()


async def test_ended_tasks_are_deleted_by_age_and_number(prepared_database: Database) -> None:
    store = await open_store(prepared_database.url, prepared_database.data_dir)
    rows = VideoTasks(store, "process")
    await insert(store, *(task(number) for number in range(6)))
    for number in range(5):
        expire = NOW if number == 4 else NOW + 9 * SECOND
        await rows.advance(f"task_{number}", FAILED, next_poll_micros=None, expire_micros=expire)
    await rows.sweep(NOW, max_tasks=2)
    left = {number for number in range(6) if await rows.get(f"task_{number}") is not None}
    assert left == {3, 5}  # 4 has expired, 0 to 2 are beyond the number, and 5 has not ended
    await store.aclose()
