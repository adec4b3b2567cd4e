"""Outbox of notifications about video tasks: written with the change of state, deleted after the delivery."""

from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import urlsplit

from sqlalchemy import ColumnElement, Update, and_, delete, exists, func, or_, select, update
from sqlalchemy.orm import aliased

from umg_grpc.store.database import Store, repeated
from umg_grpc.store.database_time import Clock
from umg_grpc.store.table_definitions import MediaTask, TaskCallback

LONGEST_PAUSE_SECONDS = 43_200
"""Seconds longer than any pause between attempts: a later time was written while the database's clock was wrong."""


class OutgoingCallback(NamedTuple):
    """Notification to a caller about a video task, which this process has leased to deliver it."""

    callback_id: str
    task_id: str
    owner: str
    url: str
    body: bytes
    attempts: int
    """Number of earlier attempts to deliver it."""


class Excluded(NamedTuple):
    """Owners, and receivers (`receiver_of`), whose notifications are not to be sent now."""

    owners: Collection[str] = ()
    receivers: Collection[str] = ()


NONE_EXCLUDED = Excluded()


class Backlog(NamedTuple):
    """Numbers of notifications in the outbox: `waiting` for an attempt, and `given_up` after too many."""

    waiting: int
    given_up: int


def receiver_of(url: str) -> str:
    """Return the scheme, host and port of the address of a notification, which identify its receiver."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _is_at(receiver: str) -> ColumnElement[bool]:
    url = TaskCallback.url
    return or_(url == receiver, *(url.startswith(f"{receiver}{mark}", autoescape=True) for mark in "/?#"))


class TaskCallbacks:
    """Outbox (a table) of undelivered notifications to callers. Its methods raise SQLAlchemyError."""

    def __init__(self, store: Store, process: str, clock: Clock | None = None) -> None:
        """Open the outbox for a process; `process` is its unique name. `clock`: None for that of the database."""
        self._clock = clock or store.clock
        self._store = store
        self._process = process

    @repeated
    async def backlog(self) -> Backlog:
        """Return the numbers of notifications that wait for an attempt, and that were given up."""
        table = TaskCallback
        query = select(func.count(), func.count(table.next_attempt_micros))
        async with self._store.read() as session:
            total, waiting = (await session.execute(query)).one()
            return Backlog(waiting, total - waiting)

    @repeated
    async def claim(
        self, lease_seconds: float, limit: int, share: int, without: Excluded = NONE_EXCLUDED
    ) -> list[OutgoingCallback]:
        """Lease up to `limit` due notifications to this process, at most `share` for each owner, except those in
        `without`. Only the oldest notification of each task is leased, so that callers receive the changes in their
        order.
        """
        table, earlier = TaskCallback, aliased(TaskCallback)
        is_later = exists().where(
            and_(
                earlier.task_id == table.task_id,
                earlier.next_attempt_micros.is_not(None),
                earlier.create_micros < table.create_micros,
            )
        )
        is_due = and_(table.next_attempt_micros <= self._clock.sql_micros(), ~is_later)
        place = func.row_number().over(partition_by=table.owner, order_by=table.next_attempt_micros)
        places = select(table.callback_id, place.label("place")).where(
            is_due, table.owner.not_in(without.owners), *(~_is_at(receiver) for receiver in without.receivers)
        )
        fair = places.subquery()
        chosen = select(fair.c.callback_id).where(fair.c.place <= share).order_by(fair.c.place).limit(limit)
        # Window functions and locks exclude each other, so that the rows are locked, and checked again, by their ids.
        due = select(table.callback_id).where(table.callback_id.in_(chosen), is_due).with_for_update(skip_locked=True)
        taken = (
            update(table)
            .where(table.callback_id.in_(due))
            .values(lease_owner=self._process, next_attempt_micros=self._clock.sql_micros(lease_seconds))
            .returning(table.callback_id, table.task_id, table.owner, table.url, table.body, table.attempts)
            .execution_options(synchronize_session=False)
        )
        async with self._store.write() as session:
            return [OutgoingCallback._make(row) for row in (await session.execute(taken)).all()]

    async def reset_times(self) -> None:
        """Make those notifications due now whose next attempt is later than the longest pause."""
        time = TaskCallback.next_attempt_micros
        reset = update(TaskCallback).where(time > self._clock.sql_micros(LONGEST_PAUSE_SECONDS))
        async with self._store.write() as session:
            await session.execute(reset.values(next_attempt_micros=self._clock.sql_micros(), lease_owner=""))

    @repeated
    async def delivered(self, callback_id: str) -> None:
        """Delete a notification after its receiver has accepted it."""
        async with self._store.write() as session:
            await session.execute(delete(TaskCallback).where(TaskCallback.callback_id == callback_id))

    @repeated
    async def retry(self, sent: OutgoingCallback, pause_seconds: float) -> None:
        """Count the failed attempt for a notification, and schedule the next one, after `pause_seconds`."""
        async with self._store.write() as session:
            await session.execute(self._attempted(sent, self._clock.sql_micros(pause_seconds)))

    @repeated
    async def give_up(self, sent: OutgoingCallback, reason: str) -> None:
        """Mark a notification as given up, so that it is not sent again; store the reason in its task's row."""
        task = update(MediaTask).where(MediaTask.task_id == sent.task_id).values(callback_error=reason)
        async with self._store.write() as session:
            await session.execute(self._attempted(sent, None))
            await session.execute(task)

    def _attempted(self, sent: OutgoingCallback, next_micros: ColumnElement[int] | None) -> Update:
        """Return the UPDATE statement that counts an attempt and ends the lease of the notification."""
        table = TaskCallback
        own = (table.callback_id == sent.callback_id, table.lease_owner == self._process)
        return (
            update(table)
            .where(*own)
            .values(next_attempt_micros=next_micros, attempts=sent.attempts + 1, lease_owner="")
        )
