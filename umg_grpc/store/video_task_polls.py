"""Polls of video tasks: the times at which tasks are due, and leases on due tasks. Any process may poll any task at its
provider. The time of the next poll is also the lease: a process that leases a due task sets this time to the end of its
lease, so that the task of a killed process becomes due again. These times are written and compared by the clock of the
database, since the clocks of the processes may differ.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import BigInteger, bindparam, func, select, text, update

from umg_grpc.store.database import Store, repeated
from umg_grpc.store.database_time import Clock
from umg_grpc.store.table_definitions import MediaTask, TaskCallback
from umg_grpc.store.video_task_table import FIRST_TERMINAL, QUEUED_STATE, RUNNING_STATE

LONGEST_PAUSE_SECONDS = 7200
"""Seconds longer than any pause between polls: a later time was written while the database's clock was wrong."""


class Stall(NamedTuple):
    """Condition that all responses of a provider have had since a time. If it lasts, the task fails."""

    name: str
    since_micros: int


class Claim(NamedTuple):
    """Task that only this process may poll until `lease_end_micros`, with the columns that a poll needs."""

    task_id: str
    state: int
    progress: int | None
    channel: str
    upstream_task_id: str
    upstream_model: str
    upstream_key_id: str
    upstream_facts: str
    poll_failures: int
    deadline_micros: int
    create_micros: int
    lease_end_micros: int
    stall_name: str | None = None
    stall_since_micros: int | None = None
    submitter: str | None = None

    @property
    def stall(self) -> Stall | None:
        """Condition in which the task makes no progress; None if it makes progress."""
        if self.stall_name is None or self.stall_since_micros is None:
            return None
        return Stall(self.stall_name, self.stall_since_micros)


class OpenTasks(NamedTuple):
    """Tasks of one channel that are still polled: their number, and when the first and the last are due."""

    late_micros: int
    """Microseconds since the first of them is due; negative before that time."""
    ahead_micros: int
    """Microseconds until the last of them is due."""
    number: int


class Poll(NamedTuple):
    """Result of a poll after which the task's state is unchanged: time of the next poll, and changed columns."""

    claim: Claim
    pause_micros: int | None
    """Microseconds until the next poll; None for no further poll."""
    failures: int = 0
    progress: int | None = None
    stall: Stall | None = None


_CLAIMED = (
    *(MediaTask.task_id, MediaTask.state, MediaTask.progress, MediaTask.channel),
    *(MediaTask.upstream_task_id, MediaTask.upstream_model, MediaTask.upstream_key_id, MediaTask.upstream_facts),
    *(MediaTask.poll_failures, MediaTask.deadline_micros, MediaTask.create_micros, MediaTask.next_poll_micros),
    *(MediaTask.stall, MediaTask.stall_since_micros, MediaTask.submitter),
)
_SET_PROGRESS = text(
    "UPDATE media_tasks SET progress = :progress, update_micros = :now"
    " WHERE task_id = :task_id AND state < :terminal AND (progress IS NULL OR progress < :progress)"
)


class VideoTaskPolls:
    """Times of polls in the table of video tasks. Every method raises SQLAlchemyError if the database fails."""

    def __init__(self, store: Store, process: str, *, clock: Clock | None = None) -> None:
        """Open the table for a process; `process` is its unique name. `clock`: None for the clock of the database."""
        self._clock = clock or store.clock
        self._store = store
        self._process = process

    def may_lack_report(self, claim: Claim, age_seconds: float) -> bool:
        """Return whether the submitter of a task may know its outcome while the database does not. It has reported
        none, and the database may have been unavailable since the task began, `age_seconds` ago.
        """
        return claim.submitter is not None and self._store.reconnection.may_have_been_away(age_seconds)

    @repeated
    async def due(self) -> Mapping[str, OpenTasks]:
        """Return channel -> its tasks that have not ended and are polled."""
        table, now, time = MediaTask, self._clock.sql_micros(), MediaTask.next_poll_micros
        query = select(table.channel, now - func.min(time), func.max(time) - now, func.count())
        query = query.where(time.is_not(None)).group_by(table.channel)
        async with self._store.read() as session:
            found = (await session.execute(query)).all()
        return {channel: OpenTasks(late or 0, ahead or 0, count) for channel, late, ahead, count in found}

    async def reset_times(self, channel: str) -> None:
        """Make those tasks of a channel due now whose next poll is later than the longest pause."""
        is_wrong = MediaTask.next_poll_micros > self._clock.sql_micros(LONGEST_PAUSE_SECONDS)
        reset = update(MediaTask).where(MediaTask.channel == channel, is_wrong)
        async with self._store.write() as session:
            await session.execute(reset.values(next_poll_micros=self._clock.sql_micros(), lease_owner=""))

    @repeated
    async def claim(self, channel: str, lease_seconds: float, limit: int) -> list[Claim]:
        """Lease up to `limit` due tasks of a channel to this process for `lease_seconds`, and return them."""
        table = MediaTask
        due = (
            select(table.task_id)
            .where(table.channel == channel, table.next_poll_micros <= self._clock.sql_micros())
            .order_by(table.next_poll_micros)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        taken = (
            update(table)
            .where(table.task_id.in_(due))
            .values(lease_owner=self._process, next_poll_micros=self._clock.sql_micros(lease_seconds))
            .returning(*_CLAIMED)
            .execution_options(synchronize_session=False)
        )
        async with self._store.write() as session:
            return [Claim._make(row) for row in (await session.execute(taken)).all()]

    @repeated
    async def reschedule(self, polls: Sequence[Poll], now_micros: int) -> None:
        """End the leases of polled tasks whose state is unchanged, and schedule their next polls. Tasks are left
        unchanged if another process has leased them, or if they were made due in the meantime.
        """
        table = MediaTask
        own = (
            *(table.task_id == bindparam("id"), table.lease_owner == self._process),
            table.next_poll_micros == bindparam("lease_end"),
        )
        rescheduled = update(table).where(*own)
        rescheduled = rescheduled.values(
            next_poll_micros=self._clock.sql_micros() + bindparam("pause", type_=BigInteger()),  # NULL for None
            lease_owner="",
            poll_failures=bindparam("failures"),
            stall=bindparam("name"),
            stall_since_micros=bindparam("since"),
        )
        rows = [
            {
                "id": poll.claim.task_id,
                "pause": poll.pause_micros,
                "failures": poll.failures,
                "name": poll.stall.name if poll.stall is not None else None,
                "since": poll.stall.since_micros if poll.stall is not None else None,
                "lease_end": poll.claim.lease_end_micros,
            }
            for poll in polls
        ]
        reported = [
            {"task_id": poll.claim.task_id, "progress": poll.progress, "now": now_micros, "terminal": FIRST_TERMINAL}
            for poll in polls
            if poll.progress is not None and poll.progress != poll.claim.progress
        ]
        async with self._store.write() as session:
            await (await session.connection()).execute(rescheduled, rows)
            if reported:
                await session.execute(_SET_PROGRESS, reported)

    @repeated
    async def make_due(self, task_id: str) -> None:
        """Schedule the next poll of an accepted task for now; do nothing for a task that has ended."""
        table, now = MediaTask, self._clock.sql_micros()
        open_task = (
            table.task_id == task_id,
            table.state.in_([QUEUED_STATE, RUNNING_STATE]),
            table.next_poll_micros > now,
        )
        async with self._store.write() as session:
            await session.execute(update(table).where(*open_task).values(next_poll_micros=now))

    @repeated
    async def release(self, processes: Collection[str]) -> None:
        """End the leases on tasks and notifications of `processes`, which have ended, so that other processes take them
        over. The data directory of these processes must contain no accepted task that the database lacks.
        """
        tasks, callbacks, now = MediaTask, TaskCallback, self._clock.sql_micros()
        held = tasks.lease_owner.in_(processes) & tasks.next_poll_micros.is_not(None)
        submitted = tasks.submitter.in_(processes) & tasks.next_poll_micros.is_not(None)
        sent = callbacks.lease_owner.in_(processes) & callbacks.next_attempt_micros.is_not(None)
        async with self._store.write() as session:
            await session.execute(update(tasks).where(held).values(next_poll_micros=now, lease_owner=""))
            unknown = {"submitter": None, "lease_owner": "", "next_poll_micros": now}
            await session.execute(update(tasks).where(submitted).values(unknown))
            await session.execute(update(callbacks).where(sent).values(next_attempt_micros=now, lease_owner=""))
