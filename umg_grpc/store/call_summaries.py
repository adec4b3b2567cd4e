"""Summaries of calls: sums, durations, a series by time, groups and failures of a span of time, and of the span before
it. Each is one query, whose parts read totals, and records at both ends of the spans.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Select,
    SmallInteger,
    case,
    cast,
    func,
    literal,
    literal_column,
    null,
    select,
    union_all,
)
from sqlalchemy import column as column_named
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.base.time_units import micros_of
from umg_grpc.base.token_units import INPUT_COLUMNS, OUTPUT_COLUMNS
from umg_grpc.store.call_count_tables import DURATION_TABLES, FAILED_CALL, FAILURE_HOURS, FIRST_BYTE, WHOLE_CALL
from umg_grpc.store.database import Store, repeated
from umg_grpc.store.duration_steps import step_sql
from umg_grpc.store.key_selection import with_known_keys
from umg_grpc.store.usage_parts import (
    FILTER_COLUMNS,
    KEY_COLUMN,
    KEY_DIMENSIONS,
    CallFilter,
    UsagePart,
    bucket_start,
    divided,
    grouped_source,
    selected_rows,
    usable_totals,
)
from umg_grpc.store.usage_sum_queries import tables_of_records
from umg_grpc.store.usage_tables import HOUR_BUCKET, MONTH_BUCKET, NAME_TYPE, TOTAL_TABLES, Totals

MAX_GROUPS = 8
_TOKEN_COLUMNS = (*INPUT_COLUMNS, *OUTPUT_COLUMNS)
_CURRENT, _PREVIOUS = 0, 1
MERGED_ROWS = 2000
"""Rows of durations that are added before calls may go on."""

Steps: TypeAlias = Counter[int]
"""Step of a duration -> number of calls."""
NO_STEPS: Mapping[int, int] = Counter()


class CallSums(NamedTuple):
    """Sums of calls."""

    requests: int = 0
    failed: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    micro_credits: int = 0

    def plus(self, other: "CallSums") -> "CallSums":
        """Return the sums of the calls of both."""
        return CallSums(*map(add, self, other))


class CallFailure(NamedTuple):
    """Reason, channel and kind of failed calls."""

    reason: str
    channel: str
    kind: str


@dataclass(frozen=True)
class CountedDurations:
    """Numbers of calls by duration: to the first byte, and to their ends."""

    first_byte: Steps
    whole_call: Steps


@dataclass(frozen=True)
class SummaryRequest:
    """Description of a summary."""

    calls: CallFilter
    """With both times."""
    bucket: str
    """Time span of the series, one of `SUM_BUCKETS`."""
    dimension: str
    """Dimension of the groups, one of `ALL_DIMENSIONS`."""
    now: int
    """Time of the request in microseconds since 1970."""


@dataclass(frozen=True)
class CallSummary:
    """Summary of calls in a span of time, and in the span of the same length before it."""

    current: Mapping[str, CallSums]
    """Group -> sums in the span."""
    previous: Mapping[str, CallSums]
    top: Sequence[str]
    """Groups with the highest cost in the span."""
    series: Mapping[tuple[int, str | None], CallSums]
    """Start of a bucket, and one of the top groups or None for the others -> requests, failed calls and cost."""
    durations: Mapping[int, CountedDurations]
    """Start of a bucket -> durations in the span."""
    previous_durations: CountedDurations
    failures: Mapping[CallFailure, tuple[int, int]]
    """Number of failed calls in the span, and in the one before."""


class CallSummaries:
    """Reader of summaries."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @repeated
    async def read(self, request: SummaryRequest) -> CallSummary:
        """Return a summary, by five queries."""
        async with self._store.snapshot() as session:
            tables = await tables_of_records(session)
            keys = await with_known_keys(session, request.calls.keys)
            request = replace(request, calls=replace(request.calls, keys=keys))
            dialect = (await session.connection()).dialect.name
            return await _Reader(session, request, tables, dialect).read()


class _Reader:
    """Reader of one summary in one snapshot."""

    def __init__(
        self, session: AsyncSession, request: SummaryRequest, tables: Sequence[FromClause], dialect: str
    ) -> None:
        self._session, self._request, self._tables, self._dialect = session, request, tables, dialect
        since, until = micros_of(request.calls.since), micros_of(request.calls.until or request.calls.since)
        self._spans = ((_CURRENT, since, until), (_PREVIOUS, max(0, 2 * since - until), since))

    async def read(self) -> CallSummary:
        groups: tuple[dict[str, CallSums], dict[str, CallSums]] = {}, {}
        for period, group, *counts in await self._session.execute(self._sums_by_group()):
            if counts[0]:
                groups[period][group] = _sums_of(counts)
        top = sorted(groups[_CURRENT], key=lambda name: (*_rank(groups[_CURRENT][name]), name))[:MAX_GROUPS]
        series = {
            (start, group): CallSums(requests, failed, micro_credits=cost)
            for start, group, requests, failed, cost in await self._session.execute(self._series(top))
        }
        by_bucket, previous = await self._durations()
        failures = defaultdict[CallFailure, list[int]](lambda: [0, 0])
        for period, reason, channel, kind, calls in await self._session.execute(self._failures()):
            failures[CallFailure(reason, channel, kind)][period] += calls
        found = {failure: (counts[_CURRENT], counts[_PREVIOUS]) for failure, counts in failures.items()}
        return CallSummary(*groups, top, series, by_bucket, previous, found)

    def _parts(
        self, bucket: str, columns: Iterable[str], since: int, until: int, among: Sequence[Totals]
    ) -> list[UsagePart]:
        current, *earlier = self._tables
        usable = usable_totals([*columns], bucket, among)
        parts = divided(current, usable, since, until, self._request.now)
        found = [*(UsagePart(table, since, until) for table in earlier if since < until), *parts]
        return found or [UsagePart(current, since, until)]  # a query needs one, also for a span without any time

    def _group_columns(self) -> set[str]:
        dimension = self._request.dimension
        return {*self._request.calls.columns, KEY_COLUMN if dimension in KEY_DIMENSIONS else FILTER_COLUMNS[dimension]}

    def _of_part(self, part: UsagePart, query: "Select[Any]") -> "Select[Any]":
        start = part.table.c.start_micros
        return query.where(start >= part.since, start < part.until, *selected_rows(self._request.calls, part.table))

    def _sums_by_group(self) -> "Select[Any]":
        """Return the query of the sums of both spans by group."""
        rows = list[Select[Any]]()
        for period, since, until in self._spans:
            for part in self._parts(MONTH_BUCKET, self._group_columns(), since, until, TOTAL_TABLES):
                source, [group] = grouped_source(part, [self._request.dimension], self._request.calls, self._dialect)
                columns = part.table.c
                tokens = (columns[name].label(name) for name in _TOKEN_COLUMNS)
                counts = (*_counts(part), *tokens, columns.micro_credits.label("micro_credits"))
                query = select(literal_column(str(period)).label("period"), group.label("name"), *counts)
                rows.append(self._of_part(part, query.select_from(source)))
        sums = (_sum(column_named(name)) for name in ("requests", "failed", "cached", *_TOKEN_COLUMNS, "micro_credits"))
        return _every(rows, "period", "name", *sums).group_by("period", "name")

    def _series(self, top: Sequence[str]) -> "Select[Any]":
        """Return the query of the calls and costs of the span by bucket and by the groups `top`, None for others."""
        bucket, (_, since, until) = self._request.bucket, self._spans[_CURRENT]
        rows = list[Select[Any]]()
        for part in self._parts(bucket, self._group_columns(), since, until, TOTAL_TABLES):
            source, [start, group] = grouped_source(
                part, [bucket, self._request.dimension], self._request.calls, self._dialect
            )
            place = case((group.in_(top), group), else_=cast(null(), NAME_TYPE)).label("name")
            requests, failed, _ = _counts(part)
            query = select(start.label("start"), place, requests, failed, part.table.c.micro_credits)
            rows.append(self._of_part(part, query.select_from(source)))
        sums = (_sum(column_named(name)) for name in ("requests", "failed", "micro_credits"))
        return _every(rows, "start", "name", *sums).group_by("start", "name")

    async def _durations(self) -> tuple[Mapping[int, CountedDurations], CountedDurations]:
        found = defaultdict[tuple[int | None, int], Steps](Counter)
        rows = (await self._session.execute(self._steps())).all()
        for number, (start, measure, step, calls) in enumerate(rows):
            if number % MERGED_ROWS == MERGED_ROWS - 1:
                await asyncio.sleep(0)
            found[start, measure][step] += calls
        starts = {start for start, _ in found if start is not None}
        before, *durations = (
            CountedDurations(found[start, FIRST_BYTE], found[start, WHOLE_CALL]) for start in (None, *starts)
        )
        return dict(zip(starts, durations, strict=True)), before

    def _steps(self) -> "Select[Any]":
        """Return the query of the numbers of successful calls by bucket, measure and step. The span before has one
        bucket, None.
        """
        rows, bucket = list[Select[Any]](), self._request.bucket
        for period, since, until in self._spans:
            length = bucket if period == _CURRENT else MONTH_BUCKET
            for part in self._parts(length, self._request.calls.columns, since, until, DURATION_TABLES):
                start: ColumnElement[int] | None = bucket_start(bucket, self._dialect)
                if period == _PREVIOUS:
                    start = None
                elif part.totals is not None and part.totals.bucket == bucket:
                    start = part.table.c.start_micros
                rows += [self._of_part(part, query) for query in _steps_of(part, start)]
        return _every(rows, "start", "measure", "step", "calls")

    def _failures(self) -> "Select[Any]":
        """Return the query of the numbers of failed calls of both spans."""
        rows = list[Select[Any]]()
        for period, since, until in self._spans:
            for part in self._parts(HOUR_BUCKET, self._request.calls.columns, since, until, (FAILURE_HOURS,)):
                columns = part.table.c
                group = (
                    columns.reason.label("reason"),
                    columns.channel.label("channel"),
                    columns.failure_kind.label("kind"),
                )
                calls = func.count() if part.totals is None else _sum(columns.calls)
                query = select(literal_column(str(period)).label("period"), *group, calls.label("calls"))
                if part.totals is None:
                    query = query.where(literal_column("status <> 'OK'"))
                rows.append(self._of_part(part, query).group_by(*group))
        return _every(rows, "period", "reason", "channel", "kind", "calls")


def _every(rows: "Sequence[Select[Any]]", *columns: str | ColumnElement[int]) -> "Select[Any]":
    """Return a query of the rows of all these queries. Columns are named: those of a union are derived one by one from
    those of its queries, which takes longer than the database does.
    """
    named: list[ColumnElement[Any]] = [column_named(each) if isinstance(each, str) else each for each in columns]
    return select(*named).select_from(union_all(*rows).subquery("every"))


def _steps_of(part: UsagePart, start: ColumnElement[int] | None) -> "list[Select[Any]]":
    """Return the queries of the numbers of successful calls of a part by `start`, measure and step. `start`: of their
    buckets, None for one bucket.
    """
    columns, by_start = part.table.c, [] if start is None else [start]
    place = (cast(null(), BigInteger) if start is None else start).label("start")
    if part.totals is not None:
        # in the order of the table's key, so that nothing is sorted
        steps = columns.measure.label("measure"), columns.step.label("step")
        query = select(place, *steps, _sum(columns.calls).label("calls")).where(columns.measure != FAILED_CALL)
        return [query.group_by(*by_start, columns.measure, columns.step)]
    queries = list[Select[Any]]()
    for measure, column in ((FIRST_BYTE, columns.first_byte_micros), (WHOLE_CALL, columns.duration_micros)):
        step = literal_column(step_sql(column.name), BigInteger)
        number = literal_column(str(measure), SmallInteger).label("measure")
        query = select(place, number, step.label("step"), func.count().label("calls"))
        queries.append(query.where(columns.status == "OK", column.is_not(None)).group_by(*by_start, step))
    return queries


def _counts(part: UsagePart) -> Sequence[ColumnElement[int]]:
    """Return the expressions of the numbers of all, failed and cached calls in the rows of a part."""
    columns = part.table.c
    if part.totals is not None:
        found: Sequence[ColumnElement[Any]] = (columns.requests, columns.failed, columns.cached)
    else:
        found = (literal(1), case((columns.status == "OK", 0), else_=1), case((columns.cached, 1), else_=0))
    return [column.label(name) for column, name in zip(found, ("requests", "failed", "cached"), strict=True)]


def _sum(column: ColumnElement[int]) -> ColumnElement[int]:
    # PostgreSQL's sums are decimal numbers, which the driver reads slowly
    return cast(func.coalesce(func.sum(column), 0), BigInteger)


def _sums_of(counts: Sequence[int]) -> CallSums:
    requests, failed, cached, *tokens, cost = counts
    by_name = dict(zip(_TOKEN_COLUMNS, tokens, strict=True))
    inputs, outputs = (sum(by_name[name] for name in names) for names in (INPUT_COLUMNS, OUTPUT_COLUMNS))
    return CallSums(requests, failed, cached, inputs, outputs, by_name["cache_read_tokens"], cost)


def _rank(sums: CallSums) -> tuple[int, int]:
    return -sums.micro_credits, -sums.requests
