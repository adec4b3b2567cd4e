"""Totals of usage: adds calls to all tables of totals, in the transaction that inserts their records."""

from collections.abc import Iterable, Mapping, Sequence
from operator import add
from types import MappingProxyType
from typing import TypeAlias

from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.store.inserted_rows import rows_of
from umg_grpc.store.usage_tables import DAY, HOUR, MINUTE, OF_KEY, SUMS, TOTALS, Totals

BUCKET_MICROS: Mapping[str, int] = MappingProxyType({MINUTE: 60 * 10**6, HOUR: 3600 * 10**6, DAY: 86_400 * 10**6})
"""Microseconds of each time span of constant length, by which usage can be grouped; spans begin in UTC."""
ADDED = ("requests", "failed", *SUMS)
"""Columns of totals that are sums."""

CallGroup: TypeAlias = tuple[int | str, ...]
"""Start of a call or a time span in microseconds since 1970, and the values of columns."""
Amounts: TypeAlias = tuple[int, ...]
"""Amounts of the columns `ADDED`."""


async def add_totals(session: AsyncSession, calls: Iterable[tuple[CallGroup, Amounts]]) -> None:
    """Add calls to all totals. The group of a call is its start with the values of the columns `OF_KEY`.

    Rows are written in one order, so that two transactions cannot wait for each other.
    """
    connection = await session.connection()
    by_minute = _summed(calls, MINUTE, OF_KEY)
    for totals in TOTALS:
        rows = [(*group, *amounts) for group, amounts in sorted(_summed(by_minute, totals.bucket, totals.columns))]
        if rows:
            await connection.exec_driver_sql(*_upsert(connection.dialect.name, totals, rows))


def _upsert(dialect: str, totals: Totals, rows: Sequence[Sequence[object]]) -> tuple[str, tuple[object, ...]]:
    """Return the statement that adds rows to a table of totals, and its parameters."""
    table, keys = totals.table.name, ("start_micros", *totals.columns)
    source, parameters = rows_of(dialect, table, (*keys, *ADDED), rows)
    sums = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in ADDED)
    names, conflict = ", ".join((*keys, *ADDED)), f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {sums}"
    return f"INSERT INTO {table} ({names}) {source} {conflict}", parameters


def _summed(
    calls: Iterable[tuple[CallGroup, Amounts]], bucket: str, columns: Sequence[str]
) -> list[tuple[CallGroup, Amounts]]:
    """Return the sums of the calls by time span and by columns, a part of `OF_KEY`."""
    micros, places = BUCKET_MICROS[bucket], [1 + OF_KEY.index(column) for column in columns]
    found: dict[CallGroup, Amounts] = {}
    for call, amounts in calls:
        start = int(call[0])
        group = (start - start % micros, *[call[place] for place in places])
        known = found.get(group)
        found[group] = amounts if known is None else tuple(map(add, known, amounts))
    return [*found.items()]
