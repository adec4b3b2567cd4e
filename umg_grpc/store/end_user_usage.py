"""Usage by end user and day: the people whose ids callers send with their requests (`user`). Of each day only the users
with the highest cost are kept apart; the calls of the others are added up under no name.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import add
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.store.database import Store, repeated
from umg_grpc.store.insert_statements import rows_of
from umg_grpc.store.key_selection import EVERY_KEY, KeySelection
from umg_grpc.store.row_upserts import batches
from umg_grpc.store.usage_tables import DAY_BUCKET, END_USER_DAYS
from umg_grpc.store.usage_tables import END_USER_SUMS as SUMS
from umg_grpc.store.usage_totals import start_of

KEPT_USERS = 1000
"""End users of a day that are kept apart."""
_COLUMNS = END_USER_DAYS.c
_ON_CONFLICT = "ON CONFLICT (start_micros, end_user, key_id) DO UPDATE SET " + ", ".join(
    f"{name} = end_user_days.{name} + excluded.{name}" for name in SUMS
)
INSERTED_ROWS = 500  # by one statement
Amounts: TypeAlias = tuple[int, ...]
"""Amounts of the columns `SUMS`."""
Row: TypeAlias = tuple[Any, ...]
"""Values of the columns of the table."""


class EndUserCall(NamedTuple):
    """Calls of one end user with one key, by the time of the first."""

    start_micros: int
    end_user: str
    key_id: str
    amounts: Amounts


class EndUserFilter(NamedTuple):
    """Days and keys whose calls count."""

    since: int
    until: int
    """The days begin from `since` to before `until`, in microseconds since 1970."""
    key_ids: Collection[str] = ()
    """Empty for all keys."""
    keys: KeySelection = EVERY_KEY


class EndUserSum(NamedTuple):
    """Usage of one end user in a span of days."""

    end_user: str
    """Id that callers send; "" for all users that are not kept apart."""
    requests: int
    failed: int
    input_tokens: int
    output_tokens: int
    micro_credits: int


def end_user_upserts(dialect: str, calls: Iterable[EndUserCall]) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield statements that add calls, as far as they have an end user."""
    for rows in batches(_summed(call for call in calls if call.end_user), INSERTED_ROWS):
        yield _upsert(dialect, rows)


async def sweep_end_users(store: Store, kept_since: int) -> None:
    """Delete the days that begin before `kept_since` (microseconds since 1970), and add up the end users of the other
    days that are not kept apart.
    """
    async with store.write() as session:
        await session.execute(delete(END_USER_DAYS).where(_COLUMNS.start_micros < kept_since))
    users = func.count(_COLUMNS.end_user.distinct())
    query = select(_COLUMNS.start_micros).where(_COLUMNS.end_user != "").group_by(_COLUMNS.start_micros)
    async with store.read() as session:
        days = list(await session.scalars(query.having(users > KEPT_USERS)))
    for day in days:
        async with store.write() as session:
            await _merge(session, day)


async def _merge(session: AsyncSession, day: int) -> None:
    cost, requests = func.sum(_COLUMNS.micro_credits), func.sum(_COLUMNS.requests)
    of_day = _COLUMNS.start_micros == day
    ranked = select(_COLUMNS.end_user).where(of_day, _COLUMNS.end_user != "").group_by(_COLUMNS.end_user)
    others = ranked.order_by(cost.desc(), requests.desc(), _COLUMNS.end_user).offset(KEPT_USERS)
    is_other = _COLUMNS.end_user.in_(others.scalar_subquery())
    removed = await session.execute(delete(END_USER_DAYS).where(of_day, is_other).returning(*_COLUMNS))
    merged = _summed(EndUserCall(day, "", row.key_id, tuple(row[3:])) for row in removed)
    connection = await session.connection()
    for rows in batches(merged, INSERTED_ROWS):
        await connection.exec_driver_sql(*_upsert(connection.dialect.name, rows))


def _summed(calls: Iterable[EndUserCall]) -> list[Row]:
    """Return rows of the sums of calls by day, end user and key, in one order, as those of the other totals."""
    found: dict[tuple[int, str, str], Amounts] = {}
    for start, end_user, key_id, amounts in calls:
        group = start_of(DAY_BUCKET, start), end_user, key_id
        known = found.get(group)
        found[group] = amounts if known is None else tuple(map(add, known, amounts))
    return [(*group, *amounts) for group, amounts in sorted(found.items())]


def _upsert(dialect: str, rows: Sequence[Row]) -> tuple[str, tuple[object, ...]]:
    insert, parameters = rows_of(dialect, END_USER_DAYS, ("start_micros", "end_user", "key_id", *SUMS), rows)
    return f"{insert} {_ON_CONFLICT}", parameters


class EndUserUsage:
    """Reader of the usage of end users."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @repeated
    async def sums(self, calls: EndUserFilter, offset: int, limit: int) -> list[EndUserSum]:
        """Return the usage of end users, the highest cost first. `offset`: users before the first one."""
        totals = [func.sum(_COLUMNS[name]) for name in SUMS]
        query = select(_COLUMNS.end_user, *totals).group_by(_COLUMNS.end_user)
        query = query.where(_COLUMNS.start_micros >= calls.since, _COLUMNS.start_micros < calls.until)
        if calls.key_ids:
            query = query.where(_COLUMNS.key_id.in_(calls.key_ids))
        if not calls.keys.is_everything:
            query = query.where(calls.keys.selects(_COLUMNS.key_id))
        query = query.order_by(totals[-1].desc(), totals[0].desc(), _COLUMNS.end_user).offset(offset).limit(limit)
        async with self._store.read() as session:
            return [EndUserSum(row[0], *map(int, row[1:])) for row in await session.execute(query)]
