"""Budgets with the spent part of each, of keys, projects and organisations, for the alerts of operators."""

from collections import defaultdict
from collections.abc import Awaitable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from sqlalchemy import ColumnElement, Float, Text, and_, cast, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from umg_grpc.access.budget_settings import BUDGET_PERIODS, budget_account, budgets_of
from umg_grpc.store.budget_accounts import period_start
from umg_grpc.store.database import Store, repeated
from umg_grpc.store.key_selection import is_live_key
from umg_grpc.store.table_definitions import AccountRow, ApiKey, BudgetAccount, BudgetLease

KEY_KIND = "key"
ACCOUNTS_AT_ONCE = 500
"""Maximum number of accounts in a statement."""
NO_BUDGETS = ("null", "[]")
"""Lists of budgets in the database without a member."""


class BudgetState(NamedTuple):
    """Budget and its spent part in the present period."""

    kind: str
    """Kind of its holder: `key`, or that of an account."""
    holder_id: str
    name: str
    """Name of the holder, for people."""
    account: str
    """Account in `budget_accounts`, unique for the holder and the period."""
    period: str
    """`day`, `month`, or "" for a budget without a period."""
    period_start: int
    """Start of the period in seconds since 1970 in UTC; 0 for a budget without a period."""
    spent: int
    """Micro-credits."""
    amount: int
    """Micro-credits; more than 0."""
    is_soft: bool = False
    """Whether calls are admitted beyond it."""

    @property
    def percent(self) -> int:
        """Spent part in whole percent."""
        return self.spent * 100 // self.amount


class BudgetSource(Protocol):
    """Source of budgets. One of no credits is a block of all calls, and no budget."""

    def spent_budgets(self, percent: int, now: datetime) -> Awaitable[Sequence[BudgetState]]:
        """Return the budgets of which at least `percent` is spent in the period of `now`. Raise SQLAlchemyError."""
        ...


class KeyBudgetSource:
    """Budgets of API keys in the columns of their own, which most keys have at most. One query reads them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @repeated
    async def spent_budgets(self, percent: int, now: datetime) -> Sequence[BudgetState]:
        key, account, period = ApiKey, BudgetAccount, func.coalesce(ApiKey.budget_period, "")
        is_present = or_(
            *(and_(period == name, account.period_start == period_start(name, now)) for name in BUDGET_PERIODS)
        )
        query = (
            select(key.key_id, key.name, period, account.period_start, _SPENT, key.budget_micro_credits)
            .join(account, and_(account.key_id == key.key_id, is_present))
            .where(
                is_live_key(now),
                key.budget_micro_credits > 0,
                cast(_SPENT, Float) * 100 >= cast(key.budget_micro_credits, Float) * percent,
            )
        )
        async with self._store.read() as session:
            rows = await session.execute(query)
            return [
                BudgetState(KEY_KIND, key_id, name, key_id, kind, start, int(used), int(amount or 0))
                for key_id, name, kind, start, used, amount in rows
            ]


class ListedBudgetSource:
    """Budgets in the lists of keys, projects and organisations."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @repeated
    async def spent_budgets(self, percent: int, now: datetime) -> Sequence[BudgetState]:
        starts = {period: period_start(period, now) for period in BUDGET_PERIODS}
        async with self._store.read() as session:
            budgets = await _unspent_budgets(session, now, starts)
            spent = await _spent_amounts(session, sorted({each.account for each in budgets}), {*starts.values()})
        found = [each._replace(spent=spent[each.account, each.period_start]) for each in budgets]
        return [each for each in found if each.percent >= percent]


async def _unspent_budgets(session: AsyncSession, now: datetime, starts: dict[str, int]) -> list[BudgetState]:
    """Return all listed budgets, with 0 as the spent amount."""
    key, account = ApiKey, AccountRow
    keys = select(key.key_id, key.name, key.budgets).where(is_live_key(now), _has_members(key.budgets))
    accounts = select(account.account_id, account.name, account.budgets, account.kind).where(
        account.close_time.is_(None), _has_members(account.budgets)
    )
    holders = [(*row, KEY_KIND) for row in await session.execute(keys)]
    holders += [tuple(row) for row in await session.execute(accounts)]
    return [
        BudgetState(
            *(kind, holder_id, name, budget_account(holder_id, budget.period), budget.period),
            *(starts[budget.period], 0, budget.micro_credits, budget.soft),
        )
        for holder_id, name, listed, kind in holders
        for budget in budgets_of(listed)
        if budget.micro_credits
    ]


async def _spent_amounts(
    session: AsyncSession, accounts: Sequence[str], starts: set[int]
) -> defaultdict[tuple[str, int], int]:
    """Return account and start of the period -> spent amount, 0 for an account without a call."""
    table = BudgetAccount
    found = defaultdict[tuple[str, int], int](int)
    for begin in range(0, len(accounts), ACCOUNTS_AT_ONCE):
        some = accounts[begin : begin + ACCOUNTS_AT_ONCE]
        query = select(table.key_id, table.period_start, _SPENT)
        rows = await session.execute(query.where(table.key_id.in_(some), table.period_start.in_(starts)))
        found.update(((account, start), int(spent)) for account, start, spent in rows)
    return found


_SPENT = BudgetAccount.spent_micro_credits + (
    select(func.coalesce(func.sum(BudgetLease.held_micro_credits), 0))
    .where(
        BudgetLease.key_id == BudgetAccount.key_id,
        BudgetLease.period_start == BudgetAccount.period_start,
        BudgetLease.booked_micros.is_not(None),
    )
    .scalar_subquery()
)
"""Spent amount of an account, with the leases of lost processes."""


def _has_members(listed: InstrumentedAttribute[Any]) -> ColumnElement[bool]:
    return and_(listed.is_not(None), cast(listed, Text).not_in(NO_BUDGETS))
