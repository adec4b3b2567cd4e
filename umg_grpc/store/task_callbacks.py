"""Outbox of the notifications of callers: written with the change of state, deleted after the delivery."""

from typing import NamedTuple

from sqlalchemy import Update, and_, delete, exists, func, select, update
from sqlalchemy.orm import aliased

from umg_grpc.store.database import Store
from umg_grpc.store.tables import MediaTask, TaskCallback


class Outgoing(NamedTuple):
    """Notification that this process delivers now."""

    callback_id: str
    task_id: str
    owner: str
    url: str
    body: bytes
    attempts: int
    """Number of attempts before this one."""
    create_micros: int


class Backlog(NamedTuple):
    """Numbers of notifications in the outbox."""

    waiting: int
    given_up: int


class TaskCallbacks:
    """Table of the outbox. Every method raises SQLAlchemyError if the database fails."""

    def __init__(self, store: Store, process: str) -> None:
        """Open the outbox for a process with a unique name."""
        self._store = store
        self._process = process

    async def backlog(self) -> Backlog:
        """Return the numbers of the notifications that wait and that were given up."""
        table = TaskCallback
        query = select(func.count(), func.count(table.next_attempt_micros))
        async with self._store.read() as session:
            total, waiting = (await session.execute(query)).one()
            return Backlog(waiting, total - waiting)

    async def claim(self, now_micros: int, lease_end_micros: int, limit: int) -> list[Outgoing]:
        """Take up to `limit` due notifications until the end of the lease, of each task only the oldest: a caller gets
        them in the order of the changes.
        """
        table, earlier = TaskCallback, aliased(TaskCallback)
        is_later = exists().where(
            and_(
                earlier.task_id == table.task_id,
                earlier.next_attempt_micros.is_not(None),
                earlier.create_micros < table.create_micros,
            )
        )
        due = (
            select(table.callback_id)
            .where(table.next_attempt_micros <= now_micros, ~is_later)
            .order_by(table.next_attempt_micros)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        taken = (
            update(table)
            .where(table.callback_id.in_(due))
            .values(lease_owner=self._process, next_attempt_micros=lease_end_micros)
            .returning(
                *(table.callback_id, table.task_id, table.owner, table.url, table.body),
                *(table.attempts, table.create_micros),
            )
            .execution_options(synchronize_session=False)
        )
        async with self._store.write() as session:
            return [Outgoing._make(row) for row in (await session.execute(taken)).all()]

    async def delivered(self, callback_id: str) -> None:
        """Delete a notification."""
        async with self._store.write() as session:
            await session.execute(delete(TaskCallback).where(TaskCallback.callback_id == callback_id))

    async def retry(self, sent: Outgoing, next_micros: int) -> None:
        """Plan the next attempt of a notification that was not delivered."""
        async with self._store.write() as session:
            await session.execute(self._attempted(sent, next_micros))

    async def give_up(self, sent: Outgoing, reason: str) -> None:
        """Keep a notification without further attempts, and record the reason at its task."""
        task = update(MediaTask).where(MediaTask.task_id == sent.task_id).values(callback_error=reason)
        async with self._store.write() as session:
            await session.execute(self._attempted(sent, None))
            await session.execute(task)

    def _attempted(self, sent: Outgoing, next_micros: int | None) -> Update:
        """Return the statement that counts an attempt and plans the next one, or none."""
        table = TaskCallback
        own = (table.callback_id == sent.callback_id, table.lease_owner == self._process)
        return (
            update(table)
            .where(*own)
            .values(next_attempt_micros=next_micros, attempts=sent.attempts + 1, lease_owner="")
        )
