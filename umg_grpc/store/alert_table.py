"""Alerts in the database: their states, the outbox of their notifications, and the lease on the evaluation of rules."""

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import msgspec
from sqlalchemy import (
    ColumnElement,
    and_,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    text,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from umg_grpc.store.alert_tables import AlertDeliveryRow, AlertRow, WorkLeaseRow
from umg_grpc.store.database import Store, repeated
from umg_grpc.store.database_time import Clock
from umg_grpc.store.table_definitions import AccountRow, ApiKey

EVALUATION_WORK = "alerts"
"""Name of the lease on the evaluation of rules."""
KEPT_SECONDS = 90 * 86_400
"""Seconds for which an alert is kept after its end."""
MAX_ERROR_CHARACTERS = 500

_ADD_LEASE = text(
    "INSERT INTO work_leases (work, holder, end_micros) VALUES (:work, '', 0) ON CONFLICT (work) DO NOTHING"
)

AlertIdentity = tuple[str, str, int, int]
"""Rule, object, threshold and start of the budget period, of which at most one alert is open."""


@dataclass(frozen=True, kw_only=True)
class AlertState:
    """Alert as it is stored; `AlertRow` describes the fields."""

    alert_id: str
    rule: str
    object: str
    threshold: int
    period_start: int
    summary: str
    details: Mapping[str, str]
    open_micros: int
    close_micros: int | None = None
    calm_micros: int | None = None
    notify_micros: int

    @property
    def identity(self) -> AlertIdentity:
        """Identity of the condition."""
        return self.rule, self.object, self.threshold, self.period_start


class AlertDelivery(NamedTuple):
    """Notification of one receiver with the results of its attempts; `AlertDeliveryRow` describes the fields."""

    notification_id: str
    alert_id: str
    receiver: str
    event: int
    attempts: int
    next_attempt_micros: int | None
    create_micros: int
    deliver_micros: int | None
    error: str


class OutgoingAlert(NamedTuple):
    """Notification that this process has leased to deliver it."""

    notification_id: str
    receiver: str
    body: bytes
    attempts: int
    """Number of earlier attempts."""


class NewDelivery(NamedTuple):
    """Notification that is to be sent."""

    notification_id: str
    alert_id: str
    receiver: str
    event: int
    body: bytes


@dataclass(frozen=True)
class AlertSelection:
    """Alerts of a page: after a position, with some rules, and open ones only or all."""

    rules: Collection[str] = ()
    """Names of the rules; empty for all."""
    open_only: bool = False
    after: tuple[int, str] | None = None
    """Time of the beginning, and id, of the last alert of the previous page; None for the first page."""
    accounts: Collection[str] | None = None
    """Organisations and projects of whose budgets, and of whose keys' budgets, alerts are selected; None for all."""


def new_alert_id() -> str:
    """Return a new id of an alert."""
    return f"alert_{secrets.token_urlsafe(16)}"


def new_notification_id() -> str:
    """Return a new id of a notification."""
    return f"msg_{secrets.token_urlsafe(24)}"


class AlertTable:
    """Tables of alerts and their notifications. Its methods raise SQLAlchemyError."""

    def __init__(self, store: Store, process: str, clock: Clock | None = None) -> None:
        """Open the tables for a process; `process` is its unique name. `clock`: None for that of the database."""
        self._clock = clock or store.clock
        self._store = store
        self._process = process

    @repeated
    async def lead(self, seconds: float) -> bool:
        """Take or renew the lease on the evaluation of rules. Return whether this process has it now."""
        table, now = WorkLeaseRow, self._clock.sql_micros()
        is_own_work = table.work == EVALUATION_WORK
        is_others = and_(is_own_work, table.holder != self._process, table.end_micros > now)
        async with self._store.read() as session:
            if await session.scalar(select(exists().where(is_others))):
                return False
        async with self._store.write() as session:
            await session.execute(_ADD_LEASE, {"work": EVALUATION_WORK})
            may_take = or_(table.holder == self._process, table.end_micros <= now)
            taken = update(table).where(is_own_work, may_take).returning(table.work)
            values = {"holder": self._process, "end_micros": self._clock.sql_micros(seconds)}
            return (await session.execute(taken.values(**values))).first() is not None

    async def release(self) -> None:
        """End this process's lease, so that another process evaluates the rules at once."""
        own = (WorkLeaseRow.work == EVALUATION_WORK, WorkLeaseRow.holder == self._process)
        async with self._store.write() as session:
            await session.execute(update(WorkLeaseRow).where(*own).values(end_micros=0))

    @repeated
    async def open_alerts(self) -> list[AlertState]:
        """Return the alerts whose condition holds."""
        async with self._store.read() as session:
            rows = await session.scalars(select(AlertRow).where(AlertRow.close_micros.is_(None)))
            return [_state(row) for row in rows]

    @repeated
    async def apply(
        self, new: Sequence[AlertState], changed: Sequence[AlertState], deliveries: Sequence[NewDelivery]
    ) -> bool:
        """Store new and changed alerts with their notifications, which are due now. Return False, without a change, if
        this process has lost its lease.
        """
        lease = WorkLeaseRow
        async with self._store.write() as session:
            held = (lease.work == EVALUATION_WORK, lease.holder == self._process)
            # the lock on the row excludes other processes until the end of the transaction
            confirmed = update(lease).where(*held).values(end_micros=lease.end_micros).returning(lease.work)
            if (await session.execute(confirmed)).first() is None:
                return False
            session.add_all(AlertRow(**_columns(each)) for each in new)
            for each in changed:
                values = {name: value for name, value in _columns(each).items() if name != "alert_id"}
                await session.execute(update(AlertRow).where(AlertRow.alert_id == each.alert_id).values(**values))
            await session.flush()
            now = round(self._clock.now() * 1e6)
            session.add_all(
                AlertDeliveryRow(
                    **each._asdict(), attempts=0, lease_owner="", next_attempt_micros=now, create_micros=now, error=""
                )
                for each in deliveries
            )
        return True

    @repeated
    async def has_due(self) -> bool:
        """Return whether a notification is due."""
        due = AlertDeliveryRow.next_attempt_micros <= self._clock.sql_micros()
        async with self._store.read() as session:
            return bool(await session.scalar(select(exists().where(due))))

    @repeated
    async def claim(self, lease_seconds: float, busy: Collection[str] = ()) -> list[OutgoingAlert]:
        """Lease the oldest due notification of each receiver to this process, except those of the receivers in `busy`.
        Of the notifications of a receiver about one alert, only the oldest is leased, so that they arrive in order.
        """
        table, earlier = AlertDeliveryRow, aliased(AlertDeliveryRow)
        is_later = exists().where(
            and_(
                earlier.alert_id == table.alert_id,
                earlier.receiver == table.receiver,
                earlier.next_attempt_micros.is_not(None),
                earlier.create_micros < table.create_micros,
            )
        )
        is_due = and_(table.next_attempt_micros <= self._clock.sql_micros(), ~is_later)
        place = func.row_number().over(partition_by=table.receiver, order_by=table.next_attempt_micros)
        places = select(table.notification_id, place.label("place")).where(is_due, table.receiver.not_in(busy))
        first = places.subquery()
        chosen = select(first.c.notification_id).where(first.c.place == 1)
        # Window functions and locks exclude each other, so that the rows are locked, and checked again, by their ids.
        locked = select(table.notification_id).where(table.notification_id.in_(chosen), is_due)
        taken = (
            update(table)
            .where(table.notification_id.in_(locked.with_for_update(skip_locked=True)))
            .values(lease_owner=self._process, next_attempt_micros=self._clock.sql_micros(lease_seconds))
            .returning(table.notification_id, table.receiver, table.body, table.attempts)
            .execution_options(synchronize_session=False)
        )
        async with self._store.write() as session:
            return [OutgoingAlert._make(row) for row in (await session.execute(taken)).all()]

    @repeated
    async def delivered(self, sent: OutgoingAlert) -> None:
        """Record that the receiver has accepted a notification."""
        now = self._clock.sql_micros()
        await self._record(sent, next_attempt_micros=None, deliver_micros=now, error="")

    @repeated
    async def retry(self, sent: OutgoingAlert, pause_seconds: float, error: str) -> None:
        """Record a failed attempt, and schedule the next one, after `pause_seconds`."""
        await self._record(sent, next_attempt_micros=self._clock.sql_micros(pause_seconds), error=error)

    @repeated
    async def give_up(self, sent: OutgoingAlert, error: str) -> None:
        """Record the last failed attempt; there is no further one."""
        await self._record(sent, next_attempt_micros=None, error=error)

    async def _record(self, sent: OutgoingAlert, *, error: str, **values: object) -> None:
        table = AlertDeliveryRow
        own = (table.notification_id == sent.notification_id, table.lease_owner == self._process)
        result = {"attempts": sent.attempts + 1, "lease_owner": "", "error": error[:MAX_ERROR_CHARACTERS], **values}
        async with self._store.write() as session:
            await session.execute(update(table).where(*own).values(**result))

    @repeated
    async def page(self, selection: AlertSelection, limit: int) -> list[tuple[AlertState, list[AlertDelivery]]]:
        """Return the selected alerts, newest first, each with its notifications, oldest first."""
        query = select(AlertRow).order_by(AlertRow.open_micros.desc(), AlertRow.alert_id.desc()).limit(limit)
        if selection.rules:
            query = query.where(AlertRow.rule.in_(selection.rules))
        if selection.open_only:
            query = query.where(AlertRow.close_micros.is_(None))
        if selection.after is not None:
            query = query.where(tuple_(AlertRow.open_micros, AlertRow.alert_id) < selection.after)
        if selection.accounts is not None:
            query = query.where(AlertRow.rule == "budget", _is_of(selection.accounts))
        async with self._store.read() as session:
            found = [_state(row) for row in await session.scalars(query)]
            deliveries = await _deliveries(session, [each.alert_id for each in found])
        return [(each, [row for row in deliveries if row.alert_id == each.alert_id]) for each in found]

    @repeated
    async def sweep(self) -> None:
        """Delete the alerts, with their notifications, that ended more than `KEPT_SECONDS` ago."""
        if not self._clock.is_trusted:
            return
        old = select(AlertRow.alert_id).where(AlertRow.close_micros < self._clock.sql_micros(-KEPT_SECONDS))
        async with self._store.write() as session:
            await session.execute(delete(AlertDeliveryRow).where(AlertDeliveryRow.alert_id.in_(old)))
            await session.execute(delete(AlertRow).where(AlertRow.alert_id.in_(old)))


def _is_of(accounts: Collection[str]) -> ColumnElement[bool]:
    """Return the condition that the object of an alert is a budget of an account or of a key in it."""
    of_accounts = select((AccountRow.kind + ":" + AccountRow.account_id).label("holder"))
    of_keys = select((literal("key:") + ApiKey.key_id).label("holder")).where(ApiKey.project_id.in_(accounts))
    holders = union_all(of_accounts.where(AccountRow.account_id.in_(accounts)), of_keys).subquery()
    holder: ColumnElement[str] = holders.c.holder
    begins = func.substr(AlertRow.object, 1, func.length(holder) + 1) == holder + "/"
    return exists(select(holder).where((AlertRow.object == holder) | begins))


async def _deliveries(session: AsyncSession, alert_ids: Sequence[str]) -> list[AlertDelivery]:
    table = AlertDeliveryRow
    columns = [getattr(table, name) for name in AlertDelivery._fields]
    query = select(*columns).where(table.alert_id.in_(alert_ids))
    ordered = query.order_by(table.create_micros, table.receiver)
    return [AlertDelivery._make(row) for row in await session.execute(ordered)]


def _state(row: AlertRow) -> AlertState:
    values = {name: getattr(row, name) for name in AlertState.__dataclass_fields__}
    return AlertState(**{**values, "details": msgspec.json.decode(row.details, type=dict[str, str])})


def _columns(state: AlertState) -> dict[str, object]:
    return {**asdict(state), "details": msgspec.json.encode(dict(state.details)).decode()}
