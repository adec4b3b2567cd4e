"""Queries of the tasks of all keys, on each kind of database: filters, keys, notifications."""

from dataclasses import dataclass, field

import pytest

from tests.support.stored_tasks import RUNNING, SECOND, media_task, task_callback
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.store import Store
from umg_grpc.store.key_selection import KeyScope, KeySelection
from umg_grpc.store.video_task_queries import TaskSelection, VideoTaskQueries
from umg_grpc.v1 import pb

OPEN = {"state": RUNNING, "complete_micros": None, "expire_micros": None}


@dataclass(frozen=True)
class Case:
    id: str
    selection: TaskSelection
    expected: list[str] = field(default_factory=list)


CASES = [
    Case("everything, newest first", TaskSelection(), ["new", "stuck", "dead", "waiting", "done"]),
    Case("states", TaskSelection(states=[RUNNING]), ["new", "stuck"]),
    Case("key", TaskSelection(key_ids=["other"]), ["dead"]),
    Case("model", TaskSelection(models=["clips-2"]), ["waiting"]),
    Case("channel", TaskSelection(channels=["spare"]), ["done"]),
    Case("stuck", TaskSelection(stuck_minutes=60), ["stuck"]),
    Case("given up", TaskSelection(callback_states=[pb.TASK_CALLBACK_STATE_GIVEN_UP]), ["dead"]),
    Case(
        "not delivered",
        TaskSelection(callback_states=[pb.TASK_CALLBACK_STATE_GIVEN_UP, pb.TASK_CALLBACK_STATE_WAITING]),
        ["dead", "waiting"],
    ),
    Case("delivered", TaskSelection(callback_states=[pb.TASK_CALLBACK_STATE_DELIVERED]), ["dead", "done"]),
    Case("two criteria", TaskSelection(states=[RUNNING], channels=["spare"])),
    Case("key without a row", TaskSelection(keys=KeySelection(scope=KeyScope(key_id="other"))), ["dead"]),
    Case("project without keys", TaskSelection(keys=KeySelection(projects=["prj_none"]))),
    Case("oldest first", TaskSelection(oldest_first=True, states=[RUNNING]), ["stuck", "new"]),
]


async def fill(store: Store) -> str:
    """Insert tasks, and return the id of the key of most of them."""
    key, _ = await ApiKeys(store).create("app")
    now = int(store.clock.now()) * SECOND
    done = media_task("done", key.key_id, SECOND, channel="spare")
    waiting = media_task("waiting", key.key_id, 2 * SECOND, model="clips-2")
    dead = media_task("dead", "other", 3 * SECOND)
    async with store.write() as session:
        session.add_all([done, waiting, dead])
        session.add(media_task("stuck", key.key_id, 4 * SECOND, **OPEN))
        session.add(media_task("new", key.key_id, now, **{**OPEN, "update_micros": now}))
        session.add(task_callback("msg_1", done, deliver_micros=5, status=200, error=None))
        session.add(task_callback("msg_2", waiting, next_attempt_micros=now))
        session.add_all([task_callback("msg_3", dead, create_micros=9), task_callback("msg_4", dead, deliver_micros=5)])
    return key.key_id


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_tasks_are_selected(prepared_store: Store, case: Case) -> None:
    await fill(prepared_store)
    found = await VideoTaskQueries(prepared_store).page(case.selection, 10)
    assert [each.row.task_id for each in found] == case.expected


async def test_a_task_has_the_name_of_its_key_and_its_notifications_in_their_order(prepared_store: Store) -> None:
    key_id = await fill(prepared_store)
    queries = VideoTaskQueries(prepared_store)
    done, dead = await queries.get("done"), await queries.get("dead")
    assert done is not None
    assert dead is not None
    assert (done.key_name, dead.key_name) == ("app", "")
    assert [each.callback_id for each in dead.callbacks] == ["msg_3", "msg_4"]
    assert await queries.get("dead", KeySelection(scope=KeyScope(key_id=key_id))) is None
    assert await queries.get("absent") is None
