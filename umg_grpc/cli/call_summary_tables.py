"""Implementation of `umg summary`: prints the figures of past calls beside those of the same time before."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from google.protobuf.duration_pb2 import Duration
from typer import BadParameter

from umg_grpc.base.micro_credits import credits_text
from umg_grpc.cli.admin_connection import opened
from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.cli.key_command_actions import all_keys
from umg_grpc.cli.request_record_tables import REASON_NAMES
from umg_grpc.cli.text_tables import Column, Form, print_line, print_objects, print_table
from umg_grpc.cli.time_texts import time_text
from umg_grpc.cli.usage_command_actions import Calls
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names, to_json

TAG_DIMENSION, KEY_DIMENSION = "tag", "key"
BUCKET_VALUES = {name: value for value, name in enum_names(pb.UsageBucket.DESCRIPTOR).items()}
DIMENSION_VALUES = {name: value for value, name in enum_names(pb.UsageDimension.DESCRIPTOR).items()}
FIGURE_COLUMNS = (
    Column("figure"),
    Column("now", is_number=True),
    Column("before", is_number=True),
    Column("change", is_number=True),
)
GROUP_COLUMNS = (
    Column("requests", is_number=True),
    Column("failed", 2, is_number=True),
    Column("input", 4, is_number=True),
    Column("output", 4, is_number=True),
    Column("credits", is_number=True),
    Column("share", 3, is_number=True),
    Column("before", 3, is_number=True),
)
FAILURE_COLUMNS = (Column("failed by"), Column("name"), Column("now", is_number=True), Column("before", is_number=True))
NO_VALUE = "-"


@dataclass(frozen=True)
class Groups:
    """Dimension of the groups of a summary, and the length of its buckets."""

    name: str
    tag: str
    bucket: str

    @classmethod
    def of(cls, by: str, bucket: str) -> "Groups":
        """Return the groups that flags describe. Raise BadParameter."""
        name, _, tag = by.partition("=")
        if name not in DIMENSION_VALUES or (name == TAG_DIMENSION) != bool(tag):
            expected = ", ".join(each for each in DIMENSION_VALUES if each != TAG_DIMENSION)
            raise BadParameter(f"expected one of {expected}, or tag=NAME", param_hint="--by")
        if bucket and bucket not in BUCKET_VALUES:
            raise BadParameter(f"expected one of {', '.join(BUCKET_VALUES)}", param_hint="--bucket")
        return cls(name, tag, bucket)


async def call_summary(target: AdminTarget, calls: Calls, groups: Groups, form: Form) -> None:
    """Print the summary of the selected calls."""
    async with opened(target) as admin:
        request = pb.GetCallSummaryRequest(
            **await calls.selection(admin),
            group_by=pb.UsageDimension.ValueType(DIMENSION_VALUES[groups.name]),
            tag_name=groups.tag,
        )
        if groups.bucket:
            request.bucket = pb.UsageBucket.ValueType(BUCKET_VALUES[groups.bucket])
        response = await admin.call(request, pb.GetCallSummaryResponse)
        keys = await all_keys(admin) if form.is_text and groups.name == KEY_DIMENSION else ()
    print_summary(response, groups.name, {key.key_id: key.settings.name for key in keys}, form)


def print_summary(
    summary: pb.GetCallSummaryResponse, dimension: str, names: Mapping[str, str], form: Form = Form.TABLE
) -> None:
    """Print a summary: as tables, as JSON, or the table of figures as CSV. `names`: id of a key -> its name."""
    if form in {Form.JSON, Form.JSONL}:
        print_objects([to_json(summary)], (), form)
        return
    figures = [*_figures(summary.total, summary.previous)]
    if not form.is_text:
        print_table(FIGURE_COLUMNS, figures, form)
        return
    begin, end = (time_text(time, "minutes") for time in (summary.total.start_time, summary.total.end_time))
    print_line(f"{begin} to {end}, and before it from {time_text(summary.previous.start_time, 'minutes')} on")
    print_table(FIGURE_COLUMNS, figures, form)
    if summary.groups:
        print()
        print_table([Column(dimension), *GROUP_COLUMNS], [*_groups(summary, names)], form)
    if summary.failures_by_reason:
        print()
        print_table(FAILURE_COLUMNS, [*_failures(summary)], form)


def _figures(now: pb.CallFigures, before: pb.CallFigures) -> Iterator[Sequence[str]]:
    for title, name in (
        ("requests", "request_count"),
        ("failed", "failed_request_count"),
        ("cached here", "cached_request_count"),
        ("input tokens", "input_tokens"),
        ("output tokens", "output_tokens"),
        ("cached input", "cache_read_tokens"),
        ("credits", "micro_credits"),
    ):
        values = getattr(now, name), getattr(before, name)
        texts = map(credits_text, values) if name == "micro_credits" else map(str, values)
        yield title, *texts, _change(*values)
    for measure in ("first_byte", "whole_call"):
        for percent in ("p50", "p95", "p99"):
            micros = [_micros(figures, measure, percent) for figures in (now, before)]
            shown = (NO_VALUE if each is None else f"{each / 1000:.0f}" for each in micros)
            known = [each for each in micros if each is not None]
            change = _change(*known) if len(known) == len(micros) else NO_VALUE
            yield f"{measure.replace('_', ' ')} {percent} ms", *shown, change


def _micros(figures: pb.CallFigures, measure: str, percent: str) -> int | None:
    if not figures.HasField("first_byte" if measure == "first_byte" else "whole_call"):
        return None
    duration: Duration = getattr(getattr(figures, measure), percent)
    return duration.ToMicroseconds()


def _change(now: int, before: int) -> str:
    return f"{(now - before) / before:+.1%}" if before else NO_VALUE


def _groups(summary: pb.GetCallSummaryResponse, names: Mapping[str, str]) -> Iterator[Sequence[str]]:
    total = summary.total.micro_credits
    rows = [(names.get(group.value, group.value) or NO_VALUE, group) for group in summary.groups]
    if summary.HasField("other_groups"):
        rows.append((f"{summary.other_group_count} others", summary.other_groups))
    for name, group in rows:
        now = group.current
        yield (
            name,
            *map(str, (now.request_count, now.failed_request_count, now.input_tokens, now.output_tokens)),
            credits_text(now.micro_credits),
            f"{now.micro_credits / total:.1%}" if total else NO_VALUE,
            credits_text(group.previous.micro_credits),
        )


def _failures(summary: pb.GetCallSummaryResponse) -> Iterator[Sequence[str]]:
    for each in summary.failures_by_reason:
        yield _failure("reason", REASON_NAMES.get(each.reason, ""), each)
    for each in summary.failures_by_kind:
        yield _failure("kind", each.kind, each)
    for each in summary.failures_by_channel:
        yield _failure("channel", each.channel, each)


def _failure(title: str, name: str, count: pb.FailureCount) -> Sequence[str]:
    return title, name or NO_VALUE, str(count.request_count), str(count.previous_request_count)
