"""Summary of the calls that the filters of an address select, for the pages that show figures and their changes."""

from collections.abc import Iterable
from dataclasses import dataclass

from http_facade.console.figure_texts import UNKNOWN_TEXT, amount_text, change_text, count_text, share_text
from http_facade.console.object_names import key_ids_of
from http_facade.console.page_interface import Visit
from umg_grpc.v1 import pb


@dataclass(frozen=True)
class Figure:
    """Figure with its change against the span before, and the page of the calls behind it."""

    name: str
    """Key of its words."""
    value: str
    change: str
    path: str = ""
    """Page of the calls behind it; "" if the person may not see it."""


async def call_summary(
    visit: Visit, group_by: "pb.UsageDimension.ValueType" = pb.USAGE_DIMENSION_MODEL, tag_name: str = ""
) -> pb.GetCallSummaryResponse:
    """Return the summary of the selected calls, and of the span before. Raise UmgError."""
    filters = visit.filters
    request = pb.GetCallSummaryRequest(
        start_time=filters.start_time(),
        end_time=filters.end_time(),
        key_ids=await key_ids_of(visit.calls, filters.values("key")),
        models=filters.values("model"),
        channels=filters.values("channel"),
        agents=filters.values("agent"),
        project_ids=filters.values("project"),
        tags=filters.tags(),
        group_by=group_by,
        tag_name=tag_name,
    )
    return await visit.calls.call(request, pb.GetCallSummaryResponse)


def figures(summary: pb.GetCallSummaryResponse, calls_path: str, failed_path: str) -> Iterable[Figure]:
    """Yield calls, failed share, times, cost and cached share. The paths are "" for people that may not see calls."""
    now, before = summary.total, summary.previous
    yield Figure(
        "calls", count_text(now.request_count), change_text(now.request_count, before.request_count), calls_path
    )
    yield Figure(
        "failed",
        share_text(now.failed_request_count, now.request_count),
        change_text(now.failed_request_count, before.failed_request_count),
        failed_path,
    )
    yield Figure("first_byte", *_duration(now.first_byte, before.first_byte))
    yield Figure("whole_call", *_duration(now.whole_call, before.whole_call))
    yield Figure("spend", amount_text(now.micro_credits), change_text(now.micro_credits, before.micro_credits))
    yield Figure("cached", share_text(now.cache_read_tokens, now.input_tokens), "")


def _duration(now: pb.DurationPercentiles, before: pb.DurationPercentiles) -> tuple[str, str]:
    if not now.call_count:
        return UNKNOWN_TEXT, ""
    milliseconds = now.p95.ToMilliseconds()
    return f"{milliseconds:,} ms", change_text(milliseconds, before.p95.ToMilliseconds())
