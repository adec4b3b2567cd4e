"""Summary of the calls that the filters of an address select, for the pages that show figures and their changes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from http_facade.console.call_outcomes import REASON_NAMES
from http_facade.console.figure_texts import (
    UNKNOWN_TEXT,
    amount_text,
    change_text,
    count_text,
    rate_text,
    share_text,
)
from http_facade.console.object_names import key_ids_of
from http_facade.console.page_interface import Visit
from http_facade.console.page_rendering import word
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb
from umg_grpc.wire.call_selection import CallSelection

SECONDS_PER_MINUTE = 60


@dataclass(frozen=True)
class Figure:
    """Figure with its change against the span before, and the page of the calls behind it."""

    name: str
    """Key of its words."""
    value: str
    change: str
    path: str = ""
    """Page of the calls behind it; "" if the person may not see it."""


@dataclass(frozen=True)
class SpendRow:
    """Calls and cost of one model."""

    model: str
    path: str
    """Page of its calls; "" if the person may not see it, and for all other models together."""
    figures: pb.CallFigures
    share: str
    change: str


@dataclass(frozen=True)
class FailureRow:
    """Failed calls with one reason, channel or kind, and those of the span before."""

    name: str
    path: str
    """Page of the calls; "" if the person may not see it."""
    calls: int
    before: int
    change: str


async def selected_calls(visit: Visit, *, key_ids: Sequence[str] = (), channels: Sequence[str] = ()) -> CallSelection:
    """Return the fields of requests that select the calls of the address. Raise UmgError.

    `key_ids` and `channels`: of the page of a key or a channel, in place of those of the address.
    """
    filters = visit.filters
    return CallSelection(
        start_time=filters.start_time(),
        end_time=filters.end_time(),
        key_ids=key_ids or await key_ids_of(visit.calls, filters.values("key")),
        models=filters.values("model"),
        channels=channels or filters.values("channel"),
        agents=filters.values("agent"),
        project_ids=filters.values("project"),
        tags=filters.tags(),
    )


async def call_summary(
    visit: Visit,
    group_by: "pb.UsageDimension.ValueType" = pb.USAGE_DIMENSION_MODEL,
    *,
    key_ids: Sequence[str] = (),
    channels: Sequence[str] = (),
) -> pb.GetCallSummaryResponse:
    """Return the summary of the selected calls, and of the span before. Raise UmgError."""
    selection = await selected_calls(visit, key_ids=key_ids, channels=channels)
    request = pb.GetCallSummaryRequest(**selection, group_by=group_by)
    return await visit.calls.call(request, pb.GetCallSummaryResponse)


def figures(visit: Visit, summary: pb.GetCallSummaryResponse, calls_path: str, failed_path: str) -> Iterable[Figure]:
    """Yield calls, failed share, times, cost and cached share. The paths are "" for people that may not see calls."""
    now, before = summary.total, summary.previous
    more_calls = change_text(now.request_count, before.request_count)
    minutes = ((visit.filters.end or visit.now) - visit.filters.start).total_seconds() / SECONDS_PER_MINUTE
    yield Figure("calls", count_text(now.request_count), more_calls, calls_path)
    yield Figure("rate", rate_text(now.request_count, minutes), more_calls)
    yield Figure(
        "failed",
        share_text(now.failed_request_count, now.request_count),
        change_text(now.failed_request_count, before.failed_request_count),
        failed_path,
    )
    yield Figure("first_byte", *_duration(now.first_byte, before.first_byte))
    yield Figure("whole_call", *_duration(now.whole_call, before.whole_call))
    yield Figure("spend", amount_text(now.micro_credits), change_text(now.micro_credits, before.micro_credits))
    yield Figure("cached", share_text(now.cache_read_tokens, now.input_tokens), _points(now, before))


def failure_rows(visit: Visit, name: str, counts: Iterable[pb.FailureCount]) -> Sequence[FailureRow]:
    """Return the rows of counts by `reason`, `channel` or `kind`, without those whose name is not known."""
    found = list[FailureRow]()
    for count in counts:
        value = REASON_NAMES.get(count.reason, "") if name == "reason" else str(getattr(count, name))
        if value or name == "reason":
            path = visit.calls_path(failed="1", **{name: value}) if value and name != "kind" else ""
            change = change_text(count.request_count, count.previous_request_count)
            row = FailureRow(printable(value), path, count.request_count, count.previous_request_count, change)
            found.append(row)
    return found


def spend_rows(visit: Visit, summary: pb.GetCallSummaryResponse, **filters: str) -> list[SpendRow]:
    """Return the models with the highest cost, then the others together without a name. `filters`: those of the calls
    behind a row, besides the model and those of the address.
    """
    groups = [*summary.groups, *([summary.other_groups] if summary.other_group_count else [])]
    return [
        SpendRow(
            model=printable(group.value),
            path=visit.calls_path(model=group.value, **filters) if group.value else "",
            figures=group.current,
            share=share_text(group.current.micro_credits, summary.total.micro_credits),
            change=change_text(group.current.micro_credits, group.previous.micro_credits),
        )
        for group in groups
    ]


def _duration(now: pb.DurationPercentiles, before: pb.DurationPercentiles) -> tuple[str, str]:
    if not now.call_count:
        return UNKNOWN_TEXT, ""
    milliseconds = now.p95.ToMilliseconds()
    return f"{milliseconds:,} ms", change_text(milliseconds, before.p95.ToMilliseconds())


def _points(now: pb.CallFigures, before: pb.CallFigures) -> str:
    """Return the change of the cached share; "" without input before."""
    if not now.input_tokens or not before.input_tokens:
        return ""
    change = 100 * (now.cache_read_tokens / now.input_tokens - before.cache_read_tokens / before.input_tokens)
    return word("figures.points", change=f"{change:+.0f}")
