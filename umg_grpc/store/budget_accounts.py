"""Budget accounts in the database: the amount spent of each budget of a key, project or organisation in a period, and
leases. A lease is a part of the rest of the budget that one process may spend without a query.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, case, delete, func, insert, select, text, tuple_, update
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.store.database import Store, repeated
from umg_grpc.store.table_definitions import BudgetAccount, BudgetLease

CALL_DIVISOR = 16
"""Divisor of a budget's rest for a call whose cost has no bound of its own, so that others can run beside it."""
SHARE_DIVISOR, LEAST_SHARES = 2, 4
"""A process is granted in advance at most its share of a part of the rest (1/2), of which at least 4 shares are made,
so that each process gets some, and leases become small before the budget is used up.
"""
TASK_PREFIX = "task:"
NO_DIRECTORY = ""
"""Data directory of the leases of video tasks, which belong to no process."""
LOST_SECONDS = 120
"""Seconds of the database's clock without a confirmation after which a lease is booked as spent."""
WANTED_SECONDS = 2.0
"""Seconds of the database's clock after a refusal in which no process keeps unused amounts of the budget."""

_ACCOUNT = BudgetAccount.key_id, BudgetAccount.period_start
# in text, which many accounts at once do not make longer
_OPEN_ACCOUNT = text(
    "INSERT INTO budget_accounts (key_id, period_start, spent_micro_credits) VALUES (:key_id, :period, 0)"
    " ON CONFLICT (key_id, period_start) DO NOTHING"
)
_CHARGE = text(
    "UPDATE budget_accounts SET spent_micro_credits = spent_micro_credits + :amount"
    " WHERE key_id = :key_id AND period_start = :period"
)
_TAKE = text(
    "UPDATE budget_leases SET held_micro_credits ="
    " CASE WHEN held_micro_credits > :amount THEN held_micro_credits - :amount ELSE 0 END"
    " WHERE key_id = :key_id AND period_start = :period AND holder = :holder"
)


class LeaseId(NamedTuple):
    """Identifier of a lease: an account, a budget period, and the process or video task that may spend (`holder`)."""

    key_id: str
    """Account of the budget: the key's id for its `budget_micro_credits`, else `budget_settings.budget_account`."""
    period: int
    """Start of the budget period in seconds since 1970 in UTC; 0 for a budget without a period."""
    holder: str


class Charge(NamedTuple):
    """Cost of one call in micro-credits, and the lease from which the call had reserved its maximum cost."""

    lease: LeaseId
    micro_credits: int


class Balance(NamedTuple):
    """Amounts of a key in one budget period, in micro-credits: spent, and leased by processes and video tasks."""

    spent: int
    """Costs of calls, and the leases of lost processes."""
    held: int
    """Sum of the amounts of all other leases."""


class Demand(NamedTuple):
    """Amounts in micro-credits by which a process wants to enlarge a lease."""

    need: int
    """Least amount; if the rest of the budget is smaller, nothing is granted."""
    call: int = 0
    """Amount for the present call, granted up to a part of the rest (`CALL_DIVISOR`)."""
    ahead: int = 0
    """Amount for later calls, granted up to the share of the process, but not while the budget is wanted by others."""


class Grant(NamedTuple):
    """Result of a request to enlarge a lease: the granted amount, and the key's leases before the amount was added."""

    micro_credits: int
    """Amount that was added to the lease; 0 if the remaining budget does not suffice."""
    balance: Balance
    own: int = 0
    """Amount of the lease."""
    tasks: int = 0
    """Amount that is reserved for video tasks."""
    others: int = 0
    """Amount in the leases of other processes, those booked as spent excepted."""
    processes: int = 1
    """Number of processes with leases, with the present one."""
    is_wanted: bool = False
    """Whether a process was refused within the last `WANTED_SECONDS`, so that unused amounts have to be returned."""


NO_BALANCE = Balance(0, 0)


def period_start(period: str, now: datetime) -> int:
    """Return the start of the budget period that contains `now`, in seconds since 1970 in UTC.
    `period`: `day`, `month`, or "" for a budget without a period, for which the result is 0.
    """
    if not period:
        return 0
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return int((day.replace(day=1) if period == "month" else day).timestamp())


def period_end(period: str, start: int) -> datetime | None:
    """Return the Unix second in which the period that begins at `start` ends; None for the `period` "" (none)."""
    if not period:
        return None
    if period == "day":
        return datetime.fromtimestamp(start + 86_400, UTC)
    day = datetime.fromtimestamp(start, UTC)
    return day.replace(year=day.year + day.month // 12, month=day.month % 12 + 1)


async def lock_accounts(session: AsyncSession, accounts: Iterable[tuple[str, int]]) -> None:
    """Lock accounts until the transaction ends; create missing ones. `accounts`: (key id, start of the period)."""
    ordered = sorted(set(accounts))
    of = tuple_(*_ACCOUNT)
    # one order, so that two transactions cannot wait for each other
    locked = select(*_ACCOUNT).where(of.in_(ordered)).order_by(*_ACCOUNT).with_for_update()
    known = {(key_id, period) for key_id, period in await session.execute(locked)}
    if missing := [_bound(*account) for account in ordered if account not in known]:
        await (await session.connection()).execute(_OPEN_ACCOUNT, missing)
        await session.execute(locked)


async def settle(session: AsyncSession, charges: Sequence[Charge]) -> Mapping[tuple[str, int], int]:
    """Add the costs of calls to the spent amounts of their accounts (locked by `lock_accounts`), and subtract them from
    their leases. Return account (key id, start of the period) -> time at which a process was last refused an amount of
    it, in microseconds since 1970; 0 for never. A process that writes records therefore needs no other query for this.
    """
    by_account, by_lease = Counter[tuple[str, int]](), Counter[LeaseId]()
    for lease, cost in charges:
        by_lease[lease] += cost
        by_account[lease.key_id, lease.period] += cost
    costs = [{**_bound(*account), "amount": cost} for account, cost in by_account.items()]
    await (await session.connection()).execute(_CHARGE, costs)
    refusals = select(*_ACCOUNT, BudgetAccount.wanted_micros).where(tuple_(*_ACCOUNT).in_(by_account))
    wanted = {(key_id, period): micros or 0 for key_id, period, micros in await session.execute(refusals)}
    await _take_from(session, by_lease)
    return wanted


async def hold(session: AsyncSession, lease: LeaseId, task: str, micro_credits: int) -> LeaseId:
    """Move a reserved amount from the lease of a process to a new lease of a video task. Return the id of the new
    lease. Must run in the transaction that creates the task. The new lease lasts until `end_hold`, not until a process
    ends.
    """
    await lock_accounts(session, [(lease.key_id, lease.period)])
    held = lease._replace(holder=f"{TASK_PREFIX}{task}")
    row = {"directory": NO_DIRECTORY, "held_micro_credits": micro_credits, "renew_micros": 0}
    await session.execute(insert(BudgetLease).values(**_columns(held), **row))
    await _take_from(session, {lease: micro_credits})
    return held


async def end_hold(session: AsyncSession, held: LeaseId, micro_credits: int) -> bool:
    """Delete the lease of a video task, and add `micro_credits`, the task's actual cost, to the spent amount. Return
    False, without a charge, if there is no lease: another process may repeat a transaction of a killed process.
    """
    await lock_accounts(session, [(held.key_id, held.period)])
    deleted = await session.execute(delete(BudgetLease).where(_is(held)).returning(BudgetLease.holder))
    if deleted.first() is None:
        return False
    await settle(session, [Charge(held, micro_credits)])
    return True


class BudgetAccounts:
    """Table of budget accounts and leases. Every method raises SQLAlchemyError if the database fails."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @repeated
    async def lease(self, lease: LeaseId, directory: str, budget: int, demand: Demand) -> Grant:
        async with self._store.write() as session:
            spent, is_wanted = await self._locked_account(session, lease)
            sums = (await session.execute(_sums(lease))).one()
            held, booked, own, tasks, processes, rows = (int(amount or 0) for amount in sums)
            balance, others = Balance(spent + booked, held - booked), held - booked - own - tasks
            rest = budget - spent - held
            if demand.need > rest:
                can_return = demand.need <= rest + others
                if can_return and not is_wanted:
                    wanted = update(BudgetAccount).where(_is_account(lease.key_id, lease.period))
                    await session.execute(wanted.values(wanted_micros=self._now()))
                return Grant(0, balance, own, tasks, others, processes + 1, can_return)
            share = rest // (SHARE_DIVISOR * max(processes + 1, LEAST_SHARES))
            ahead = 0 if is_wanted else min(demand.ahead, share)
            amount = max(demand.need, min(demand.call, rest // CALL_DIVISOR), ahead)
            if amount:
                await self._add(session, lease, directory, amount, exists=rows > 0)
            return Grant(amount, balance, own, tasks, others, processes + 1, is_wanted)

    @repeated
    async def return_unused(self, amounts: Mapping[LeaseId, int]) -> None:
        if amounts:
            async with self._store.write() as session:
                # `lease` must not add to a row that is deleted meanwhile: its amount would be in no row
                await lock_accounts(session, ((lease.key_id, lease.period) for lease in amounts))
                await _take_from(session, amounts)
                for lease in sorted(amounts):
                    await session.execute(delete(BudgetLease).where(_is(lease) & (BudgetLease.held_micro_credits <= 0)))

    @repeated
    async def confirm(self, holder: str) -> set[LeaseId]:
        table = BudgetLease
        own = select(table.key_id, table.period_start).where(table.holder == holder)
        ordered = own.order_by(table.key_id, table.period_start).with_for_update()  # as `settle` locks them
        values = {"renew_micros": self._now(), "booked_micros": None}
        async with self._store.write() as session:
            leases = {LeaseId(key_id, period, holder) for key_id, period in await session.execute(ordered)}
            await session.execute(update(table).where(table.holder == holder).values(**values))
            return leases

    @repeated
    async def wanted(self) -> set[tuple[str, int]]:
        table = BudgetAccount
        recent = table.wanted_micros > self._now() - int(WANTED_SECONDS * 1e6)
        async with self._store.read() as session:
            rows = await session.execute(select(table.key_id, table.period_start).where(recent))
            return {(key_id, period) for key_id, period in rows}

    @repeated
    async def book_lost(self) -> Mapping[LeaseId, int]:
        table = BudgetLease
        lost = (
            table.booked_micros.is_(None)
            & (table.directory != NO_DIRECTORY)
            & (table.held_micro_credits > 0)
            & (table.renew_micros < self._now() - LOST_SECONDS * 10**6)
        )
        leases = select(table.key_id, table.period_start, table.holder, table.held_micro_credits).where(lost)
        async with self._store.read() as session:
            if (await session.execute(leases.limit(1))).first() is None:
                return {}
        async with self._store.write() as session:
            # Another process may book them at the same time.
            rows = (await session.execute(leases.with_for_update(skip_locked=True))).all()
            found = {LeaseId(key_id, period, holder): amount for key_id, period, holder, amount in rows}
            for lease in found:
                await session.execute(update(table).where(_is(lease)).values(booked_micros=self._now()))
            return found

    @repeated
    async def holders(self, directory: str) -> Sequence[str]:
        query = select(BudgetLease.holder).where(BudgetLease.directory == directory).distinct()
        async with self._store.read() as session:
            return (await session.scalars(query)).all()

    @repeated
    async def return_all(self, holders: Collection[str]) -> None:
        if holders:
            async with self._store.write() as session:
                await session.execute(delete(BudgetLease).where(BudgetLease.holder.in_(holders)))

    @repeated
    async def balances(self, periods: Mapping[str, int]) -> dict[str, Balance]:
        """Return account -> balance. `periods`: account -> start of its budget period in seconds since 1970 in UTC."""
        if not periods:
            return {}
        spent, lease = BudgetAccount, BudgetLease
        sums = select(lease.key_id, lease.period_start, _HELD, _BOOKED)
        async with self._store.read() as session:
            accounts = await session.execute(
                select(spent.key_id, spent.period_start, spent.spent_micro_credits).where(spent.key_id.in_(periods))
            )
            leases = await session.execute(
                sums.where(lease.key_id.in_(periods)).group_by(lease.key_id, lease.period_start)
            )
            held_by = {(key_id, start): (int(held), int(booked)) for key_id, start, held, booked in leases}
            balances = dict[str, Balance]()
            for key_id, start, amount in accounts:
                if periods[key_id] == start:
                    held, booked = held_by.get((key_id, start), (0, 0))
                    balances[key_id] = Balance(amount + booked, held - booked)
            return balances

    def _now(self) -> ColumnElement[int]:
        return self._store.clock.sql_micros()

    async def _locked_account(self, session: AsyncSession, lease: LeaseId) -> tuple[int, bool]:
        """Lock the account of a lease; create the account if it does not exist. Return its data for the lease."""
        is_wanted = func.coalesce(BudgetAccount.wanted_micros, 0) > self._now() - int(WANTED_SECONDS * 1e6)
        account = select(BudgetAccount.spent_micro_credits, is_wanted)
        locked = account.where(_is_account(lease.key_id, lease.period)).with_for_update()
        if (row := (await session.execute(locked)).first()) is None:
            await session.execute(_OPEN_ACCOUNT, {"key_id": lease.key_id, "period": lease.period})
            row = (await session.execute(locked)).one()
        return int(row[0]), bool(row[1])

    async def _add(self, session: AsyncSession, lease: LeaseId, directory: str, amount: int, *, exists: bool) -> None:
        """Add an amount to a lease. `exists`: whether there is one, which cannot change with a locked account."""
        if exists:
            held = BudgetLease.held_micro_credits + amount
            values = {"held_micro_credits": held, "renew_micros": self._now(), "booked_micros": None}
            await session.execute(update(BudgetLease).where(_is(lease)).values(**values))
        else:
            row = {"directory": directory, "held_micro_credits": amount, "renew_micros": self._now()}
            await session.execute(insert(BudgetLease).values(**_columns(lease), **row))


_HELD = func.sum(BudgetLease.held_micro_credits)
_IS_BOOKED = BudgetLease.booked_micros.is_not(None)
_BOOKED = func.sum(case((_IS_BOOKED, BudgetLease.held_micro_credits), else_=0))


def _sums(lease: LeaseId) -> "Select[Any, Any, Any, Any, Any, Any]":
    """Return the query of the sums of a key's leases: all leases, those booked as spent, the lease itself, those of
    video tasks, the number of other processes, and 1 if the lease exists.
    """
    table, held = BudgetLease, BudgetLease.held_micro_credits
    is_own, is_task = table.holder == lease.holder, table.directory == NO_DIRECTORY
    is_other = ~is_own & ~is_task & ~_IS_BOOKED & (held > 0)
    return select(
        *(_HELD, _BOOKED),
        func.sum(case((is_own & ~_IS_BOOKED, held), else_=0)),
        func.sum(case((is_task, held), else_=0)),
        func.sum(case((is_other, 1), else_=0)),
        func.sum(case((is_own, 1), else_=0)),
    ).where(table.key_id == lease.key_id, table.period_start == lease.period)


def _is_account(key_id: str, period: int) -> ColumnElement[bool]:
    return (BudgetAccount.key_id == key_id) & (BudgetAccount.period_start == period)


def _is(lease: LeaseId) -> ColumnElement[bool]:
    table = BudgetLease
    return (table.key_id == lease.key_id) & (table.period_start == lease.period) & (table.holder == lease.holder)


def _columns(lease: LeaseId) -> dict[str, object]:
    return {"key_id": lease.key_id, "period_start": lease.period, "holder": lease.holder}


def _bound(key_id: str, period: int) -> dict[str, object]:
    """Return the parameters of an account in the statements above."""
    return {"key_id": key_id, "period": period}


async def _take_from(session: AsyncSession, amounts: Mapping[LeaseId, int]) -> None:
    """Subtract amounts from leases, in the order in which `confirm` locks them."""
    taken = [{**lease._asdict(), "amount": amount} for lease, amount in sorted(amounts.items())]
    await (await session.connection()).execute(_TAKE, taken)
