"""Pages of the recorded calls: the list with its filters, and the whole story of one call."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from urllib.parse import urlencode

from google.protobuf.timestamp_pb2 import Timestamp

from http_facade.console.address_filters import ListPages
from http_facade.console.call_outcomes import OPERATION_NAMES, REASON_NAMES, Mark, duration_text, outcome, tokens
from http_facade.console.figure_texts import UNKNOWN_TEXT, count_text
from http_facade.console.object_names import key_names
from http_facade.console.page_interface import Visit, object_path
from http_facade.console.summary_figures import FailureRow, call_summary, failure_rows, selected_calls
from umg_grpc.base.errors import UmgError
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb

PAGE_SIZE = 50
MAX_PERCENT = 100.0
MIN_BAR_PERCENT = 0.5
KIND_PATTERN = re.compile(r'^  (\w+): { operation: "(\w+)"', re.MULTILINE)
"""Kind of calls in the table of the playground, with its operation."""


@dataclass(frozen=True)
class CallRow:
    """Row of the list of calls."""

    path: str
    request_id: str
    time: Timestamp
    outcome: Mark
    model: str
    model_path: str
    """Page of the model; "" if there is none that the person may see, as of the other paths."""
    key_id: str
    key_name: str
    channel: str
    channel_path: str
    milliseconds: str
    input_tokens: int
    output_tokens: int
    micro_credits: int


@dataclass(frozen=True)
class CallList:
    """Content of the list of calls."""

    rows: Sequence[CallRow]
    failures: Mapping[str, Sequence[FailureRow]]
    """Failed calls of the span by reason and by channel, if only failed calls are listed."""
    pages: ListPages
    command: str
    is_live: bool
    """Whether it shows the newest calls, of a span without an end."""


@dataclass(frozen=True)
class AttemptBar:
    """Attempt of a call at a channel, with its place on the time line in percent of the call and its row there."""

    channel: str
    channel_path: str
    """Page of the channel; "" for a person that may not see it."""
    upstream_model: str
    outcome: Mark
    begin_percent: str
    width_percent: str
    row: int
    """0 but for an attempt that began before another one ended."""
    after: str
    milliseconds: str
    status: str
    code: str
    message: str
    upstream_request_id: str
    protocol: str


@dataclass(frozen=True)
class CallStory:
    """Content of the page of one call."""

    record: pb.RequestRecord
    outcome: Mark
    path: str
    operation: str
    key_name: str
    model_path: str
    channel_path: str
    milliseconds: str
    first_byte: str
    message: str
    attempts: Sequence[AttemptBar]
    shows_attempts: bool
    """Whether the person may see them."""
    words_of_provider: str
    id_at_provider: str
    remedy: str
    replay: str
    """Path of the playground with the model of the call; "" for an operation that it does not have."""
    tokens: tuple[int, int]
    quantities: Mapping[str, str]
    dropped: str
    earlier: Sequence[CallRow]


async def load_calls(visit: Visit) -> CallList:
    """Return a page of the calls that the filters select, newest first."""
    filters = visit.filters
    request = pb.ListRequestRecordsRequest(
        **await selected_calls(visit),
        reasons=[_reason_value(each) for each in filters.values("reason")],
        end_users=filters.values("user"),
        failed_only=filters.failed,
        page_size=PAGE_SIZE,
        page_token=filters.page_token,
    )
    response = await visit.calls.call(request, pb.ListRequestRecordsResponse)
    names = await key_names(visit.calls, (record.key_id for record in response.records))
    return CallList(
        rows=[call_row(visit, record, names) for record in response.records],
        failures=await _failures(visit) if filters.failed else {},
        pages=filters.pages(response.next_page_token),
        command=filters.command("umg requests list"),
        is_live=not filters.page_token and filters.end is None,
    )


async def load_call(visit: Visit) -> CallStory:
    """Return the story of one call. Raise UmgError(OBJECT_NOT_FOUND)."""
    request_id = visit.parameters["request_id"]
    found = await visit.calls.call(pb.GetRequestRecordRequest(request_id=request_id), pb.GetRequestRecordResponse)
    record = found.record
    names = await key_names(visit.calls, (each.key_id for each in (record, *found.earlier_records)))
    failed = [attempt for attempt in record.attempts if attempt.upstream_message]
    return CallStory(
        record=record,
        outcome=outcome(record),
        path=call_path(record.request_id),
        operation=OPERATION_NAMES.get(record.operation, UNKNOWN_TEXT),
        key_name=names.get(record.key_id, record.key_id),
        model_path=visit.model_path(record),
        channel_path=visit.channel_path(record.channel),
        milliseconds=duration_text(record.duration, is_known=record.HasField("duration")),
        first_byte=duration_text(record.first_byte_duration, is_known=record.HasField("first_byte_duration")),
        message=printable(record.message),
        attempts=attempt_bars(record, visit.channel_path),
        shows_attempts=visit.rights.extent(pb.PERMISSION_RECORDS_READ) >= pb.PERMISSION_EXTENT_PART,
        words_of_provider=printable(failed[-1].upstream_message) if failed else "",
        id_at_provider=failed[-1].upstream_request_id if failed else "",
        remedy=next((each.remedy for each in reversed(record.attempts) if each.remedy), ""),
        replay=replay_path(record),
        tokens=tokens(record),
        quantities={
            pb.BillableUnit.Name(each.unit).removeprefix("BILLABLE_UNIT_").replace("_", " ").lower(): count_text(
                each.count
            )
            for each in record.quantities
        },
        dropped=printable(", ".join(record.dropped)),
        earlier=[call_row(visit, each, names) for each in found.earlier_records],
    )


def call_path(request_id: str) -> str:
    """Return the path of the page of a call."""
    return object_path("requests", request_id)


def call_row(visit: Visit, record: pb.RequestRecord, names: Mapping[str, str]) -> CallRow:
    """Return the row of a call. `names`: of keys by their ids."""
    sent, received = tokens(record)
    return CallRow(
        path=call_path(record.request_id),
        request_id=printable(record.request_id),
        time=record.start_time,
        outcome=outcome(record),
        model=printable(record.model),
        model_path=visit.model_path(record),
        key_id=record.key_id,
        key_name=printable(names.get(record.key_id, record.key_id)),
        channel=printable(record.channel),
        channel_path=visit.channel_path(record.channel),
        milliseconds=duration_text(record.duration, is_known=record.HasField("duration")),
        input_tokens=sent,
        output_tokens=received,
        micro_credits=record.micro_credits,
    )


async def _failures(visit: Visit) -> Mapping[str, Sequence[FailureRow]]:
    """Return the failed calls by reason and by channel, unless a filter is set that the summary does not have."""
    filters = visit.filters
    if filters.page_token or filters.values("reason") or filters.values("user"):
        return {}
    if not visit.rights.may(pb.PERMISSION_USAGE_READ):
        return {}
    summary = await call_summary(visit, pb.USAGE_DIMENSION_CHANNEL)
    return {
        "reasons": failure_rows(visit, "reason", summary.failures_by_reason),
        "channels": failure_rows(visit, "channel", summary.failures_by_channel),
    }


def _reason_value(name: str) -> "pb.ErrorReason.ValueType":
    """Return a reason by its name in lists. Raise UmgError(INVALID_FIELD) for an unknown one."""
    value = next((value for value, each in REASON_NAMES.items() if each == name), None)
    if value is None:
        message = f"there is no reason `{name[:50]}`; the reference of errors lists all of them"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="reason")
    return pb.ErrorReason.ValueType(value)


def replay_path(record: pb.RequestRecord) -> str:
    """Return the path of the playground with the kind and the model of a call; "" for a kind that it does not have."""
    kind, model = _playground_kinds().get(record.operation), record.requested_model or record.model
    return f"/playground?{urlencode({'kind': kind, 'model': model})}" if kind and model else ""


@cache
def _playground_kinds() -> Mapping[int, str]:
    """Return operation -> kind of calls, from the table of the playground itself."""
    table = files("http_facade").joinpath("assets", "playground", "kinds.js").read_text()
    return {pb.ModelOperation.Value(operation): kind for kind, operation in KIND_PATTERN.findall(table)}


def attempt_bars(record: pb.RequestRecord, channel_path: Callable[[str], str]) -> list[AttemptBar]:
    """Return the attempts by their begin, each in the first row of the time line that is free at that time.
    `channel_path`: returns the path of the page of a channel.
    """
    ends, bars = list[int](), list[AttemptBar]()
    for attempt in sorted(record.attempts, key=lambda each: each.start_time.ToMicroseconds()):
        begin = attempt.start_time.ToMicroseconds()
        row = next((number for number, end in enumerate(ends) if end <= begin), len(ends))
        ends[row : row + 1] = [begin + attempt.duration.ToMicroseconds()]
        bars.append(_attempt(record, attempt, row, channel_path(attempt.channel)))
    return bars


def _attempt(record: pb.RequestRecord, attempt: pb.RequestAttempt, row: int, channel_path: str) -> AttemptBar:
    total = max(record.duration.ToMicroseconds(), 1)
    after = attempt.start_time.ToMicroseconds() - record.start_time.ToMicroseconds()
    begin = min(MAX_PERCENT, 100 * max(after, 0) / total)
    width = max(MIN_BAR_PERCENT, min(MAX_PERCENT - begin, 100 * attempt.duration.ToMicroseconds() / total))
    has_failed = attempt.reason != pb.ERROR_REASON_UNSPECIFIED
    kind = attempt.failure_kind or (REASON_NAMES.get(attempt.reason, "") if has_failed else "ok")
    return AttemptBar(
        channel=printable(attempt.channel),
        channel_path=channel_path,
        upstream_model=printable(attempt.upstream_model),
        outcome=Mark("bad" if has_failed else "good", kind),
        begin_percent=f"{begin:.2f}",
        width_percent=f"{width:.2f}",
        row=row,
        after=count_text(after // 1000),
        milliseconds=duration_text(attempt.duration, is_known=attempt.HasField("duration")),
        status=str(attempt.upstream_status_code) if attempt.HasField("upstream_status_code") else "",
        code=printable(attempt.upstream_code),
        message=printable(attempt.upstream_message),
        upstream_request_id=printable(attempt.upstream_request_id),
        protocol=printable(attempt.protocol_choice),
    )
