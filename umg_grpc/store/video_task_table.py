"""Table of video tasks. Each change of a task is one transaction, which first checks the task's state."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, delete, func, insert, select, tuple_, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.store.budget_accounts import TASK_PREFIX, LeaseId, end_hold, hold, lock_accounts
from umg_grpc.store.database import Store, repeated
from umg_grpc.store.database_outages import UnconfirmedCommitError
from umg_grpc.store.database_time import Clock
from umg_grpc.store.table_definitions import MediaTask, TaskCallback
from umg_grpc.store.usage_record_table import CallDetails, UsageRecord, decode_details, insert_record, storable
from umg_grpc.store.video_task_results import TaskResult, results_text
from umg_grpc.v1 import pb

SUBMITTING_STATE, QUEUED_STATE, RUNNING_STATE = (
    pb.VIDEO_TASK_STATE_SUBMITTING,
    pb.VIDEO_TASK_STATE_QUEUED,
    pb.VIDEO_TASK_STATE_RUNNING,
)
SUCCEEDED_STATE, FAILED_STATE, CANCELLED_STATE = (
    pb.VIDEO_TASK_STATE_SUCCEEDED,
    pb.VIDEO_TASK_STATE_FAILED,
    pb.VIDEO_TASK_STATE_CANCELLED,
)
TERMINAL_STATES = frozenset({SUCCEEDED_STATE, FAILED_STATE, CANCELLED_STATE})
FIRST_TERMINAL = SUCCEEDED_STATE
"""State with the smallest number of those in which a task has ended; later states have greater numbers."""
ROW_BYTES = 4096
"""Approximate size of a task in the database."""
SWEEP_ROWS = 500


class Hold(NamedTuple):
    """Amount to reserve for a video task in micro-credits, and the process's budget lease from which it is taken."""

    lease: LeaseId
    micro_credits: int


class Pin(NamedTuple):
    """Channel to which a process is about to submit a task, with the values that the task's row records."""

    channel: str
    model: str
    """Model id of the provider."""
    prices: bytes
    """Prices of the channel by which the task is charged."""
    deadline_micros: int
    """Time at which the task fails if it has not ended."""
    lease_seconds: float


@dataclass(frozen=True, kw_only=True)
class TaskFilter:
    """Selection and order of tasks in a list. A criterion with its default (None, 0 or empty) selects all tasks."""

    owner: str | None = None
    entry: int = 0
    states: Collection[int] = ()
    model: str | None = None
    task_ids: Collection[str] = field(default_factory=tuple)
    oldest_first: bool = False


_COLUMNS = tuple(column.name for column in MediaTask.__table__.columns)


class VideoTasks:
    """Table of video tasks in the database. Every method raises SQLAlchemyError if the database fails."""

    def __init__(
        self,
        store: Store,
        process: str,
        notification: Callable[[MediaTask], TaskCallback | None] = lambda _: None,
        *,
        has_usage: bool = True,
        clock: Clock | None = None,
    ) -> None:
        """Open the table for a process (its unique name). `notification`: returns the caller's notification of a change
        of state, or None if the caller wants none. `has_usage`: whether a usage record is written for each task.
        """
        self._clock = clock or store.clock
        self._store = store
        self._process = process
        self._notification = notification
        self._has_usage = has_usage

    @property
    def may_lack_rows(self) -> bool:
        """Whether tasks of other processes may be missing, because the database is or was unavailable to them."""
        return self._store.reconnection.may_lack_rows

    async def insert(self, task: MediaTask, held: Sequence[Hold], lease_seconds: float) -> MediaTask | None:
        """Insert a task that this process submits, with a lease of `lease_seconds`, and reserve its maximum cost.
        Return None. If the owner has a task with the same idempotency key or external id, insert nothing, and return
        that task. The process has to report the outcome by `advance`, `withdraw` or `report_unknown`. Raise
        UnconfirmedCommitError if the task may have been inserted.
        """
        try:
            return await self._insert(task, lease_seconds, held)
        except UnconfirmedCommitError as error:
            try:
                found = await self.get(task.task_id)
            except SQLAlchemyError:
                raise error from None
            if found is None:
                return await self._insert(task, lease_seconds, held)
            task.next_poll_micros = found.next_poll_micros
            return None

    @repeated
    async def _insert(self, task: MediaTask, lease_seconds: float, held: Sequence[Hold]) -> MediaTask | None:
        values: dict[str, object] = {name: getattr(task, name) for name in _COLUMNS}
        values["submitter"] = self._process
        values["next_poll_micros"] = self._clock.sql_micros(lease_seconds)
        inserted = insert(MediaTask).values(**values).returning(MediaTask.next_poll_micros)
        try:
            async with self._store.write() as session:
                task.next_poll_micros = await session.scalar(inserted)
                if held:
                    await lock_accounts(session, [reserved.lease[:2] for reserved in held])
                for reserved in held:
                    await hold(session, reserved.lease, task.task_id, reserved.micro_credits)
        except IntegrityError:
            if (existing := await self.find_conflict(task)) is None:
                raise
            return existing
        return None

    @repeated
    async def find_conflict(self, task: MediaTask) -> MediaTask | None:
        """Return the existing task of the same owner with the same idempotency key or external id; None if there is
        none.
        """
        table, found = MediaTask, None
        async with self._store.read() as session:
            for column, value in (
                (table.idempotency_key, task.idempotency_key),
                (table.external_task_id, task.external_task_id),
            ):
                if value is not None and found is None:
                    found = await session.scalar(select(table).where(table.owner == task.owner, column == value))
        return found

    @repeated
    async def find_repeated(self, owner: str, body_hash: str, since_micros: int) -> MediaTask | None:
        """Return the newest task of the key with this request hash, created at or after `since_micros`, or None."""
        table = MediaTask
        same = (table.owner == owner, table.body_hash == body_hash, table.create_micros >= since_micros)
        async with self._store.read() as session:
            return await session.scalar(select(table).where(*same).order_by(table.create_micros.desc()).limit(1))

    @repeated
    async def get(self, task_id: str) -> MediaTask | None:
        """Return a task by its id; None if it does not exist."""
        async with self._store.read() as session:
            return await session.get(MediaTask, task_id)

    @repeated
    async def find_external(self, owner: str, external_task_id: str) -> MediaTask | None:
        """Return the task of the key `owner` with an id that the caller chose; None if there is none."""
        table = MediaTask
        same = (table.owner == owner, table.external_task_id == external_task_id)
        async with self._store.read() as session:
            return await session.scalar(select(table).where(*same))

    @repeated
    async def page(self, selection: TaskFilter, after: MediaTask | None, size: int) -> tuple[Sequence[MediaTask], int]:
        """Return up to `size` selected tasks, and the number of all. `after`: last task of the page before."""
        table, conditions = MediaTask, _conditions(selection)
        position = tuple_(table.create_micros, table.task_id)
        query = select(table).where(*conditions).limit(size)
        if selection.oldest_first:
            query = query.order_by(table.create_micros, table.task_id)
        else:
            query = query.order_by(table.create_micros.desc(), table.task_id.desc())
        if after is not None:
            bound = tuple_(after.create_micros, after.task_id)
            query = query.where(position > bound if selection.oldest_first else position < bound)
        async with self._store.read() as session:
            total = await session.scalar(select(func.count()).select_from(table).where(*conditions))
            return (await session.scalars(query)).all(), int(total or 0)

    # --- submission

    @repeated
    async def pin(self, task_id: str, pin: Pin) -> bool:
        """Record the channel to which this process is about to submit a task, and renew its lease. Return False if the
        lease has ended: another process may have taken over the task, and this one must not submit it.
        """
        values = {
            "channel": pin.channel,
            "upstream_model": pin.model,
            "prices": pin.prices,
            "deadline_micros": pin.deadline_micros,
            "next_poll_micros": self._clock.sql_micros(pin.lease_seconds),
        }
        pinned = update(MediaTask).where(*self._own(task_id)).values(**values)
        async with self._store.write() as session:
            return (await session.execute(pinned.returning(MediaTask.task_id))).first() is not None

    @repeated
    async def withdraw(self, task_id: str) -> bool:
        """Delete a task that this process was submitting and that no provider has accepted; release its reserved cost.
        If the task has ended in the meantime, delete nothing, and return False.
        """
        table = MediaTask
        own = (table.task_id == task_id, table.state == SUBMITTING_STATE, table.submitter == self._process)
        gone = delete(table).where(*own).returning(table.owner, table.budget_period, table.budgets)
        async with self._store.write() as session:
            if (row := (await session.execute(gone)).first()) is None:
                return False
            await _end_holds(session, task_id, _accounts(*row), 0)
            return True

    @repeated
    async def renew(self, task_id: str, lease_seconds: float) -> None:
        """Extend the lease of a task that this process is submitting to `lease_seconds` from now."""
        renewed = update(MediaTask).where(*self._own(task_id))
        async with self._store.write() as session:
            await session.execute(renewed.values(next_poll_micros=self._clock.sql_micros(lease_seconds)))

    @repeated
    async def report_unknown(self, task_id: str, details: str | None = None) -> None:
        """Report for a task's submitter that a provider may have accepted the task. Any process may now look for the
        task at the provider, and fail it if the provider does not have it. `details`: new value of the column, or None.
        """
        table = MediaTask
        reported = update(table).where(table.task_id == task_id, table.state == SUBMITTING_STATE)
        values: dict[str, object] = {"lease_owner": "", "next_poll_micros": self._clock.sql_micros(), "submitter": None}
        if details is not None:
            values["details"] = details
        async with self._store.write() as session:
            await session.execute(reported.values(**values))

    def _own(self, task_id: str) -> tuple[ColumnElement[bool], ...]:
        table = MediaTask
        return (table.task_id == task_id, table.state == SUBMITTING_STATE, table.lease_owner == self._process)

    # --- changes

    @repeated
    async def advance(self, /, task_id: str, state: int, **values: object) -> MediaTask | None:
        """Move a task to a later state, set the columns `values`, and return the task. If the task does not exist or
        its state is not before `state`, change nothing, and return None. A terminal state also ends the reservation:
        `micro_credits` is charged.
        """
        async with self._store.write() as session:
            task = await session.get(MediaTask, task_id, with_for_update=True)
            if task is None or task.state >= FIRST_TERMINAL or task.state >= state:
                return None
            task.state = state
            task.lease_owner, task.poll_failures, task.submitter = "", 0, None
            task.stall = task.stall_since_micros = None
            for name, value in values.items():
                setattr(task, name, value)
            if state >= FIRST_TERMINAL:
                accounts = _accounts(task.owner, task.budget_period, task.budgets)
                await _end_holds(session, task_id, accounts, task.micro_credits)
                if self._has_usage:
                    await insert_record(session, _usage_record(task))
            if state > QUEUED_STATE and (notification := self._notification(task)) is not None:
                session.add(notification)
            return task

    @repeated
    async def set_results(self, task_id: str, results: Sequence[TaskResult]) -> None:
        """Replace the results of a task that has succeeded, for example to add the ids of stored blobs."""
        table = MediaTask
        which = update(table).where(table.task_id == task_id, table.state == SUCCEEDED_STATE)
        async with self._store.write() as session:
            await session.execute(which.values(results=results_text(results)))

    @repeated
    async def find_uncopied(self, since_micros: int, until_micros: int, limit: int) -> Sequence[MediaTask]:
        """Return up to `limit` tasks that succeeded between two times and have uncopied expiring URLs, newest first."""
        table = MediaTask
        ended = (
            *(
                table.state == SUCCEEDED_STATE,
                table.complete_micros >= since_micros,
                table.complete_micros <= until_micros,
            ),
            *(table.results.contains('"url_expire_micros"'), ~table.results.contains('"blob_id"')),
        )
        query = select(table).where(*ended).order_by(table.complete_micros.desc()).limit(limit)
        async with self._store.read() as session:
            return (await session.scalars(query)).all()

    @repeated
    async def delete(self, task_id: str) -> MediaTask | None:
        """Delete an ended task with its notifications. Return the task; None if it is unknown or has not ended."""
        async with self._store.write() as session:
            task = await session.get(MediaTask, task_id, with_for_update=True)
            if task is None or task.state < FIRST_TERMINAL:
                return None
            await session.execute(delete(TaskCallback).where(TaskCallback.task_id == task_id))
            await session.delete(task)
            return task

    @repeated
    async def sweep(self, max_tasks: int) -> None:
        """Delete expired tasks and, above `max_tasks` ended ones, the oldest. Do nothing while the clock is wrong."""
        if not self._clock.is_trusted:
            return
        table = MediaTask
        newest = select(table.create_micros).where(table.expire_micros.is_not(None))
        async with self._store.read() as session:
            oldest = await session.scalar(newest.order_by(table.create_micros.desc()).offset(max_tasks).limit(1))
        old = table.expire_micros <= self._clock.sql_micros()
        if oldest is not None:
            old |= table.expire_micros.is_not(None) & (table.create_micros <= oldest)
        while True:
            async with self._store.write() as session:
                ids = (await session.scalars(select(table.task_id).where(old).limit(SWEEP_ROWS))).all()
                await session.execute(delete(TaskCallback).where(TaskCallback.task_id.in_(ids)))
                await session.execute(delete(table).where(table.task_id.in_(ids)))
            if len(ids) < SWEEP_ROWS:
                return


def _conditions(selection: TaskFilter) -> list[ColumnElement[bool]]:
    table, found = MediaTask, list[ColumnElement[bool]]()
    if selection.owner is not None:
        found.append(table.owner == selection.owner)
    if selection.entry:
        found.append(table.entry == selection.entry)
    if selection.states:
        found.append(table.state.in_(selection.states))
    if selection.model is not None:
        found.append(table.model == selection.model)
    if selection.task_ids:
        found.append(table.task_id.in_(selection.task_ids))
    return found


def _accounts(owner: str, period: int | None, budgets: Iterable[Sequence[Any]] | None) -> list[tuple[str, int]]:
    """Return the accounts of budgets that a task is charged to, by the columns of its row."""
    own = [] if period is None else [(owner, period)]
    return [*own, *((account, start) for account, start in budgets or ())]


async def _end_holds(
    session: AsyncSession, task_id: str, accounts: Collection[tuple[str, int]], micro_credits: int
) -> None:
    if accounts:
        await lock_accounts(session, accounts)
    for account, period in accounts:
        await end_hold(session, LeaseId(account, period, f"{TASK_PREFIX}{task_id}"), micro_credits)


def _usage_record(task: MediaTask) -> UsageRecord:
    """Return the usage record of an ended task. It is inserted without a charge: `_end_holds` charges the cost."""
    usage, details = pb.VideoUsage.FromString(task.usage or b""), _details(task)
    return UsageRecord(
        record_id=task.task_id,
        request_id=task.request_id,
        key_id=task.owner,
        operation="remix_video" if task.source_task_id is not None else "create_video",
        method="VideoService/" + ("RemixVideoTask" if task.source_task_id is not None else "CreateVideoTask"),
        face=task.face,
        agent=task.agent,
        model=task.public_model,
        channel=task.channel,
        start_micros=task.create_micros,
        duration_micros=max(0, (task.complete_micros or task.create_micros) - task.create_micros),
        status="OK" if task.state == SUCCEEDED_STATE else "UNAVAILABLE",
        reason="" if task.state == SUCCEEDED_STATE else "UPSTREAM_FAILED",
        details=details,
        attempts=len(details.attempts) or 1,
        micro_credits=task.micro_credits,
        videos=usage.video_count,
        video_seconds=usage.output_seconds,
    )


def _details(task: MediaTask) -> CallDetails:
    """Return the details of the call that submitted an ended task, with the error of a failed one."""
    if task.details is None:
        details = CallDetails(attempts=[], message="", first_output_micros=None, dropped=[])
    else:
        details = decode_details(task.details)
    details.task_id = task.task_id
    if task.state != SUCCEEDED_STATE:
        failure = pb.VideoTaskError.FromString(task.error or b"")
        details.message = storable(f"{failure.code}: {failure.message}")
    return details
