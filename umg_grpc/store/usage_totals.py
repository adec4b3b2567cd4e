"""Totals of usage: statements that add calls to all tables of totals, in the transaction that inserts the records."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from operator import add
from types import MappingProxyType
from typing import TypeAlias

from umg_grpc.base.time_units import micros_of, time_of
from umg_grpc.store.insert_statements import rows_of
from umg_grpc.store.usage_tables import (
    DAY_BUCKET,
    FIVE_MINUTES_BUCKET,
    HOUR_BUCKET,
    MINUTE_BUCKET,
    OF_KEY_AND_AGENT,
    SUM_COLUMNS,
    TOTAL_TABLES,
    Totals,
)

MINUTE_MICROS = 60 * 10**6
BUCKET_MICROS: Mapping[str, int] = MappingProxyType(
    {
        MINUTE_BUCKET: MINUTE_MICROS,
        FIVE_MINUTES_BUCKET: 5 * MINUTE_MICROS,
        HOUR_BUCKET: 3600 * 10**6,
        DAY_BUCKET: 86_400 * 10**6,
    }
)
"""Microseconds of each time span of constant length, by which usage can be grouped; spans begin in UTC."""
MAX_MICROS = micros_of(datetime.max.replace(tzinfo=UTC))
ADDED_COLUMNS = ("requests", "failed", *SUM_COLUMNS, "cached")
"""Columns of totals that are sums."""

CallGroup: TypeAlias = tuple[int | str, ...]
"""Start of a call or a time span in microseconds since 1970, and the values of columns."""
Amounts: TypeAlias = tuple[int, ...]
"""Amounts of the columns `ADDED_COLUMNS`."""


def start_of(bucket: str, micros: int) -> int:
    """Return the start of the time span (`bucket`) that contains a time, both in microseconds since 1970."""
    if bucket in BUCKET_MICROS:
        return micros - micros % BUCKET_MICROS[bucket]
    time = time_of(min(micros, MAX_MICROS))
    return micros_of(time.replace(day=1, hour=0, minute=0, second=0, microsecond=0))


def next_start(bucket: str, micros: int) -> int:
    """Return the earliest start of a time span (`bucket`) at a time or after it, in microseconds since 1970."""
    start = start_of(bucket, micros)
    if start == micros:
        return start
    return start_of(bucket, start + BUCKET_MICROS.get(bucket, 31 * BUCKET_MICROS[DAY_BUCKET]))


def upserts_of(dialect: str, calls: Iterable[tuple[CallGroup, Amounts]]) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield statements with their parameters that add calls to all totals. The group of a call is its start time, or
    that of its minute, with the values of `OF_KEY_AND_AGENT`. The rows are in a fixed order, so that two transactions
    cannot wait for each other.
    """
    by_minute = _summed(calls, MINUTE_BUCKET, OF_KEY_AND_AGENT)
    of_agents = [each for each in by_minute if each[0][-1]]
    for totals in TOTAL_TABLES:
        rows = [
            (*group, requests, failed, *(amount or None for amount in sums))
            for group, (requests, failed, *sums) in sorted(
                _summed(of_agents if totals.has_agents else by_minute, totals.bucket, totals.columns)
            )
        ]
        if rows:
            insert, parameters = rows_of(dialect, totals.table, ("start_micros", *totals.columns, *ADDED_COLUMNS), rows)
            yield f"{insert} {_on_conflict(totals)}", parameters


@cache
def _on_conflict(totals: Totals) -> str:
    """Return the end of the statement that adds rows to a table of totals."""
    table = totals.table.name
    sums = ", ".join(
        f"{name} = COALESCE({table}.{name} + excluded.{name}, {table}.{name}, excluded.{name})"
        for name in ADDED_COLUMNS
    )
    return f"ON CONFLICT ({', '.join(('start_micros', *totals.columns))}) DO UPDATE SET {sums}"


def _summed(
    calls: Iterable[tuple[CallGroup, Amounts]], bucket: str, columns: Sequence[str]
) -> list[tuple[CallGroup, Amounts]]:
    """Return the sums of the calls by time span and by `columns`, which are some of `OF_KEY_AND_AGENT`."""
    places = [1 + OF_KEY_AND_AGENT.index(column) for column in columns]
    found: dict[CallGroup, Amounts] = {}
    for call, amounts in calls:
        group = (start_of(bucket, int(call[0])), *[call[place] for place in places])
        known = found.get(group)
        found[group] = amounts if known is None else tuple(map(add, known, amounts))
    return [*found.items()]
