"""Sums of usage by time, key, model and other columns. Whole days, hours and minutes of a time span are read from
totals. The rest at both ends of the span is read from records.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import add
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, FromClause, Select, case, cast, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.base.time_units import micros_of, time_of
from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.store.database_time import Clock
from umg_grpc.store.usage_partitions import days_of_partitions
from umg_grpc.store.usage_parts import (
    FILTER_COLUMNS,
    KEY_COLUMN,
    KEY_DIMENSIONS,
    SUM_BUCKETS,
    CallFilter,
    Group,
    UsagePart,
    divided,
    grouped_source,
    selected_rows,
    usable_totals,
)
from umg_grpc.store.usage_tables import (
    DAY_BUCKET,
    MONTH_BUCKET,
    OF_CHANNEL,
    SUM_COLUMNS,
    TOTAL_TABLES,
    EarlierUsageRow,
    UsageRow,
)
from umg_grpc.store.usage_totals import BUCKET_MICROS, next_start

FOREVER_MICROS = 253_399_622_400 * 10**6
"""Start of the last month that a `datetime` can have, in microseconds since 1970. No call arrives later."""

WINDOW_GROWTH = 2
DAYS_SEARCHED = 30
"""Partitions of days that one search of a request id reads."""


@dataclass(frozen=True)
class UsageSum:
    """Totals of the calls of one group: number of calls, number of failed calls, and sums of their counts."""

    group: Group
    requests: int
    failed: int
    sums: Mapping[str, int]
    """Name in `SUM_COLUMNS` -> sum, for example `input_tokens`."""
    cached: int = 0
    """Number of calls that the gateway's cache answered."""


@dataclass(frozen=True)
class UsageBegin:
    """Times at which the stored records and totals begin; None if there are none of a kind."""

    records: datetime | None
    totals: Mapping[str, datetime]
    """Time span -> start of the oldest totals by this span."""


HAS_EARLIER_RECORDS = f"SELECT EXISTS (SELECT 1 FROM {EarlierUsageRow.__tablename__})"  # noqa: S608  our own name


async def read_sums(
    session: AsyncSession, by: Sequence[str], calls: CallFilter, clock: Clock, *, after: Group, limit: int | None
) -> list[UsageSum]:
    """Return the sums of the selected calls by group, in the order of the groups' keys, in one snapshot. `by`: names of
    `ALL_DIMENSIONS` and at most one time span of `SUM_BUCKETS`. `after`: last group of the previous page, or empty.
    """
    dialect = (await session.connection()).dialect.name
    found: dict[Group, tuple[int, ...]] = {}
    for parts in await _windows(session, by, calls, int(clock.now() * 1e6), after, limit):
        for part in parts:
            query = _sums_of(part, by, calls, after, dialect).limit(limit)
            for row in await session.execute(query):
                group, amounts = tuple(row[: len(by)]), tuple(row[len(by) :])
                if amounts[0]:  # a sum without columns has a row also without calls
                    known = found.get(group)
                    found[group] = amounts if known is None else tuple(map(add, known, amounts))
        if limit is not None and len(found) >= limit:
            break
    # Each part has the first `limit` of its groups, so that the first ones of all parts are complete.
    return [
        UsageSum(group, requests, failed, dict(zip(SUM_COLUMNS, sums, strict=True)), cached)
        for group, (requests, failed, *sums, cached) in sorted(found.items())[:limit]
    ]


async def begin_of_usage(session: AsyncSession) -> UsageBegin:
    """Return the times at which the stored usage begins."""
    oldest = [await _oldest(session, table) for table in await tables_of_records(session)]
    totals = {each.bucket: await _oldest(session, each.table) for each in TOTAL_TABLES if each.columns == OF_CHANNEL}
    return UsageBegin(
        min((time for time in oldest if time is not None), default=None),
        {bucket: time for bucket, time in totals.items() if time is not None},
    )


def conditions_of(calls: CallFilter, table: FromClause) -> list[ColumnElement[bool]]:
    """Return the conditions on the rows of a table of records that select calls."""
    found = [table.c.start_micros >= micros_of(calls.since)]
    if calls.until is not None:
        found.append(table.c.start_micros < micros_of(calls.until))
    return [*found, *properties_of(calls, table)]


def properties_of(calls: CallFilter, table: FromClause) -> list[ColumnElement[bool]]:
    """Return the conditions on the rows of a table of records that select calls, without those of time."""
    found = list[ColumnElement[bool]]()
    if calls.failed:
        found.append(table.c.status != "OK")
    if calls.min_duration_micros:
        found.append(table.c.duration_micros >= calls.min_duration_micros)
    if calls.request_id_prefix:
        found.append(begins_with(table.c.request_id, calls.request_id_prefix))
    return [*found, *selected_rows(calls, table)]


def begins_with(column: ColumnElement[str], prefix: str) -> ColumnElement[bool]:
    """Return the condition of texts with a beginning, which an index can find."""
    last = ord(prefix[-1]) + 1
    return (column >= prefix) & (column < prefix[:-1] + chr(0xE000 if last == 0xD800 else min(last, 0x10FFFF)))


async def tables_of_records(session: AsyncSession) -> list[FromClause]:
    """Return the tables that have records: the current one, and that of earlier versions while it has rows."""
    current, earlier = UsageRow.__table__, EarlierUsageRow.__table__
    connection = await session.connection()
    has_earlier = (await connection.exec_driver_sql(HAS_EARLIER_RECORDS)).scalar()
    return [current, earlier] if has_earlier else [current]


async def spans_of_records(session: AsyncSession) -> list[tuple[int, int]]:
    """Return time spans that together cover all time, the newest first, in microseconds since 1970. On PostgreSQL, each
    span covers a few partitions, since a query locks all partitions that it may read.
    """
    days = await _days(session)
    bounds = [day * BUCKET_MICROS[DAY_BUCKET] for day in days[::-DAYS_SEARCHED] if day > days[0]]
    return [*zip([*bounds, 0], [FOREVER_MICROS, *bounds], strict=True)]


async def _days(session: AsyncSession) -> list[int]:
    """Return the days of the partitions, as numbers of days since 1970, in ascending order; empty without any."""
    is_partitioned = (await session.connection()).dialect.name != SQLITE_KIND
    return await days_of_partitions(session) if is_partitioned else []


async def _oldest(session: AsyncSession, table: FromClause) -> datetime | None:
    oldest = select(table.c.start_micros).order_by(table.c.start_micros).limit(1)
    if table is UsageRow.__table__:
        for day in await _days(session):  # one by one: a query of all would lock them all
            start = day * BUCKET_MICROS[DAY_BUCKET]
            of_day = oldest.where(
                table.c.start_micros >= start, table.c.start_micros < start + BUCKET_MICROS[DAY_BUCKET]
            )
            if (micros := await session.scalar(of_day)) is not None:
                return time_of(micros)
    micros = await session.scalar(oldest)
    return None if micros is None else time_of(micros)


async def _windows(
    session: AsyncSession, by: Sequence[str], calls: CallFilter, now: int, after: Group, limit: int | None
) -> Iterator[list[UsagePart]]:
    """Return the parts of the selected time span, window by window. `now`: time in microseconds since 1970."""
    since = micros_of(calls.since)
    until = FOREVER_MICROS if calls.until is None else min(FOREVER_MICROS, micros_of(calls.until))
    bucket = by[0] if by and by[0] in SUM_BUCKETS else None
    if after and bucket is not None:
        since = max(since, int(after[0]))
    current, *earlier = await tables_of_records(session)
    needed = {*calls.columns, *(FILTER_COLUMNS[name] for name in by if name in FILTER_COLUMNS)}
    if not set(by).isdisjoint(KEY_DIMENSIONS):
        needed.add(KEY_COLUMN)
    usable = (
        [] if calls.failed else usable_totals(needed, next((name for name in by if name in SUM_BUCKETS), MONTH_BUCKET))
    )

    def windows() -> Iterator[list[UsagePart]]:
        start, micros = since, until - since
        if bucket is not None and bucket in BUCKET_MICROS and limit is not None:
            micros = (limit + 1) * BUCKET_MICROS[bucket]  # one more: the last one of the previous page is read again
        elif bucket == MONTH_BUCKET and len(by) > 1 and limit is not None:
            micros = BUCKET_MICROS[DAY_BUCKET]  # to the end of the month, which may fill the page
        while start < until:
            end = until if bucket is None else min(until, next_start(bucket, start + micros))
            yield [*(UsagePart(table, start, end) for table in earlier), *divided(current, usable, start, end, now)]
            start, micros = end, WINDOW_GROWTH * micros

    return windows()


def _sums_of(part: UsagePart, by: Sequence[str], calls: CallFilter, after: Group, dialect: str) -> "Select[Any]":
    columns = part.table.c
    source, groups = grouped_source(part, by, calls, dialect)
    if part.totals is None:
        counts = [func.count(), func.sum(case((columns.status == "OK", 0), else_=1))]
        cached = func.sum(case((columns.cached, 1), else_=0))
    else:
        counts, cached = [func.sum(columns.requests), func.sum(columns.failed)], func.sum(columns.cached)
    sums = [*counts, *(func.sum(columns[name]) for name in SUM_COLUMNS), cached]
    # PostgreSQL's sums are decimal numbers, which the driver reads slowly
    query = select(*groups, *(cast(func.coalesce(each, 0), BigInteger) for each in sums)).select_from(source)
    query = query.where(columns.start_micros >= part.since, columns.start_micros < part.until)
    query = query.where(*selected_rows(calls, part.table))
    if after:
        query = query.where(tuple_(*groups) > tuple_(*after))
    if part.totals is not None and part.totals.has_agents:
        query = query.having(counts[0] > 0)  # no group of unknown agents that has no calls
    return query.group_by(*groups).order_by(*groups)
