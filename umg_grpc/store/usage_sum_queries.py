"""Sums of usage by time, key, model and other columns. Whole days, hours and minutes of a time span are read from
totals. The rest at both ends of the span is read from records.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import add
from types import MappingProxyType
from typing import Any, TypeAlias

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Select,
    String,
    case,
    cast,
    func,
    literal_column,
    select,
    tuple_,
)
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.base.time_units import micros_of, time_of
from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.store.database_time import Clock
from umg_grpc.store.key_selection import EVERY_KEY, KeySelection
from umg_grpc.store.table_definitions import ApiKey
from umg_grpc.store.usage_partitions import days_of_partitions
from umg_grpc.store.usage_tables import (
    DAY_BUCKET,
    MONTH_BUCKET,
    OF_CHANNEL,
    SUM_COLUMNS,
    TOTAL_TABLES,
    EarlierUsageRow,
    Totals,
    UsageRow,
)
from umg_grpc.store.usage_totals import BUCKET_MICROS, next_start, start_of
from umg_grpc.store.usage_totals_by_agent import TOTAL_SOURCES

SUM_BUCKETS = (*BUCKET_MICROS, MONTH_BUCKET)
"""Names of the time spans by which usage can be grouped, the shortest first; they begin in UTC."""
DIMENSION_COLUMNS: Mapping[str, str] = MappingProxyType(
    {"key": "key_id", "model": "model", "operation": "operation", "channel": "channel", "agent": "agent"}
)
"""Name of a dimension, by which usage can be grouped and selected -> column."""
FILTER_COLUMNS: Mapping[str, str] = MappingProxyType({**DIMENSION_COLUMNS, "end_user": "end_user"})
"""Name of a property, by which calls can be selected -> column."""
KEY_DIMENSIONS = ("project", "owner", "tag")
"""Dimensions that are properties of the key, found in the table of keys."""
ALL_DIMENSIONS = (*DIMENSION_COLUMNS, *KEY_DIMENSIONS)
_KEY_COLUMN = DIMENSION_COLUMNS["key"]
FOREVER_MICROS = 253_399_622_400 * 10**6
"""Start of the last month that a `datetime` can have, in microseconds since 1970. No call arrives later."""

WINDOW_GROWTH = 2
DAYS_SEARCHED = 30
"""Partitions of days that one search of a request id reads."""

Group: TypeAlias = tuple[int | str, ...]
"""Key of a group of calls: values of the columns in order; for a time span its start in microseconds since 1970."""


@dataclass(frozen=True)
class CallFilter:
    """Selection of calls by time, columns (key, model, channel and others) and failure; all criteria must match."""

    since: datetime
    """Earliest time of arrival of the selected calls, inclusive."""
    until: datetime | None = None
    only: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Name in `FILTER_COLUMNS` -> selected values; an empty collection selects all values."""
    failed: bool = False
    """Whether only failed calls are selected."""
    keys: KeySelection = EVERY_KEY
    """Keys whose calls are selected."""
    tag: str = ""
    """Name of the tag by which the dimension `tag` groups."""


@dataclass(frozen=True)
class UsageSum:
    """Totals of the calls of one group: number of calls, number of failed calls, and sums of their counts."""

    group: Group
    requests: int
    failed: int
    sums: Mapping[str, int]
    """Name in `SUM_COLUMNS` -> sum, for example `input_tokens`."""


@dataclass(frozen=True)
class UsageBegin:
    """Times at which the stored records and totals begin; None if there are none of a kind."""

    records: datetime | None
    totals: Mapping[str, datetime]
    """Time span -> start of the oldest totals by this span."""


@dataclass(frozen=True)
class _Part:
    """Part of a time span, with the table from which the calls in this part are read."""

    table: FromClause
    since: int
    until: int
    """End of the part, exclusive. Both times are microseconds since 1970."""
    totals: Totals | None = None
    """The table, if it has totals; None for a table of records."""


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
        UsageSum(group, requests, failed, dict(zip(SUM_COLUMNS, sums, strict=True)))
        for group, (requests, failed, *sums) in sorted(found.items())[:limit]
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
    if calls.failed:
        found.append(table.c.status != "OK")
    return [*found, *_selected(calls, table)]


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
) -> Iterator[list[_Part]]:
    """Return the parts of the selected time span, window by window. `now`: time in microseconds since 1970."""
    since = micros_of(calls.since)
    until = FOREVER_MICROS if calls.until is None else min(FOREVER_MICROS, micros_of(calls.until))
    bucket = by[0] if by and by[0] in SUM_BUCKETS else None
    if after and bucket is not None:
        since = max(since, int(after[0]))
    current, *earlier = await tables_of_records(session)
    filters = [name for name, values in calls.only.items() if values]
    needed = {FILTER_COLUMNS[name] for name in (*by, *filters) if name in FILTER_COLUMNS}
    if not calls.keys.is_everything or not set(by).isdisjoint(KEY_DIMENSIONS):
        needed.add(_KEY_COLUMN)
    usable = (
        [] if calls.failed else _usable_totals(needed, next((name for name in by if name in SUM_BUCKETS), MONTH_BUCKET))
    )

    def windows() -> Iterator[list[_Part]]:
        start, micros = since, until - since
        if bucket is not None and bucket in BUCKET_MICROS and limit is not None:
            micros = (limit + 1) * BUCKET_MICROS[bucket]  # one more: the last one of the previous page is read again
        elif bucket == MONTH_BUCKET and len(by) > 1 and limit is not None:
            micros = BUCKET_MICROS[DAY_BUCKET]  # to the end of the month, which may fill the page
        while start < until:
            end = until if bucket is None else min(until, next_start(bucket, start + micros))
            yield [*(_Part(table, start, end) for table in earlier), *_divided(current, usable, start, end, now)]
            start, micros = end, WINDOW_GROWTH * micros

    return windows()


def _usable_totals(columns: Collection[str], bucket: str) -> list[Totals]:
    """Return the smallest tables of totals for sums by these columns and time span, tables with long spans first."""
    lengths = SUM_BUCKETS[: SUM_BUCKETS.index(bucket) + 1]
    found: dict[str, Totals] = {}
    for totals in TOTAL_TABLES:
        if totals.bucket in lengths and set(columns) <= set(totals.columns):
            found.setdefault(totals.bucket, totals)
    return [found[length] for length in reversed(lengths) if length in found]


def _divided(records: FromClause, tables: Sequence[Totals], since: int, until: int, now: int) -> Iterator[_Part]:
    """Yield the parts of a time span: the parts that these totals cover, and others, to be read from the records."""
    if since >= until:
        return
    if not tables:
        yield _Part(records, since, until)
        return
    [totals, *shorter] = tables
    begin = since if totals.kept is None else max(since, now - totals.kept // timedelta(microseconds=1))
    start, end = next_start(totals.bucket, begin), start_of(totals.bucket, until)
    if start >= end:
        yield from _divided(records, shorter, since, until, now)
        return
    yield from _divided(records, shorter, since, start, now)
    yield _Part(TOTAL_SOURCES.get(totals.table.name, totals.table), start, end, totals)
    yield from _divided(records, shorter, end, until, now)


def _sums_of(part: _Part, by: Sequence[str], calls: CallFilter, after: Group, dialect: str) -> "Select[Any]":
    columns, source, keys = part.table.c, part.table, _keys(calls)
    if not set(by).isdisjoint(KEY_DIMENSIONS):
        source = part.table.outerjoin(keys, keys.c.key_id == columns[_KEY_COLUMN])
    groups = [
        _key_group(keys, name, dialect) if name in KEY_DIMENSIONS else _group_of(part, name, dialect) for name in by
    ]
    if part.totals is None:
        counts = [func.count(), func.sum(case((columns.status == "OK", 0), else_=1))]
    else:
        counts = [func.sum(columns.requests), func.sum(columns.failed)]
    sums = [*counts, *(func.sum(columns[name]) for name in SUM_COLUMNS)]
    # PostgreSQL's sums are decimal numbers, which the driver reads slowly
    query = select(*groups, *(cast(func.coalesce(each, 0), BigInteger) for each in sums)).select_from(source)
    query = query.where(columns.start_micros >= part.since, columns.start_micros < part.until)
    query = query.where(*_selected(calls, part.table))
    if after:
        query = query.where(tuple_(*groups) > tuple_(*after))
    if part.totals is not None and part.totals.has_agents:
        query = query.having(counts[0] > 0)  # no group of unknown agents that has no calls
    return query.group_by(*groups).order_by(*groups)


def _selected(calls: CallFilter, table: FromClause) -> list[ColumnElement[bool]]:
    found = [] if calls.keys.is_everything else [calls.keys.selects(table.c[_KEY_COLUMN])]
    return [*found, *(table.c[FILTER_COLUMNS[name]].in_(values) for name, values in calls.only.items() if values)]


def _keys(calls: CallFilter) -> FromClause:
    """Return the properties of keys by which calls are grouped, each under the name of its dimension."""
    tag = ApiKey.tags[calls.tag].as_string()
    properties = zip(KEY_DIMENSIONS, (ApiKey.project_id, ApiKey.user_id, tag), strict=True)
    return select(ApiKey.key_id, *(column.label(name) for name, column in properties)).subquery("keys")


def _key_group(keys: FromClause, name: str, dialect: str) -> ColumnElement[str]:
    # a literal, as in `bucket_start`; ordered by code points, as the columns of usage are
    value = func.coalesce(keys.c[name], literal_column("''"), type_=String())
    return value if dialect == SQLITE_KIND else value.collate("C")


def _group_of(part: _Part, name: str, dialect: str) -> ColumnElement[Any]:
    """Return the SQL expression by which calls are grouped for the dimension or time span `name`."""
    if name in DIMENSION_COLUMNS:
        column: ColumnElement[Any] = part.table.c[DIMENSION_COLUMNS[name]]
        # the earlier table has the order of the database's language
        return column if dialect == SQLITE_KIND or part.table is not EarlierUsageRow.__table__ else column.collate("C")
    if part.totals is not None and part.totals.bucket == name:
        return part.table.c.start_micros
    return bucket_start(name, dialect)


def bucket_start(bucket: str, dialect: str) -> ColumnElement[int]:
    """Return the SQL expression for the start of a call's time span (`bucket`, one of `SUM_BUCKETS`), in microseconds
    since 1970. Its numbers are literals: PostgreSQL does not recognize an expression with parameters as the one in
    GROUP BY.
    """
    if bucket in BUCKET_MICROS:
        return literal_column(f"start_micros - start_micros % {BUCKET_MICROS[bucket]}", BigInteger)
    return literal_column(_MONTH_START[dialect == SQLITE_KIND], BigInteger)


_MONTH_START = (
    "CAST(extract(epoch FROM date_trunc('month', to_timestamp(start_micros / 1000000) AT TIME ZONE 'UTC')) AS BIGINT)"
    " * 1000000",
    "CAST(strftime('%s', start_micros / 1000000, 'unixepoch', 'start of month') AS INTEGER) * 1000000",
)
"""SQL expressions for the start of the month in which a call arrived: for PostgreSQL and for SQLite."""
