"""Implementation of `umg usage`: prints calls, tokens and cost by time, key, model, channel or agent."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from umg_grpc.base.micro_credits import credits_text
from umg_grpc.base.token_units import INPUT_COLUMNS, OUTPUT_COLUMNS
from umg_grpc.cli.admin_client import AdminClient, pages
from umg_grpc.cli.admin_connection import opened
from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.cli.key_command_actions import all_keys
from umg_grpc.cli.text_tables import Column, Form, bars, print_objects, print_table
from umg_grpc.knowledge.price_calculation import REQUEST_UNIT
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.v1 import pb
from umg_grpc.wire.call_selection import CallSelection
from umg_grpc.wire.protobuf_json import enum_names

PAGE_SIZE = 10_000
KEY_DIMENSION = "key"
TIME_BUCKETS: Mapping[str, str] = MappingProxyType(
    {"minute": "%Y-%m-%dT%H:%MZ", "hour": "%Y-%m-%dT%H:00Z", "day": "%Y-%m-%d", "month": "%Y-%m"}
)
MONTH_BUCKET = "month"
BUCKET_STEPS: Mapping[str, timedelta] = MappingProxyType(
    {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
)
MAX_GAPS = 1000
_BUCKET_VALUES = {name: value for value, name in enum_names(pb.UsageBucket.DESCRIPTOR).items()}
_DIMENSION_VALUES = {name: value for value, name in enum_names(pb.UsageDimension.DESCRIPTOR).items()}
DIMENSION_NAMES = (*TIME_BUCKETS, *_DIMENSION_VALUES)
OPERATION_NAMES = enum_names(pb.ModelOperation.DESCRIPTOR)
UNIT_NAMES: Mapping[int, str] = MappingProxyType(
    {
        unit: f"{name}es" if name == "search" else f"{name}s"
        for unit, name in enum_names(pb.BillableUnit.DESCRIPTOR).items()
        if unit != REQUEST_UNIT
    }
)
"""Names of the counts of units, for example `input_tokens`."""
SUM_COLUMNS = (
    Column("requests", is_number=True),
    Column("failed", 3, is_number=True),
    Column("input", 3, is_number=True),
    Column("cached", 5, is_number=True),
    Column("share", 4, is_number=True),
    Column("output", 3, is_number=True),
    Column("reasoning", 5, is_number=True),
)
CREDITS_COLUMN = Column("credits", is_number=True)
OTHER_COUNTS = tuple(name for name in UNIT_NAMES.values() if not name.endswith("_tokens"))
"""Counts that have a column in a table only if one of its rows has them."""


@dataclass(frozen=True)
class Calls:
    """Selection of past calls; an empty list selects all."""

    since: datetime
    until: datetime | None = None
    keys: Sequence[str] = ()
    """Ids, names or prefixes."""
    models: Sequence[str] = ()
    channels: Sequence[str] = ()
    agents: Sequence[str] = ()
    projects: Sequence[str] = ()
    """Ids or names."""
    tags: Mapping[str, str] = field(default_factory=dict)
    end_users: Sequence[str] = ()
    reasons: Sequence["pb.ErrorReason.ValueType"] = ()
    operations: Sequence["pb.ModelOperation.ValueType"] = ()
    request_id_prefix: str = ""
    min_seconds: float = 0

    async def key_ids(self, admin: AdminClient) -> list[str]:
        """Return the ids of the selected keys. Raise UmgError or CommandError for an unknown key."""
        found = [await admin.call(pb.GetKeyRequest(key_id=each), pb.GetKeyResponse) for each in self.keys]
        return [each.key.key_id for each in found]

    async def selection(self, admin: AdminClient) -> CallSelection:
        """Return the fields of requests that select the calls. Raise UmgError or CommandError for an unknown key."""
        return CallSelection(
            start_time=timestamp(self.since),
            end_time=timestamp(self.until),
            key_ids=await self.key_ids(admin),
            models=self.models,
            channels=self.channels,
            agents=self.agents,
            project_ids=self.projects,
            tags=self.tags,
        )


@dataclass(frozen=True)
class UsageTotal:
    """Row of the usage table: the number, units and cost of the calls of one group, for example of one key and day."""

    group: Mapping[str, str]
    """Texts of the dimensions, in the order of the command."""
    requests: int
    failed: int
    counts: Mapping[str, int]
    micro_credits: int

    def sum(self, names: Iterable[str]) -> int:
        """Return the sum of the counts with these names, for example of all kinds of input tokens."""
        return sum(self.counts[name] for name in names)


async def usage(target: AdminTarget, by: Sequence[str], calls: Calls, form: Form, *, chart: bool | None = None) -> None:
    """Print the usage of the selected calls. `by`: dimensions, for example `day` and `key`; `chart`: whether a table
    has bars, None if it is on a terminal.
    """
    async with opened(target) as admin:
        request = pb.ListUsageRequest(
            **await calls.selection(admin),
            group_by=[pb.UsageDimension.ValueType(_DIMENSION_VALUES[name]) for name in by if name not in TIME_BUCKETS],
            page_size=PAGE_SIZE,
        )
        for name in by:
            if name in TIME_BUCKETS:
                request.bucket = pb.UsageBucket.ValueType(_BUCKET_VALUES[name])
        entries, begin = await _entries(admin, request)
        rows = [_row(by, entry) for entry in entries]
        names = {key.key_id: key.settings.name for key in await all_keys(admin)} if KEY_DIMENSION in by else {}
    rows.sort(key=lambda row: [*row.group.values()])
    if form.is_text:
        has_bars = sys.stdout.isatty() if chart is None else chart
        shown = _with_gaps(by[0], rows) if has_bars and len(by) == 1 else rows
        print_usage(by, shown, names, form, has_bars=has_bars)
        print(_begin_text(begin))
    else:
        print_objects([_members(row, names) for row in rows], _columns(by), form)


def counts_of(quantities: Iterable[pb.Quantity]) -> dict[str, int]:
    """Return the sum of the quantities of each unit by its name, for example `input_tokens`; 0 for missing units."""
    found = dict.fromkeys(UNIT_NAMES.values(), 0)
    for quantity in quantities:
        if (name := UNIT_NAMES.get(quantity.unit)) is not None:
            found[name] += quantity.count
    return found


async def _entries(
    admin: AdminClient, request: pb.ListUsageRequest
) -> tuple[list[pb.UsageEntry], pb.ListUsageResponse]:
    """Return the usage entries of all pages, and the first page, which states when the stored usage begins."""
    found = [page async for page in pages(admin, request, pb.ListUsageResponse)]
    return [entry for page in found for entry in page.entries], found[0]


def _begin_text(page: pb.ListUsageResponse) -> str:
    begins = {
        "records": (page.HasField("record_begin_time"), page.record_begin_time),
        "totals by minute": (page.HasField("minute_begin_time"), page.minute_begin_time),
        "by hour": (page.HasField("hour_begin_time"), page.hour_begin_time),
        "by day": (page.HasField("day_begin_time"), page.day_begin_time),
    }
    texts = [f"{name} {time.ToDatetime(UTC):%Y-%m-%dT%H:%MZ}" for name, (is_set, time) in begins.items() if is_set]
    return f"begin of stored usage: {', '.join(texts) or 'none'}"


def _row(by: Sequence[str], entry: pb.UsageEntry) -> UsageTotal:
    group = {name: _text(name, entry) for name in by}
    counts = counts_of(entry.quantities)
    return UsageTotal(group, entry.request_count, entry.failed_request_count, counts, entry.micro_credits)


def _with_gaps(name: str, rows: Sequence[UsageTotal]) -> list[UsageTotal]:
    """Return the rows, with empty rows added for spans of the time dimension `name` in which no call was made."""
    if name not in TIME_BUCKETS or not rows:
        return [*rows]
    known = {row.group[name]: row for row in rows}
    texts, time = [rows[0].group[name]], _start_of(name, rows[0].group[name])
    while texts[-1] != rows[-1].group[name]:
        time = (time + timedelta(days=31)).replace(day=1) if name == MONTH_BUCKET else time + BUCKET_STEPS[name]
        texts.append(time.strftime(TIME_BUCKETS[name]))
        if len(texts) > MAX_GAPS:
            return [*rows]
    return [known.get(text) or UsageTotal({name: text}, 0, 0, counts_of(()), 0) for text in texts]


def _start_of(name: str, text: str) -> datetime:
    return datetime.strptime(text, TIME_BUCKETS[name]).replace(tzinfo=UTC)


def _text(name: str, entry: pb.UsageEntry) -> str:
    match name:
        case "key":
            return entry.key_id
        case "model":
            return entry.model
        case "channel":
            return entry.channel
        case "agent":
            return entry.agent
        case "operation":
            return OPERATION_NAMES.get(entry.operation, "")
        case bucket:  # all other columns are times
            return entry.start_time.ToDatetime(UTC).strftime(TIME_BUCKETS[bucket])


def print_usage(
    by: Sequence[str],
    rows: Sequence[UsageTotal],
    names: Mapping[str, str],
    form: Form = Form.TABLE,
    *,
    has_bars: bool,
) -> None:
    """Print usage as a text table, with the sum of several rows. `names`: id of a key -> its name."""
    others = [name for name in OTHER_COUNTS if any(row.counts[name] for row in rows)]
    headings = [Column(name.replace("_", " "), 4, is_number=True) for name in others]
    columns = [*map(Column, by), *SUM_COLUMNS, *headings, CREDITS_COLUMN]
    cells = [[*_cells(row, names), *_figures([row], others)] for row in rows]
    if has_bars:
        costs = [row.micro_credits for row in rows]
        columns.append(Column("bars of credits" if any(costs) else "bars of requests", 6))
        values = costs if any(costs) else [row.requests for row in rows]
        for line, bar in zip(cells, bars(values), strict=True):
            line.append(bar)
    if len(rows) > 1 and by:
        cells.append(["total", *[""] * (len(by) - 1), *_figures(rows, others), *[""] * has_bars])
    print_table(columns, cells, form)


def _cells(row: UsageTotal, names: Mapping[str, str]) -> Iterator[str]:
    for name, text in row.group.items():
        yield names.get(text, text) if name == KEY_DIMENSION else text


def _figures(rows: Sequence[UsageTotal], others: Sequence[str] = ()) -> list[str]:
    tokens, cached = sum(row.sum(INPUT_COLUMNS) for row in rows), sum(row.counts["cache_read_tokens"] for row in rows)
    figures = (
        sum(row.requests for row in rows),
        sum(row.failed for row in rows),
        tokens,
        cached,
        f"{cached / tokens:.1%}" if tokens else "-",
        sum(row.sum(OUTPUT_COLUMNS) for row in rows),
        sum(row.counts["reasoning_tokens"] for row in rows),
        *(sum(row.counts[name] for row in rows) for name in others),
    )
    return [*map(str, figures), credits_text(sum(row.micro_credits for row in rows))]


def _columns(by: Sequence[str]) -> list[str]:
    groups = [column for name in by for column in ((KEY_DIMENSION, "key_name") if name == KEY_DIMENSION else (name,))]
    return [*groups, "requests", "failed", *UNIT_NAMES.values(), "micro_credits"]


def _members(row: UsageTotal, names: Mapping[str, str]) -> dict[str, object]:
    key_name = {"key_name": names.get(row.group[KEY_DIMENSION], "")} if KEY_DIMENSION in row.group else {}
    sums = {"requests": row.requests, "failed": row.failed, **row.counts, "micro_credits": row.micro_credits}
    return {**row.group, **key_name, **sums}
