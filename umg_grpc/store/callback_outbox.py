"""Outbox of notifications about video tasks: written with the change of state, and stored until the task is deleted."""

from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import urlsplit

from sqlalchemy import ColumnElement, Update, and_, exists, func, or_, select, update
from sqlalchemy.orm import aliased

from umg_grpc.store.database import Store, repeated
from umg_grpc.store.database_time import Clock
from umg_grpc.store.table_definitions import MediaTask, TaskCallback
from umg_grpc.v1 import pb

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


def delivery_state(callback: TaskCallback) -> "pb.TaskCallbackState.ValueType":
    """Return the state of the delivery of a notification."""
    if callback.next_attempt_micros is not None:
        return pb.TASK_CALLBACK_STATE_WAITING
    return pb.TASK_CALLBACK_STATE_GIVEN_UP if callback.deliver_micros is None else pb.TASK_CALLBACK_STATE_DELIVERED


def is_in_state(state: "pb.TaskCallbackState.ValueType") -> ColumnElement[bool]:
    """Return the condition of the notifications whose delivery is in a state."""
    table = TaskCallback
    if state == pb.TASK_CALLBACK_STATE_WAITING:
        return table.next_attempt_micros.is_not(None)
    is_open = table.deliver_micros.is_(None)
    return and_(table.next_attempt_micros.is_(None), is_open if state == pb.TASK_CALLBACK_STATE_GIVEN_UP else ~is_open)


def _is_at(receiver: str) -> ColumnElement[bool]:
    url = TaskCallback.url
    return or_(url == receiver, *(url.startswith(f"{receiver}{mark}", autoescape=True) for mark in "/?#"))


class AttemptResult(NamedTuple):
    """Result of an attempt: HTTP status, None without a response, and why it failed, "" if the receiver accepted."""

    status: int | None
    problem: str = ""


class TaskCallbacks:
    """Outbox (a table) of notifications to callers. Its methods raise SQLAlchemyError."""

    def __init__(self, store: Store, process: str, clock: Clock | None = None) -> None:
        """Open the outbox for a process; `process` is its unique name. `clock`: None for that of the database."""
        self._clock = clock or store.clock
        self._store = store
        self._process = process

    @repeated
    async def backlog(self) -> Backlog:
        """Return the numbers of notifications that wait for an attempt, and that were given up."""
        table = TaskCallback
        query = select(func.count(), func.count(table.next_attempt_micros)).where(table.deliver_micros.is_(None))
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
    async def delivered(self, sent: OutgoingCallback, result: AttemptResult) -> None:
        """Record that the receiver has accepted a notification."""
        values = self._columns(sent, result, None)
        # even if another process has the lease now
        delivered = update(TaskCallback).where(TaskCallback.callback_id == sent.callback_id)
        async with self._store.write() as session:
            await session.execute(delivered.values(deliver_micros=self._clock.sql_micros(), **values))

    @repeated
    async def retry(self, sent: OutgoingCallback, result: AttemptResult, pause_seconds: float) -> None:
        """Count the failed attempt for a notification, and schedule the next one, after `pause_seconds`."""
        async with self._store.write() as session:
            await session.execute(self._attempted(sent, result, self._clock.sql_micros(pause_seconds)))

    @repeated
    async def give_up(self, sent: OutgoingCallback, result: AttemptResult) -> None:
        """Mark a notification as given up, so that it is not sent again; store the reason in its task's row."""
        task = update(MediaTask).where(MediaTask.task_id == sent.task_id).values(callback_error=result.problem)
        async with self._store.write() as session:
            await session.execute(self._attempted(sent, result, None))
            await session.execute(task)

    def _attempted(
        self, sent: OutgoingCallback, result: AttemptResult, next_micros: ColumnElement[int] | None
    ) -> Update:
        """Return the UPDATE statement that records an attempt, and ends the lease of this process."""
        table = TaskCallback
        own = (table.callback_id == sent.callback_id, table.lease_owner == self._process)
        return update(table).where(*own).values(**self._columns(sent, result, next_micros))

    def _columns(
        self, sent: OutgoingCallback, result: AttemptResult, next_micros: ColumnElement[int] | None
    ) -> dict[str, object]:
        """Return the columns of a notification after an attempt."""
        return {
            "next_attempt_micros": next_micros,
            "attempts": sent.attempts + 1,
            "lease_owner": "",
            "attempt_micros": self._clock.sql_micros(),
            "status": result.status,
            "error": result.problem or None,
        }
