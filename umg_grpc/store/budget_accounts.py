"""Budget accounts of API keys in the database: the amount that each key has spent in a budget period, and leases.

A lease is a part of the remaining budget that one process may spend without a query: its calls reserve from it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, case, delete, func, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.store.database import Store, repeated
from umg_grpc.store.tables import BudgetAccount, BudgetLease

LEASE_DIVISOR = 50  # a lease is at most this part of the budget, unless calls may cost more
REST_DIVISOR = 8  # and this part of the rest, so that leases become small before the budget is used up
TASK_PREFIX = "task:"
NO_DIRECTORY = ""
"""Data directory of the leases of video tasks, which belong to no process."""
FOREIGN_SECONDS = 3600
"""Seconds without a renewal after which the lease of a process with another data directory is deleted. The wait is
long, since the journal in that directory may have usage records that the database has not received.
"""

_OPEN_ACCOUNT = text(
    "INSERT INTO budget_accounts (key_id, period_start, spent_micro_credits) VALUES (:key_id, :period, 0)"
    " ON CONFLICT (key_id, period_start) DO NOTHING"
)
_ADD_TO_LEASE = text(
    "INSERT INTO budget_leases (key_id, period_start, holder, directory, held_micro_credits, renew_micros)"
    " VALUES (:key_id, :period, :holder, :directory, :amount, :now)"
    " ON CONFLICT (key_id, period_start, holder) DO UPDATE SET"
    " held_micro_credits = budget_leases.held_micro_credits + excluded.held_micro_credits,"
    " renew_micros = excluded.renew_micros"
)


class LeaseId(NamedTuple):
    """Identifier of a lease: a key, a budget period, and the process or video task that may spend the amount
    (`holder`).
    """

    key_id: str
    period: int
    """Start of the budget period in seconds since 1970 in UTC; 0 for a budget without a period."""
    holder: str


class Charge(NamedTuple):
    """Cost of one call in micro-credits, and the lease from which the call had reserved its maximum cost."""

    lease: LeaseId
    micro_credits: int


class Balance(NamedTuple):
    """Micro-credits of a key in one budget period: spent ones, and those in leases of processes and video tasks
    (`held`).
    """

    spent: int
    held: int
    """Sum of the amounts of all leases."""


class Grant(NamedTuple):
    """Result of a request to enlarge a lease: the granted amount, and the balance of the key."""

    micro_credits: int
    """Amount that was added to the lease; 0 if the remaining budget does not suffice."""
    balance: Balance
    """Balance before the amount was added."""


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
    """Return the end of the budget period that begins at `start`, seconds since 1970 in UTC; None without a period.
    `period`: `day`, `month`, or "" for a budget without a period.
    """
    if not period:
        return None
    if period == "day":
        return datetime.fromtimestamp(start + 86_400, UTC)
    day = datetime.fromtimestamp(start, UTC)
    return day.replace(year=day.year + day.month // 12, month=day.month % 12 + 1)


async def lock_accounts(session: AsyncSession, accounts: Iterable[tuple[str, int]]) -> None:
    """Lock budget accounts until the end of the transaction; create missing accounts with nothing spent.
    `accounts`: pairs of key id and start of the budget period.
    """
    for key_id, period in sorted(set(accounts)):  # one order, so that two transactions cannot wait for each other
        await session.execute(_OPEN_ACCOUNT, {"key_id": key_id, "period": period})
        await session.execute(_account(key_id, period).with_for_update())


async def settle(session: AsyncSession, charges: Sequence[Charge]) -> None:
    """Add the costs of calls to the spent amounts of their accounts, and subtract them from their leases. The accounts
    must be locked by `lock_accounts`.
    """
    by_account: dict[tuple[str, int], int] = {}
    by_lease: dict[LeaseId, int] = {}
    for lease, cost in charges:
        by_lease[lease] = by_lease.get(lease, 0) + cost
        account = lease.key_id, lease.period
        by_account[account] = by_account.get(account, 0) + cost
    for (key_id, period), cost in by_account.items():
        table = BudgetAccount
        which = update(table).where(table.key_id == key_id, table.period_start == period)
        await session.execute(which.values(spent_micro_credits=table.spent_micro_credits + cost))
    for lease, cost in by_lease.items():
        await _take_from(session, lease, cost)


async def hold(session: AsyncSession, lease: LeaseId, task: str, micro_credits: int, now: datetime) -> LeaseId:
    """Move a reserved amount from `lease`, the lease of a process, to a new lease of a video task, and return its id.
    `task`: id of the task.

    It must run in the transaction that creates the task. The new lease lasts until `end_hold`, not until a process
    ends.
    """
    await lock_accounts(session, [(lease.key_id, lease.period)])
    held = lease._replace(holder=f"{TASK_PREFIX}{task}")
    row = {**held._asdict(), "directory": NO_DIRECTORY, "amount": micro_credits, "now": _micros(now)}
    await session.execute(_ADD_TO_LEASE, row)
    await _take_from(session, lease, micro_credits)
    return held


async def end_hold(session: AsyncSession, held: LeaseId, micro_credits: int) -> bool:
    """Delete the lease `held` of a video task, and add `micro_credits`, its actual cost, to the spent amount; 0 charges
    nothing.

    Return False, without a charge, if the lease does not exist any more: a process may then repeat the transaction of a
    process that was killed.
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
    async def lease(
        self, lease: LeaseId, directory: str, budget: int, need: int, now: datetime, *, want: int = 0
    ) -> Grant:
        """Add micro-credits to a lease, which is created if it does not exist. Return the granted amount, and the
        balance before.

        `directory`: id of the process's data directory. `budget`: the key's whole budget for the period. `need`:
        minimum of the added amount; if the remaining budget is smaller, 0 is granted. `want`: amount to add if much is
        left.
        """
        async with self._store.write() as session:
            await lock_accounts(session, [(lease.key_id, lease.period)])
            spent = await session.scalar(_account(lease.key_id, lease.period))
            held = select(func.sum(BudgetLease.held_micro_credits)).where(
                BudgetLease.key_id == lease.key_id, BudgetLease.period_start == lease.period
            )
            balance = Balance(int(spent or 0), int(await session.scalar(held) or 0))
            rest = budget - sum(balance)
            if need > rest:
                return Grant(0, balance)
            amount = max(need, min(max(budget // LEASE_DIVISOR, want), rest // REST_DIVISOR))
            row = {**lease._asdict(), "directory": directory, "amount": amount, "now": _micros(now)}
            await session.execute(_ADD_TO_LEASE, row)
            return Grant(amount, balance)

    @repeated
    async def return_unused(self, amounts: Mapping[LeaseId, int]) -> None:
        """Subtract unused amounts (lease -> micro-credits) from leases, and delete leases that become empty."""
        if amounts:
            async with self._store.write() as session:
                for lease, amount in sorted(amounts.items()):
                    await _take_from(session, lease, amount)
                    await session.execute(delete(BudgetLease).where(_is(lease) & (BudgetLease.held_micro_credits <= 0)))

    @repeated
    async def renew(self, holder: str, now: datetime) -> None:
        """Renew all leases of the process `holder`, so that processes with other data directories do not delete
        them.
        """
        async with self._store.write() as session:
            renewed = update(BudgetLease).where(BudgetLease.holder == holder).values(renew_micros=_micros(now))
            await session.execute(renewed)

    @repeated
    async def holders(self, directory: str) -> Sequence[str]:
        """Return the names of the processes that have leases and share the data directory with this id."""
        query = select(BudgetLease.holder).where(BudgetLease.directory == directory).distinct()
        async with self._store.read() as session:
            return (await session.scalars(query)).all()

    @repeated
    async def return_all(self, holders: Collection[str]) -> None:
        """Delete all leases of the processes `holders`. Their usage records must all be in the database already, since
        otherwise the spent part of the leases would be available again.
        """
        if holders:
            async with self._store.write() as session:
                await session.execute(delete(BudgetLease).where(BudgetLease.holder.in_(holders)))

    @repeated
    async def return_expired(self, directory: str, now: datetime) -> None:
        """Delete the leases of processes with other data directories than `directory` that were not renewed for
        `FOREIGN_SECONDS`.
        """
        bound = _micros(now) - FOREIGN_SECONDS * 10**6
        expired = BudgetLease.directory.not_in([directory, NO_DIRECTORY]) & (BudgetLease.renew_micros < bound)
        async with self._store.read() as session:
            if not await session.scalar(select(func.count()).select_from(BudgetLease).where(expired)):
                return
        async with self._store.write() as session:
            await session.execute(delete(BudgetLease).where(expired))

    @repeated
    async def balances(self, periods: Mapping[str, int]) -> dict[str, Balance]:
        """Return key id -> balance, in the budget period given for the key.
        `periods`: key id -> start of the budget period in seconds since 1970 in UTC.
        """
        if not periods:
            return {}
        spent, held = BudgetAccount, BudgetLease
        sums = select(held.key_id, held.period_start, func.sum(held.held_micro_credits))
        async with self._store.read() as session:
            accounts = await session.execute(
                select(spent.key_id, spent.period_start, spent.spent_micro_credits).where(spent.key_id.in_(periods))
            )
            leases = await session.execute(
                sums.where(held.key_id.in_(periods)).group_by(held.key_id, held.period_start)
            )
            held_by = {(key_id, start): int(amount) for key_id, start, amount in leases}
            return {
                key_id: Balance(amount, held_by.get((key_id, start), 0))
                for key_id, start, amount in accounts
                if periods[key_id] == start
            }


def _account(key_id: str, period: int) -> "Select[Any]":
    table = BudgetAccount
    return select(table.spent_micro_credits).where(table.key_id == key_id, table.period_start == period)


def _is(lease: LeaseId) -> ColumnElement[bool]:
    table = BudgetLease
    return (table.key_id == lease.key_id) & (table.period_start == lease.period) & (table.holder == lease.holder)


async def _take_from(session: AsyncSession, lease: LeaseId, amount: int) -> None:
    """Subtract an amount from a lease, but not below 0: a call may cost more than it had reserved."""
    held = BudgetLease.held_micro_credits
    less = case((held > amount, held - amount), else_=0)
    await session.execute(update(BudgetLease).where(_is(lease)).values(held_micro_credits=less))


def _micros(time: datetime) -> int:
    return int(time.timestamp() * 1e6)
