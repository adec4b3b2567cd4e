"""Pages of usage records in the order of their arrival. A few calls among many are found without reading the others: by
an index of the failed calls, the end users, the request ids or the keys, or in the hours whose totals have them.
"""

from collections.abc import AsyncGenerator
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, Select, case, func, select, text, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.base.time_units import micros_of
from umg_grpc.store.call_count_tables import DURATION_TABLES, FIRST_BYTE
from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.store.duration_steps import step_of
from umg_grpc.store.usage_parts import KEY_COLUMN, CallFilter, selected_rows
from umg_grpc.store.usage_sum_queries import FOREVER_MICROS, begins_with, properties_of
from umg_grpc.store.usage_tables import (
    DAY_BUCKET,
    HAS_END_USER,
    HAS_FAILED,
    HOUR_BUCKET,
    OF_CHANNEL,
    OF_KEY,
    TOTAL_TABLES,
    UsageRow,
)
from umg_grpc.store.usage_totals import BUCKET_MICROS, start_of

Position: TypeAlias = tuple[int, str]
"""Position of a record in the order of the arrivals: its start in microseconds, and its id."""

HOUR_MICROS = BUCKET_MICROS[HOUR_BUCKET]
FIRST_HOURS, WINDOW_GROWTH = 48, 8
"""Hours that are searched first, and how many times as many the next search has."""
MAX_KEY_CALLS = 50_000
"""Most calls of keys among which slow ones are searched by the index of the keys; among more, in the hours that have
slow calls.
"""
MAX_IDS = 200_000
"""Records with a beginning of a request id that are read by the index of these ids; of more, those of a page are soon
found by time.
"""

_ROWS = UsageRow.__table__
_START, _ID = _ROWS.c.start_micros, _ROWS.c.record_id
_HOURS = [each for each in TOTAL_TABLES if each.bucket == HOUR_BUCKET]
_ALL_HOURS, _ALL_DAYS = (
    next(each.table for each in TOTAL_TABLES if (each.bucket, each.columns) == (bucket, OF_CHANNEL))
    for bucket in (HOUR_BUCKET, DAY_BUCKET)
)
_KEY_DAYS = next(each.table for each in TOTAL_TABLES if (each.bucket, each.columns) == (DAY_BUCKET, OF_KEY))
_DURATION_HOURS, _DURATION_DAYS = (
    next(each.table for each in DURATION_TABLES if (each.bucket, each.columns) == (bucket, ()))
    for bucket in (HOUR_BUCKET, DAY_BUCKET)
)
KEY_DIMENSION = "key"
_INDEXED = ("model", "channel")
"""Dimensions and columns by which the totals of all hours have an index."""


class _Search(NamedTuple):
    """Search of a page: its calls, the last record of the page before, and the number of the records."""

    calls: CallFilter
    after: Position | None
    size: int
    since: int
    until: int
    is_sqlite: bool


async def positions_of_page(
    session: AsyncSession, calls: CallFilter, after: Position | None, size: int
) -> list[Position]:
    """Return the positions of up to `size` selected records of the current table, newest first. `after`: position of
    the last record of the previous page, or None.
    """
    until = FOREVER_MICROS if calls.until is None else min(FOREVER_MICROS, micros_of(calls.until))
    if after is not None:
        until = min(until, after[0] + 1)
    is_sqlite = (await session.connection()).dialect.name == SQLITE_KIND
    search = _Search(calls, after, size, max(0, micros_of(calls.since)), until, is_sqlite)
    found = list[Position]()
    async for query in _queries(session, search):
        rows = await session.execute(query.limit(size - len(found)))
        found += [(row[0], row[1]) for row in rows]
        if len(found) >= size:
            break
    return found


async def _queries(session: AsyncSession, search: _Search) -> AsyncGenerator["Select[Any]"]:
    """Yield queries of positions, each of older calls than those before."""
    calls = search.calls
    query = _selection(search)
    if calls.request_id_prefix:
        ids = select(_START).where(begins_with(_ROWS.c.request_id, calls.request_id_prefix)).limit(MAX_IDS + 1)
        number = await session.scalar(select(func.count()).select_from(ids.subquery())) or 0
        yield query if number > MAX_IDS else _sorted(query)
    elif calls.only.get("end_user"):
        yield query.where(text(HAS_END_USER))
    elif calls.failed or calls.only.get("reason"):
        # this column is in the index of failed calls alone, which SQLite selects for it
        yield query.add_columns(_ROWS.c.failure_kind).where(text(HAS_FAILED))
    elif not calls.columns and not calls.min_duration_micros:
        yield query
    elif calls.min_duration_micros and KEY_COLUMN in calls.columns and await _are_few_by_keys(session, search):
        yield _sorted(query)
    else:
        for low, high in _windows(search):
            yield _in_hours(search, low, high)
        # and the calls of hours of which there are no totals
        oldest = await session.scalar(select(func.min(_ALL_HOURS.c.start_micros)))
        if oldest is None or oldest > search.since:
            yield _selection(search._replace(until=min(search.until, oldest or search.until)))


def _sorted(query: "Select[Any]") -> "Select[Any]":
    """Return the query in the order of an expression, by which no index of the time is read."""
    return query.order_by(None).order_by((_START + 0).desc(), _ID.desc())


async def _are_few_by_keys(session: AsyncSession, search: _Search) -> bool:
    """Return whether the selected keys have so few calls in the time of a search that all of these can be read."""
    columns, calls = _KEY_DAYS.c, search.calls
    of_keys = CallFilter(calls.since, only={KEY_DIMENSION: calls.only.get(KEY_DIMENSION, ())}, keys=calls.keys)
    number = select(func.sum(columns.requests)).where(*selected_rows(of_keys, _KEY_DAYS))
    first = start_of(DAY_BUCKET, search.since)
    counted = await session.scalar(number.where(columns.start_micros >= first, columns.start_micros < search.until))
    return int(counted or 0) <= MAX_KEY_CALLS


def _windows(search: _Search) -> list[tuple[int, int]]:
    """Return spans of whole hours that cover the time of a search, the newest and shortest first."""
    low, end = start_of(HOUR_BUCKET, search.since), search.until
    found, hours = list[tuple[int, int]](), FIRST_HOURS
    while end > low:
        # at most three: each is a query
        begin = low if len(found) == 2 else max(low, start_of(HOUR_BUCKET, end - 1) - hours * HOUR_MICROS)
        found.append((begin, end))
        end, hours = begin, hours * WINDOW_GROWTH
    return found


def _selection(search: _Search, start: ColumnElement[int] = _START) -> "Select[Any]":
    """Return the query of the positions of selected records, newest first. `start`: their time in the conditions."""
    query = select(_START, _ID).where(*properties_of(search.calls, _ROWS))
    query = query.where(start >= search.since, start < search.until)
    if search.after is not None:
        query = query.where(tuple_(start, _ID) < tuple_(*search.after))
    return query.order_by(_START.desc(), _ID.desc())


def _in_hours(search: _Search, low: int, high: int) -> "Select[Any]":
    """Return the query of the positions of records in a span of time that reads those hours alone which have selected
    calls, and no more of them than the page needs.
    """
    calls, columns = search.calls, search.calls.columns
    table = next(each.table for each in _HOURS if columns <= {*each.columns})
    hour, number = table.c.start_micros, func.sum(table.c.requests)
    counted = select(hour.label("hour"), number.label("calls")).where(hour >= low, hour < high)
    counted = counted.where(*selected_rows(calls, table)).group_by(hour).having(number > 0)
    if table is not _ALL_HOURS and not columns.isdisjoint(_INDEXED):  # few hours have a rare model of any key
        others = CallFilter(calls.since, only={name: calls.only.get(name, ()) for name in _INDEXED})
        known = select(_ALL_HOURS.c.start_micros).where(*selected_rows(others, _ALL_HOURS))
        counted = counted.where(
            hour.in_(known.where(_ALL_HOURS.c.start_micros >= low, _ALL_HOURS.c.start_micros < high))
        )
    if calls.min_duration_micros:  # these hours may have none of them that is selected: all are read
        slow = _slow_hours(calls.min_duration_micros, low, high)
        hours = (counted.where(hour.in_(slow)) if columns else slow).subquery("hours")
    else:
        newest = counted.order_by(hour.desc()).limit(search.size + 1).subquery("newest")
        # those of the first hour may all be on the page before
        before = case((newest.c.hour < start_of(HOUR_BUCKET, high - 1), newest.c.calls), else_=0)
        sums = select(newest.c.hour, (func.sum(before).over(order_by=newest.c.hour.desc()) - before).label("before"))
        numbered = sums.subquery("numbered")
        hours = select(numbered.c.hour).where(numbered.c.before < search.size).subquery("hours")
    is_inside: ColumnElement[bool] = (hours.c.hour + HOUR_MICROS > _START) & (hours.c.hour <= _START)
    # by the span, SQLite would read all records before the hours, and PostgreSQL leaves out partitions
    start = _START + 0 if search.is_sqlite else _START
    query = _selection(search, start).select_from(hours.join(_ROWS, is_inside))
    return query.where(start >= low, start < high)


def _slow_hours(min_micros: int, low: int, high: int) -> "Select[Any]":
    """Return the query of the hours with calls that took so long, and of those of days with calls whose durations are
    not counted, as those of earlier versions.
    """
    columns, hour = _DURATION_HOURS.c, _ALL_HOURS.c.start_micros
    slow = select(columns.start_micros.label("hour")).where(columns.start_micros >= low, columns.start_micros < high)
    slow = slow.where(columns.measure != FIRST_BYTE, columns.step >= step_of(min_micros))
    day, durations, first = _ALL_DAYS.c.start_micros, _DURATION_DAYS.c, start_of(DAY_BUCKET, low)
    calls = select(day.label("day"), _ALL_DAYS.c.requests.label("number")).where(day >= first, day < high)
    counted = select(durations.start_micros, -durations.calls).where(
        durations.measure != FIRST_BYTE, durations.start_micros >= first, durations.start_micros < high
    )
    missing = calls.union_all(counted).subquery("missing")
    days = select(missing.c.day).group_by(missing.c.day).having(func.sum(missing.c.number) > 0)
    incomplete = days.subquery("incomplete")
    of_day = (hour >= incomplete.c.day) & (hour < incomplete.c.day + BUCKET_MICROS[DAY_BUCKET])
    others = select(hour.label("hour")).select_from(incomplete.join(_ALL_HOURS, of_day)).where(hour >= low, hour < high)
    every_hour = slow.union(others).subquery("slow_hours")
    return select(every_hour.c.hour)
