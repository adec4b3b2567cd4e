"""Page of usage: calls, tokens and costs by a dimension, with their changes, and the same as CSV."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from http_facade.console.address_filters import LIST_NAMES
from http_facade.console.call_charts import (
    ChartTable,
    cached_charts,
    calls_chart,
    spend_chart,
    summary_charts,
)
from http_facade.console.call_outcomes import OPERATION_NAMES
from http_facade.console.figure_texts import change_text, exact_amount, share_text
from http_facade.console.object_names import account_names, key_ids_of, key_names
from http_facade.console.page_interface import FileContent, Visit
from http_facade.console.summary_figures import Figure, call_summary, figures, selected_calls
from umg_grpc.base.errors import UmgError
from umg_grpc.base.printable_text import printable, spreadsheet_text
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names

DIMENSION_NAMES = enum_names(pb.UsageDimension.DESCRIPTOR)
DIMENSION_VALUES = {name: pb.UsageDimension.ValueType(value) for value, name in DIMENSION_NAMES.items()}
OFFERED_DIMENSIONS = ("model", "key", "channel", "project", "agent", "operation")
GROUP_FIELDS = {"project": "project_id", "key": "key_id"}
BY_NAME, BESIDE_NAME = "by", "beside"
ROWS_PER_CALL = 10_000
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.-]+")
"""Characters that the name of a file has not; `_` stands for them."""
CSV_HEAD = ("day_utc", "group", "calls", "failed", "micro_credits", "credits")


@dataclass(frozen=True)
class GroupRow:
    """Usage of one group."""

    name: str
    path: str
    figures: pb.CallFigures
    failed: str
    cached: str
    share: str
    change: str


@dataclass(frozen=True)
class GroupTable:
    """Usage by one dimension."""

    parameter: str
    """Parameter of the address that names the dimension."""
    dimension: str
    dimensions: Mapping[str, str]
    """Dimension -> query of the page with it."""
    rows: Sequence[GroupRow]
    """Groups with the highest cost, then the others together without a name."""
    other_count: int


@dataclass(frozen=True)
class UsageView:
    """Content of the page of usage."""

    figures: Sequence[Figure]
    charts: ChartTable | None
    cached: ChartTable | None
    """Share of the input that was read from caches, by day."""
    tables: Sequence[GroupTable]
    """By the dimension of the address, then by a second one beside it."""
    csv_path: str
    command: str


async def load_usage(visit: Visit) -> UsageView:
    """Return the groups with the highest cost in two dimensions, with the others added up."""
    first = _dimension(visit, BY_NAME, OFFERED_DIMENSIONS[0])
    second = _dimension(visit, BESIDE_NAME, next(name for name in OFFERED_DIMENSIONS if name != first))
    key_ids = await key_ids_of(visit.calls, visit.filters.values("key"))
    summary = await call_summary(visit, DIMENSION_VALUES[first], key_ids=key_ids)
    names = await _names(visit, first, summary.groups)
    tables = [_table(visit, BY_NAME, first, summary, names)]
    if second != first:
        beside = await call_summary(visit, DIMENSION_VALUES[second], key_ids=key_ids)
        tables.append(_table(visit, BESIDE_NAME, second, beside, await _names(visit, second, beside.groups)))
    filters = visit.filters
    charts = spend_chart(summary, [names.get(each.value, each.value) for each in summary.groups]), calls_chart(summary)
    calls_path = visit.calls_path()
    days = await visit.calls.call(await _by_day(visit, key_ids), pb.ListUsageResponse)
    return UsageView(
        figures=list(figures(visit, summary, "", "")),
        charts=summary_charts(summary, charts, calls_path, visit.now),
        cached=cached_charts(days.entries, calls_path, visit.now),
        tables=tables,
        csv_path=f"/console/usage.csv{filters.changed(by=first)}",
        command=filters.command("umg usage", f"--by day,{first}"),
    )


async def load_csv(visit: Visit) -> FileContent:
    """Return usage by day and group as CSV. Its sums are those of the page."""
    name, filters = _dimension(visit, BY_NAME, OFFERED_DIMENSIONS[0]), visit.filters
    request = await _by_day(visit, (), DIMENSION_VALUES[name])
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(CSV_HEAD)
    while True:
        page = await visit.calls.call(request, pb.ListUsageResponse)
        writer.writerows(_cells(entry, name) for entry in page.entries)
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    span = f"{filters.start:%Y%m%dT%H%MZ}-{filters.end or visit.now:%Y%m%dT%H%MZ}"
    chosen = "".join(f"-{each}-{NOT_IN_NAMES.sub('_', filters.text(each))}"[:50] for each in filters.set_names())
    return FileContent(f"usage-by-{name}{chosen}-{span}.csv", "text/csv; charset=utf-8", text.getvalue())


async def _by_day(
    visit: Visit, key_ids: Sequence[str], *dimensions: "pb.UsageDimension.ValueType"
) -> pb.ListUsageRequest:
    """Return the request for usage by day."""
    return pb.ListUsageRequest(
        **await selected_calls(visit, key_ids=key_ids),
        group_by=dimensions,
        bucket=pb.USAGE_BUCKET_DAY,
        page_size=ROWS_PER_CALL,
    )


def _dimension(visit: Visit, parameter: str, usual: str) -> str:
    name = visit.filters.text(parameter) or usual
    if name not in OFFERED_DIMENSIONS:
        message = f"expected one of {', '.join(OFFERED_DIMENSIONS)} in `{parameter}`, got `{name[:50]}`"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=parameter)
    return name


def _table(
    visit: Visit, parameter: str, name: str, summary: pb.GetCallSummaryResponse, names: Mapping[str, str]
) -> GroupTable:
    rows = [_row(visit, name, names.get(each.value, each.value), each, summary.total) for each in summary.groups]
    if summary.other_group_count:
        rows.append(_row(visit, "", "", summary.other_groups, summary.total))
    dimensions = {each: visit.filters.changed(**{parameter: each}) for each in OFFERED_DIMENSIONS}
    return GroupTable(parameter, name, dimensions, rows, summary.other_group_count)


async def _names(visit: Visit, dimension: str, groups: Sequence[pb.CallGroup]) -> Mapping[str, str]:
    if dimension == "key":
        return await key_names(visit.calls, (group.value for group in groups))
    if dimension == "project":
        return await account_names(visit.calls, visit.rights, (group.value for group in groups))
    return {}


def _row(visit: Visit, dimension: str, name: str, group: pb.CallGroup, total: pb.CallFigures) -> GroupRow:
    now = group.current
    leads = dimension in LIST_NAMES and group.value
    return GroupRow(
        name=printable(name),
        path=visit.calls_path(**{dimension: group.value}) if leads else "",
        figures=now,
        failed=share_text(now.failed_request_count, now.request_count),
        cached=share_text(now.cache_read_tokens, now.input_tokens),
        share=share_text(now.micro_credits, total.micro_credits),
        change=change_text(now.micro_credits, group.previous.micro_credits),
    )


def _cells(entry: pb.UsageEntry, dimension: str) -> tuple[str | int, ...]:
    value = getattr(entry, GROUP_FIELDS.get(dimension, dimension))
    group = OPERATION_NAMES.get(value, "") if dimension == "operation" else str(value)
    day = entry.start_time.ToJsonString()[:10]
    counts = (entry.request_count, entry.failed_request_count, entry.micro_credits)
    return (day, spreadsheet_text(group), *counts, exact_amount(entry.micro_credits))
