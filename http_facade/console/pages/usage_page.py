"""Page of usage: calls, tokens and costs by a dimension, with their changes, and the same as CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from http_facade.console.call_charts import (
    ChartTable,
    cached_charts,
    calls_chart,
    spend_chart,
    summary_charts,
)
from http_facade.console.figure_texts import change_text, exact_amount, share_text
from http_facade.console.object_names import account_names, key_ids_of, key_names
from http_facade.console.page_interface import FileContent, Visit
from http_facade.console.summary_figures import Figure, call_summary, figures
from umg_grpc.base.errors import UmgError
from umg_grpc.base.printable_text import printable, spreadsheet_text
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names

DIMENSION_NAMES = enum_names(pb.UsageDimension.DESCRIPTOR)
DIMENSION_VALUES = {name: pb.UsageDimension.ValueType(value) for value, name in DIMENSION_NAMES.items()}
OFFERED_DIMENSIONS = ("model", "key", "channel", "project", "agent", "operation")
GROUP_FIELDS = {"project": "project_id", "key": "key_id"}
ROWS_PER_CALL = 10_000
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
class UsageView:
    """Content of the page of usage."""

    figures: Sequence[Figure]
    charts: ChartTable | None
    cached: ChartTable | None
    """Share of the input that was read from caches, by day."""
    dimension: str
    dimensions: Mapping[str, str]
    """Dimension -> query of the page by it."""
    rows: Sequence[GroupRow]
    """Groups with the highest cost, then the others together without a name."""
    other_count: int
    csv_path: str
    command: str


async def load_usage(visit: Visit) -> UsageView:
    """Return the groups with the highest cost, with the others added up."""
    name = _dimension(visit)
    key_ids = await key_ids_of(visit.calls, visit.filters.values("key"))
    summary = await call_summary(visit, DIMENSION_VALUES[name], key_ids=key_ids)
    names = await _names(visit, name, summary.groups)
    rows = [_row(visit, name, names.get(each.value, each.value), each, summary.total) for each in summary.groups]
    if summary.other_group_count:
        rows.append(_row(visit, "", "", summary.other_groups, summary.total))
    charts = spend_chart(summary, [names.get(each.value, each.value) for each in summary.groups]), calls_chart(summary)
    calls_path = visit.calls_path()
    days = await visit.calls.call(_by_day(visit, key_ids), pb.ListUsageResponse)
    return UsageView(
        figures=list(figures(summary, "", "")),
        charts=summary_charts(summary, charts, calls_path, visit.now),
        cached=cached_charts(days.entries, calls_path, visit.now),
        dimension=name,
        dimensions={each: visit.filters.changed(by=each) for each in OFFERED_DIMENSIONS},
        rows=rows,
        other_count=summary.other_group_count,
        csv_path=f"/console/usage.csv{visit.filters.changed(by=name)}",
        command=visit.filters.command("umg usage", f"--by day,{name}"),
    )


async def load_csv(visit: Visit) -> FileContent:
    """Return usage by day and group as CSV. Its sums are those of the page."""
    name, filters = _dimension(visit), visit.filters
    key_ids = await key_ids_of(visit.calls, filters.values("key"))
    request = _by_day(visit, key_ids, DIMENSION_VALUES[name])
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
    return FileContent(f"usage-by-{name}-{span}.csv", "text/csv; charset=utf-8", text.getvalue())


def _by_day(visit: Visit, key_ids: Sequence[str], *dimensions: "pb.UsageDimension.ValueType") -> pb.ListUsageRequest:
    """Return the request for usage by day."""
    filters = visit.filters
    return pb.ListUsageRequest(
        start_time=filters.start_time(),
        end_time=filters.end_time(),
        key_ids=key_ids,
        models=filters.values("model"),
        channels=filters.values("channel"),
        agents=filters.values("agent"),
        project_ids=filters.values("project"),
        tags=filters.tags(),
        group_by=dimensions,
        bucket=pb.USAGE_BUCKET_DAY,
        page_size=ROWS_PER_CALL,
    )


def _dimension(visit: Visit) -> str:
    name = visit.filters.text("by") or OFFERED_DIMENSIONS[0]
    if name not in OFFERED_DIMENSIONS:
        message = f"expected one of {', '.join(OFFERED_DIMENSIONS)} in `by`, got `{name[:50]}`"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="by")
    return name


async def _names(visit: Visit, dimension: str, groups: Sequence[pb.CallGroup]) -> Mapping[str, str]:
    if dimension == "key":
        return await key_names(visit.calls, (group.value for group in groups))
    if dimension == "project":
        return await account_names(visit.calls, visit.rights, (group.value for group in groups))
    return {}


def _row(visit: Visit, dimension: str, name: str, group: pb.CallGroup, total: pb.CallFigures) -> GroupRow:
    now = group.current
    leads = dimension in {"model", "key", "channel", "project", "agent"} and group.value
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
    group = pb.ModelOperation.Name(value).lower() if dimension == "operation" else str(value)
    day = entry.start_time.ToJsonString()[:10]
    counts = (entry.request_count, entry.failed_request_count, entry.micro_credits)
    return (day, spreadsheet_text(group), *counts, exact_amount(entry.micro_credits))
