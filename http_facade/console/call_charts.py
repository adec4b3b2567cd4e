"""Charts of calls by time: columns of numbers, which a page has as one table, and from which its script draws them.

The table has no end tags of cells and rows, which HTML does not need: they would be a third of its size.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from http_facade.console.call_outcomes import duration_text, tokens
from http_facade.console.figure_texts import UNKNOWN_TEXT, amount_text, count_text, share_text
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names

COLUMNS_FORM, STACK_FORM, LOG_FORM, SHARE_FORM, LEFT_FORM = "columns", "stack", "log", "share", "left"
"""Forms of charts, which `charts.js` draws: columns above and below a line, stacked columns, lines on a log scale, a
line of percents, and the rest of a budget.
"""
COLOURED_GROUPS = 5
OTHER_INK = "other"
BUCKET_NAMES = enum_names(pb.UsageBucket.DESCRIPTOR)
TIME_FORMATS = {pb.USAGE_BUCKET_DAY: "%d %b", pb.USAGE_BUCKET_MONTH: "%b %Y"}
USUAL_FORMAT = "%d %b %H:%M"


@dataclass(frozen=True)
class ChartColumn:
    """Column of the table: the numbers of one line, or of one part of the chart's columns."""

    ink: str
    """How the style and the script draw it, and the key of its words."""
    cells: Sequence[str]
    text: str = ""
    """Its name, in place of the words."""


@dataclass(frozen=True)
class Chart:
    """Chart of some columns of the table."""

    form: str
    word: str
    """Key of the words of its caption."""
    columns: Sequence[ChartColumn]


@dataclass(frozen=True)
class ChartBucket:
    """Row of the table: a bucket of time."""

    label: str
    seconds: int
    """Its beginning, in seconds of the epoch."""
    is_open: bool
    """Whether its end is ahead."""


@dataclass(frozen=True)
class ChartTable:
    """Charts of the same buckets, with the table of their numbers."""

    length: str
    """Key of the words of the length of a bucket."""
    buckets: Sequence[ChartBucket]
    end: int
    """End of the last bucket, in seconds of the epoch."""
    charts: Sequence[Chart]
    path: str = ""
    """Page of the calls behind a bucket, to which its span is added; "" for none."""

    @property
    def columns(self) -> Iterator[tuple[int, ChartColumn]]:
        """All columns, each with the number of its chart."""
        return ((number, column) for number, chart in enumerate(self.charts) for column in chart.columns)

    @property
    def rows(self) -> Iterator[tuple[ChartBucket, Sequence[str]]]:
        """Each bucket with the cells of all columns."""
        cells = zip(*(column.cells for _, column in self.columns), strict=True)
        return zip(self.buckets, cells, strict=True)


def summary_charts(
    summary: pb.GetCallSummaryResponse, charts: Iterable[Chart | None], path: str, now: datetime
) -> ChartTable | None:
    """Return charts of the buckets of a summary; None without calls."""
    if not summary.total.request_count:
        return None
    pattern = TIME_FORMATS.get(summary.bucket, USUAL_FORMAT)
    return ChartTable(
        length=BUCKET_NAMES[summary.bucket],
        buckets=[_bucket(each, pattern, now) for each in summary.buckets],
        end=summary.buckets[-1].end_time.seconds,
        charts=[chart for chart in charts if chart is not None],
        path=path,
    )


def calls_chart(summary: pb.GetCallSummaryResponse) -> Chart:
    """Return the chart of calls, with the failed ones below the line."""
    calls = ChartColumn("calls", [count_text(each.request_count) for each in summary.buckets])
    failed = ChartColumn("failed", [count_text(each.failed_request_count) for each in summary.buckets])
    return Chart(COLUMNS_FORM, "calls_chart", (calls, failed))


def spend_chart(summary: pb.GetCallSummaryResponse, names: Sequence[str]) -> Chart | None:
    """Return the chart of the cost by group; None without cost. `names`: of the groups. Those with the highest cost
    have colours.
    """
    if not summary.total.micro_credits:
        return None
    shown = summary.groups[:COLOURED_GROUPS]
    inks = group_inks([group.value for group in shown])
    columns = [
        ChartColumn(
            inks[group.value], [amount_text(micros) for micros in group.micro_credits], printable(name) or UNKNOWN_TEXT
        )
        for group, name in zip(shown, names, strict=False)
    ]
    others = [
        bucket.micro_credits - sum(group.micro_credits[place] for group in shown)
        for place, bucket in enumerate(summary.buckets)
    ]
    if any(others):
        columns.append(ChartColumn(OTHER_INK, [amount_text(micros) for micros in others]))
    return Chart(STACK_FORM, "spend_chart", columns)


def group_inks(values: Sequence[str]) -> Mapping[str, str]:
    """Return the ink of each of at most `COLOURED_GROUPS` groups, by their values, without regard to their order.

    A group has the ink of the digest of its value, on all pages and for all spans, unless another one has it there.
    """
    inks = [f"group{number}" for number in range(1, COLOURED_GROUPS + 1)]
    digests = {value: hashlib.blake2b(value.encode()).digest() for value in values}
    found, displaced = dict[str, str](), list[str]()
    for value in sorted(digests, key=digests.__getitem__):
        own = inks[int.from_bytes(digests[value]) % COLOURED_GROUPS]
        if own in found.values():
            displaced.append(value)
        else:
            found[value] = own
    free = [ink for ink in inks if ink not in found.values()]
    return found | dict(zip(displaced, free, strict=False))


def first_byte_chart(summary: pb.GetCallSummaryResponse) -> Chart | None:
    """Return the chart of the times to the first byte; None without one."""
    return _durations("first_byte_chart", [each.first_byte for each in summary.buckets])


def whole_call_chart(summary: pb.GetCallSummaryResponse) -> Chart | None:
    """Return the chart of the times of whole calls; None without one."""
    return _durations("whole_call_chart", [each.whole_call for each in summary.buckets])


def cached_charts(days: Sequence[pb.UsageEntry], path: str, now: datetime) -> ChartTable | None:
    """Return the chart of the share of the input tokens that providers read from their caches, by day; None for fewer
    than two days.
    """
    if len(days) < 2:
        return None
    cells = [share_text(_cache_reads(each), tokens(each)[0]) for each in days]
    return ChartTable(
        length=BUCKET_NAMES[pb.USAGE_BUCKET_DAY],
        buckets=[_bucket(each, TIME_FORMATS[pb.USAGE_BUCKET_DAY], now) for each in days],
        end=days[-1].end_time.seconds,
        charts=[Chart(SHARE_FORM, "cached_chart", [ChartColumn("cached", cells)])],
        path=path,
    )


def _cache_reads(usage: pb.UsageEntry) -> int:
    return sum(each.count for each in usage.quantities if each.unit == pb.BILLABLE_UNIT_CACHE_READ_TOKEN)


def _bucket(figures: pb.CallFigures | pb.UsageEntry, pattern: str, now: datetime) -> ChartBucket:
    return ChartBucket(
        label=figures.start_time.ToDatetime(UTC).strftime(pattern),
        seconds=figures.start_time.seconds,
        is_open=figures.end_time.ToDatetime(UTC) > now,
    )


def _durations(word: str, percentiles: Sequence[pb.DurationPercentiles]) -> Chart | None:
    if not any(each.call_count for each in percentiles):
        return None
    columns = (
        ChartColumn("p50", [duration_text(each.p50, is_known=each.call_count > 0) for each in percentiles]),
        ChartColumn("p95", [duration_text(each.p95, is_known=each.call_count > 0) for each in percentiles]),
    )
    return Chart(LOG_FORM, word, columns)
