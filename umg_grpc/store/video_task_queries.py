"""Queries of the video tasks of all keys, each with its notifications, for operators and the holders of keys."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import defer

from umg_grpc.store.callback_outbox import is_in_state
from umg_grpc.store.database import Store, repeated
from umg_grpc.store.database_time import Clock
from umg_grpc.store.key_selection import EVERY_KEY, KeySelection
from umg_grpc.store.table_definitions import ApiKey, MediaTask, TaskCallback
from umg_grpc.store.video_task_table import FIRST_TERMINAL
from umg_grpc.v1 import pb


@dataclass(frozen=True, kw_only=True)
class TaskSelection:
    """Selection and order of tasks; all criteria that are set must match."""

    keys: KeySelection = EVERY_KEY
    key_ids: Collection[str] = ()
    states: Collection[int] = ()
    models: Collection[str] = ()
    channels: Collection[str] = ()
    stuck_minutes: int | None = None
    """Only tasks that have not ended, and have not changed for this number of minutes."""
    callback_states: "Collection[pb.TaskCallbackState.ValueType]" = ()
    """Only tasks with a notification in one of these states."""
    oldest_first: bool = False
    after: tuple[int, str] | None = None
    """Creation and id of the last task of the page before; None for the first page."""


class ReportedTask(NamedTuple):
    """Task with the facts that are in other tables. The large columns of its row are not loaded."""

    row: MediaTask
    key_name: str
    """Name of the key that submitted the task; "" for a caller without a key in the table."""
    project_id: str
    callbacks: Sequence[TaskCallback]
    """Notifications, oldest first, without their bodies."""


class VideoTaskQueries:
    """Reader of tasks and notifications. Its methods raise SQLAlchemyError if the database fails."""

    def __init__(self, store: Store) -> None:
        self._store, self._clock = store, store.clock

    @repeated
    async def page(self, selection: TaskSelection, size: int) -> list[ReportedTask]:
        """Return up to `size` selected tasks."""
        table, is_oldest_first = MediaTask, selection.oldest_first
        query = _tasks().where(*_conditions(selection, self._clock)).limit(size)
        columns = (table.create_micros, table.task_id)
        query = query.order_by(*(column if is_oldest_first else column.desc() for column in columns))
        if selection.after is not None:
            position = tuple_(*columns)
            query = query.where(position > selection.after if is_oldest_first else position < selection.after)
        async with self._store.read() as session:
            return await _reported(session, query)

    @repeated
    async def get(self, task_id: str, keys: KeySelection = EVERY_KEY) -> ReportedTask | None:
        """Return a task of one of the keys; None if there is none."""
        query = _tasks().where(MediaTask.task_id == task_id, *_conditions(TaskSelection(keys=keys), self._clock))
        async with self._store.read() as session:
            found = await _reported(session, query)
        return found[0] if found else None


def _tasks() -> Select[MediaTask, str, str | None]:
    large = (MediaTask.request, MediaTask.prices, MediaTask.results)
    query = select(MediaTask, ApiKey.name, ApiKey.project_id).options(*(defer(each, raiseload=True) for each in large))
    return query.join(ApiKey, ApiKey.key_id == MediaTask.owner, isouter=True)


def _conditions(selection: TaskSelection, clock: Clock) -> list[ColumnElement[bool]]:
    table, found = MediaTask, list[ColumnElement[bool]]()
    if not selection.keys.is_everything:
        found.append(selection.keys.selects(table.__table__.c.owner))
    for column, values in (
        (table.owner, selection.key_ids),
        (table.state, selection.states),
        (table.model, selection.models),
        (table.channel, selection.channels),
    ):
        if values:
            found.append(column.in_(values))
    if selection.stuck_minutes is not None:
        found += (table.state < FIRST_TERMINAL, table.update_micros <= clock.sql_micros(-60 * selection.stuck_minutes))
    if selection.callback_states:
        is_meant = or_(*map(is_in_state, selection.callback_states))
        found.append(table.task_id.in_(select(TaskCallback.task_id).where(is_meant)))
    return found


async def _reported(session: AsyncSession, query: Select[MediaTask, str, str | None]) -> list[ReportedTask]:
    tasks = (await session.execute(query)).all()
    callbacks = defaultdict[str, list[TaskCallback]](list)
    for each in await session.scalars(callbacks_of([task.task_id for task, _, _ in tasks])):
        callbacks[each.task_id].append(each)
    return [ReportedTask(task, name or "", project or "", callbacks[task.task_id]) for task, name, project in tasks]


def callbacks_of(task_ids: Collection[str]) -> Select[TaskCallback]:
    """Return the query of the notifications of tasks, oldest first, without their bodies."""
    table = TaskCallback
    query = select(table).where(table.task_id.in_(task_ids)).order_by(table.create_micros, table.callback_id)
    return query.options(defer(table.body, raiseload=True))
