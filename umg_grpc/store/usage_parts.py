"""Selections of past calls, and the parts of their time spans: whole days, hours and minutes are read from totals, the
rest at both ends of the span from records.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, TypeAlias

from sqlalchemy import BigInteger, ColumnElement, FromClause, String, func, literal_column, select

from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.store.key_selection import EVERY_KEY, KeySelection
from umg_grpc.store.table_definitions import ApiKey
from umg_grpc.store.usage_tables import MONTH_BUCKET, TOTAL_TABLES, EarlierUsageRow, Totals
from umg_grpc.store.usage_totals import BUCKET_MICROS, next_start, start_of
from umg_grpc.store.usage_totals_by_agent import TOTAL_SOURCES

SUM_BUCKETS = (*BUCKET_MICROS, MONTH_BUCKET)
"""Names of the time spans by which usage can be grouped, the shortest first; they begin in UTC."""
DIMENSION_COLUMNS: Mapping[str, str] = MappingProxyType(
    {"key": "key_id", "model": "model", "operation": "operation", "channel": "channel", "agent": "agent"}
)
"""Name of a dimension, by which usage can be grouped and selected -> column."""
FILTER_COLUMNS: Mapping[str, str] = MappingProxyType({**DIMENSION_COLUMNS, "end_user": "end_user", "reason": "reason"})
"""Name of a property, by which calls can be selected -> column."""
KEY_DIMENSIONS = ("project", "owner", "tag")
"""Dimensions that are properties of the key, found in the table of keys."""
ALL_DIMENSIONS = (*DIMENSION_COLUMNS, *KEY_DIMENSIONS)
KEY_COLUMN = DIMENSION_COLUMNS["key"]
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
    request_id_prefix: str = ""
    """Beginning of the request ids of the selected calls; "" for any id."""
    min_duration_micros: int = 0

    @property
    def columns(self) -> frozenset[str]:
        """Columns of calls that the selection needs, apart from the time and the outcome."""
        found = {FILTER_COLUMNS[name] for name, values in self.only.items() if values}
        return frozenset(found if self.keys.is_everything else {*found, KEY_COLUMN})


@dataclass(frozen=True)
class UsagePart:
    """Part of a time span, with the table from which the calls in this part are read."""

    table: FromClause
    since: int
    until: int
    """End of the part, exclusive. Both times are microseconds since 1970."""
    totals: Totals | None = None
    """The table, if it has totals; None for a table of records."""


def usable_totals(columns: Collection[str], bucket: str, among: Sequence[Totals] = TOTAL_TABLES) -> list[Totals]:
    """Return the smallest tables of totals for sums by these columns and time span, tables with long spans first.
    `among`: tables, the smaller ones first.
    """
    lengths = SUM_BUCKETS[: SUM_BUCKETS.index(bucket) + 1]
    found: dict[str, Totals] = {}
    for totals in among:
        if totals.bucket in lengths and set(columns) <= set(totals.columns):
            found.setdefault(totals.bucket, totals)
    return [found[length] for length in reversed(lengths) if length in found]


def divided(records: FromClause, tables: Sequence[Totals], since: int, until: int, now: int) -> Iterator[UsagePart]:
    """Yield the parts of a time span: the parts that these totals cover, and others, to be read from the records. The
    totals of a running bucket have no call after `now`, so that they cover the end of a span that ends now.
    """
    if since >= until:
        return
    if not tables:
        yield UsagePart(records, since, until)
        return
    [totals, *shorter] = tables
    begin = since if totals.kept is None else max(since, now - totals.kept // timedelta(microseconds=1))
    start = next_start(totals.bucket, begin)
    end = start_of(totals.bucket, until) if until < now else next_start(totals.bucket, until)
    if start >= end:
        yield from divided(records, shorter, since, until, now)
        return
    yield from divided(records, shorter, since, start, now)
    yield UsagePart(TOTAL_SOURCES.get(totals.table.name, totals.table), start, end, totals)
    yield from divided(records, shorter, end, until, now)


def selected_rows(calls: CallFilter, table: FromClause) -> list[ColumnElement[bool]]:
    """Return the conditions on the rows of a table of records or totals that select calls by their properties."""
    found = [] if calls.keys.is_everything else [calls.keys.selects(table.c[KEY_COLUMN])]
    return [*found, *(table.c[FILTER_COLUMNS[name]].in_(values) for name, values in calls.only.items() if values)]


def grouped_source(
    part: UsagePart, by: Sequence[str], calls: CallFilter, dialect: str
) -> tuple[FromClause, list[ColumnElement[Any]]]:
    """Return the source of the rows of a part, and the SQL expressions by which they are grouped for `by`: names of
    dimensions and of time spans.
    """
    if set(by).isdisjoint(KEY_DIMENSIONS):
        return part.table, [_column_group(part, name, dialect) for name in by]
    keys = _key_properties(calls)
    source = part.table.outerjoin(keys, keys.c.key_id == part.table.c[KEY_COLUMN])
    return source, [
        _key_group(keys, name, dialect) if name in KEY_DIMENSIONS else _column_group(part, name, dialect) for name in by
    ]


def _key_properties(calls: CallFilter) -> FromClause:
    """Return the properties of keys by which calls are grouped, each under the name of its dimension."""
    tag = ApiKey.tags[calls.tag].as_string()
    properties = zip(KEY_DIMENSIONS, (ApiKey.project_id, ApiKey.user_id, tag), strict=True)
    return select(ApiKey.key_id, *(column.label(name) for name, column in properties)).subquery("keys")


def _key_group(keys: FromClause, name: str, dialect: str) -> ColumnElement[str]:
    # a literal, as in `bucket_start`; ordered by code points, as the columns of usage are
    value = func.coalesce(keys.c[name], literal_column("''"), type_=String())
    return value if dialect == SQLITE_KIND else value.collate("C")


def _column_group(part: UsagePart, name: str, dialect: str) -> ColumnElement[Any]:
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
