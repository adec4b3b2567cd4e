"""Implementation of `umg requests`: prints the records of past calls, from a database or a gateway."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from typer import BadParameter

from umg_grpc.base.errors import UmgError
from umg_grpc.base.micro_credits import credits_text
from umg_grpc.base.token_units import INPUT_COLUMNS, OUTPUT_COLUMNS
from umg_grpc.cli.admin_client import AdminClient, CommandError
from umg_grpc.cli.admin_connection import opened
from umg_grpc.cli.common_flags import AdminTarget, names
from umg_grpc.cli.key_command_actions import all_keys
from umg_grpc.cli.text_tables import Column, Fit, Form, print_fields, print_objects, print_table
from umg_grpc.cli.time_texts import time_text
from umg_grpc.cli.usage_command_actions import OPERATION_NAMES, Calls, counts_of
from umg_grpc.knowledge.price_texts import price_text
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names, to_json

PAGE_SIZE = 1000
TITLE_WIDTH = 19
REASON_NAMES = enum_names(pb.ErrorReason.DESCRIPTOR)
RECORD_COLUMNS = (
    Column("time"),
    Column("request"),
    Column("key", 4),
    Column("model", 3),
    Column("channel", 5),
    Column("outcome", 2),
    Column("reason", 3),
    Column("ms", 5, is_number=True),
    Column("attempts", 7, is_number=True),
    Column("input", 6, is_number=True),
    Column("output", 6, is_number=True),
    Column("credits", 4, is_number=True),
)
ATTEMPT_COLUMNS = (
    Column("channel"),
    Column("upstream model", 3),
    Column("after ms", 5, is_number=True),
    Column("ms", 4, is_number=True),
    Column("status", 2, is_number=True),
    Column("outcome"),
    Column("kind", 4),
    Column("code", 4),
    Column("request id there", 5),
    Column("message", fit=Fit.FOLDED),
    Column("protocol", 6, Fit.FOLDED),
)
CSV_COLUMNS = (
    *("request_id", "start_time", "key_id", "operation", "method", "face", "agent", "model", "channel", "streamed"),
    *(
        "status",
        "reason",
        "message",
        "duration_seconds",
        "first_byte_duration_seconds",
        "attempts",
        "cached",
        "tokens_estimated",
    ),
)
"""Columns of CSV, before the counts; of the attempts their number."""


async def list_requests(target: AdminTarget, calls: Calls, limit: int, form: Form, *, failed: bool) -> None:
    """Print the newest records of the selected calls, at most `limit`. `failed`: only failed calls."""
    async with opened(target) as admin:
        request = pb.ListRequestRecordsRequest(
            **await calls.selection(admin),
            end_users=calls.end_users,
            reasons=calls.reasons,
            operations=calls.operations,
            request_id_prefix=calls.request_id_prefix,
            failed_only=failed,
        )
        if calls.min_seconds:
            request.min_duration.FromMicroseconds(round(calls.min_seconds * 1e6))
        records = await _records(admin, request, limit)
        keys = await all_keys(admin) if form.is_text else ()
    print_records(records, {key.key_id: key.settings.name for key in keys}, form)


def reasons_of(text: str) -> "list[pb.ErrorReason.ValueType]":
    """Return the reasons that the flag `--reason` names. Raise typer.BadParameter for another name."""
    return [pb.ErrorReason.ValueType(number) for number in _numbers(text, REASON_NAMES, "--reason")]


def operations_of(text: str) -> "list[pb.ModelOperation.ValueType]":
    """Return the operations that the flag `--operation` names. Raise typer.BadParameter for another name."""
    return [pb.ModelOperation.ValueType(number) for number in _numbers(text, OPERATION_NAMES, "--operation")]


def _numbers(text: str, known: Mapping[int, str], flag: str) -> list[int]:
    values = {name: number for number, name in known.items()}
    found = names(text)
    if unknown := [name for name in found if name not in values]:
        raise BadParameter(f"{unknown[0]!r} is none of {', '.join(values)}", param_hint=flag)
    return [values[name] for name in found]


def print_records(records: Sequence[pb.RequestRecord], names: Mapping[str, str], form: Form) -> None:
    """Print records of calls in a form. `names`: id of a key -> its name, for texts."""
    if form.is_text:
        print_table(RECORD_COLUMNS, [_table_row(record, names) for record in records], form)
    else:
        _print_objects(records, form)


def _print_objects(records: Sequence[pb.RequestRecord], form: Form) -> None:
    columns = [*CSV_COLUMNS, *counts_of(()), "micro_credits", "refused_calls", "end_user"]
    print_objects(map(_csv_row if form is Form.CSV else to_json, records), columns, form)


async def show_request(target: AdminTarget, request_id: str, form: Form) -> None:
    """Print all records with a request id, oldest first, each with its attempts at channels."""
    async with opened(target) as admin:
        found = await admin.call(pb.GetRequestRecordRequest(request_id=request_id), pb.GetRequestRecordResponse)
        records = [*found.earlier_records[::-1], found.record]
        names = {key_id: await _key_text(admin, key_id) for key_id in {record.key_id for record in records}}
    if not form.is_text:
        _print_objects(records, form)
        return
    for record in records:
        print_record(record, names[record.key_id], form)


def print_record(record: pb.RequestRecord, key: str, form: Form) -> None:
    """Print all fields of the record of a call, and a table of its attempts at channels. `key`: its name and id."""
    print_fields(_lines(record, key), TITLE_WIDTH, form)
    if record.attempts:
        print("attempts:")
        print_table(ATTEMPT_COLUMNS, [attempt_row(record.start_time, attempt) for attempt in record.attempts], form)


async def _records(admin: AdminClient, request: pb.ListRequestRecordsRequest, limit: int) -> list[pb.RequestRecord]:
    found = list[pb.RequestRecord]()
    while True:
        request.page_size = min(PAGE_SIZE, limit - len(found))
        page = await admin.call(request, pb.ListRequestRecordsResponse)
        found.extend(page.records)
        if not page.next_page_token or len(found) >= limit:
            return found
        request.page_token = page.next_page_token


async def _key_text(admin: AdminClient, key_id: str) -> str:
    if not key_id:  # which would be the calling key
        return "unknown"
    with suppress(UmgError, CommandError):
        key = (await admin.call(pb.GetKeyRequest(key_id=key_id), pb.GetKeyResponse)).key
        return f"{key.settings.name} ({key.prefix}…, {key.key_id})"
    return key_id


def _lines(record: pb.RequestRecord, key: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a record as pairs of title and text, without counts of zero."""
    yield "request", record.request_id
    yield "time", time_text(record.start_time, "milliseconds")
    yield "outcome", _outcome(record)
    yield from _failure_lines(record)
    yield "ms", _ms(record.duration)
    if record.HasField("first_byte_duration"):
        yield "ms to first output", _ms(record.first_byte_duration)
    yield "key", key
    yield "method", record.method or "none: the HTTP server refused the call"
    yield "face", record.face
    yield "agent", record.agent or "unknown"
    if record.end_user:
        yield "end user", _printable(record.end_user)
    yield "operation", OPERATION_NAMES.get(record.operation, "none")
    yield "model", record.model
    if record.task_id:
        yield "task", record.task_id
    if record.requested_model:
        yield "fallback of", f"{record.requested_model} ({record.fallback_cause})"
    if record.guard_decisions:
        yield "guards", ", ".join(record.guard_decisions)
    for name, note in sorted(record.guard_annotations.items()):
        yield name, _printable(note)
    yield "channel", record.channel or "none"
    yield "cached response", "yes" if record.cached else "no"
    if record.dropped:
        yield "not sent", _printable(", ".join(record.dropped))
    for name, count in counts_of(record.quantities).items():
        if count:
            yield name.replace("_", " "), str(count)
    if record.quantities:
        yield "tokens counted by", "the gateway" if record.tokens_estimated else "the provider"
    yield "credits", credits_text(record.micro_credits)
    if record.prices:
        yield "prices", charged_text(record)
    yield from _refused_lines(record)


def _failure_lines(record: pb.RequestRecord) -> Iterator[tuple[str, str]]:
    if record.message:
        yield "error", _printable(record.message)
    if remedies := [attempt.remedy for attempt in record.attempts if attempt.remedy]:
        yield "to do", remedies[-1]


def _refused_lines(record: pb.RequestRecord) -> Iterator[tuple[str, str]]:
    if record.refused_calls:
        yield "refused", "before its admission, without usage and cost"
    if record.refused_calls > 1:
        yield "refused calls", f"{record.refused_calls}, of which only this one has a record"


def charged_text(record: pb.RequestRecord) -> str:
    """Return the prices by which a call was charged as text, with the conditions that applied."""
    conditions = f" ({'; '.join(record.price_conditions)})" if record.price_conditions else ""
    return ", ".join(map(price_text, record.prices)) + conditions


def _table_row(record: pb.RequestRecord, names: Mapping[str, str]) -> tuple[str, ...]:
    counts = counts_of(record.quantities)
    tokens = (sum(counts[name] for name in names) for names in (INPUT_COLUMNS, OUTPUT_COLUMNS))
    outcome = (record.status, REASON_NAMES.get(record.reason, ""))
    called = (record.model, record.channel or "none", *outcome, _ms(record.duration), str(len(record.attempts)))
    cost = credits_text(record.micro_credits)
    key = names.get(record.key_id, record.key_id)
    return (time_text(record.start_time), record.request_id, key, *called, *map(str, tokens), cost)


def _csv_row(record: pb.RequestRecord) -> dict[str, object]:
    members = {**to_json(record), "attempts": len(record.attempts)}
    known = {name: members[name] for name in CSV_COLUMNS}
    names = ("micro_credits", "refused_calls", "end_user")
    return {**known, **counts_of(record.quantities), **{name: members[name] for name in names}}


def attempt_row(start: Timestamp, attempt: pb.RequestAttempt) -> tuple[str, ...]:
    """Return the cells of the table `ATTEMPT_COLUMNS` for one attempt of a call that started at a time."""
    after = attempt.start_time.ToMicroseconds() - start.ToMicroseconds()
    return (
        attempt.channel,
        attempt.upstream_model,
        f"{after / 1000:.1f}",
        _ms(attempt.duration),
        str(attempt.upstream_status_code or ""),
        REASON_NAMES.get(attempt.reason, "ok"),
        attempt.failure_kind,
        attempt.upstream_code,
        attempt.upstream_request_id,
        _printable(attempt.upstream_message),
        attempt.protocol_choice,
    )


def _outcome(record: pb.RequestRecord) -> str:
    reason = REASON_NAMES.get(record.reason)
    return f"{record.status} ({reason})" if reason else record.status


def _ms(duration: Duration) -> str:
    return f"{duration.ToMicroseconds() / 1000:.1f}"


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
