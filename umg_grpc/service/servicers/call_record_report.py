"""Records of calls, as messages of `umg.v1`, for administrators and for the callers themselves."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from google.protobuf.duration_pb2 import Duration

from umg_grpc.base.errors import UmgError
from umg_grpc.base.provider_failure import FailureKind, ProviderFailure
from umg_grpc.base.time_units import micros_of
from umg_grpc.service.pipeline.usage_record_fields import SCHEMA_PACKAGE
from umg_grpc.service.provider_failure_advice import remedy_of_kind
from umg_grpc.service.servicers.administration_errors import converted_errors
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.service.servicers.usage_filters import Position, position_of, selected
from umg_grpc.service.servicers.usage_report import quantities
from umg_grpc.store.database_time import Clock, utc_of
from umg_grpc.store.key_selection import KeySelection
from umg_grpc.store.refused_call_table import RefusedCall, RefusedCalls
from umg_grpc.store.usage_record_table import MAX_FOUND, AttemptRecord, CallDetails, UsageRecords
from umg_grpc.store.usage_sum_queries import FOREVER_MICROS
from umg_grpc.v1 import pb
from umg_grpc.wire.administration_api_json import MODEL_OPERATION_VALUES
from umg_grpc.wire.core.json_decoding import echo

PAGE_SIZE = 100
UNITS_BY_NUMBER = {int(unit): unit for unit in pb.BillableUnit.values()}
NO_DETAILS = CallDetails(attempts=[], message="", first_output_micros=None, dropped=[])


@dataclass(frozen=True)
class Reader:
    """Caller that reads records: the keys whose calls it may see, and how much of them."""

    keys: KeySelection
    sees_details: bool
    """Whether it sees the attempts and the annotations of guards, which are for administrators."""
    sees_channels: bool


class _RecordPosition(Position, array_like=True):
    """Position in the list of records, encoded in a page token: start time and id of the last record of a page."""

    start: Annotated[int, msgspec.Meta(ge=0, lt=FOREVER_MICROS)]
    record_id: str


class RequestReport:
    """Reader of the records of calls: one by its request id, or a list page by page."""

    def __init__(self, records: UsageRecords, refused: RefusedCalls, clock: Clock) -> None:
        self._records = records
        self._refused = refused
        self._clock = clock

    @converted_errors()
    async def get(self, request: pb.GetRequestRecordRequest, reader: Reader) -> pb.GetRequestRecordResponse:
        """Return the records with a request id that the caller may read. Raise UmgError(OBJECT_NOT_FOUND) for none."""
        admitted = [RefusedCall(record, 0) for record in await self._records.find(request.request_id, reader.keys)]
        refused = await self._refused.find(request.request_id, reader.keys)
        found = sorted([*admitted, *refused], key=_place)[-MAX_FOUND:]
        if not found:
            message = (
                f"there is no record of {echo(request.request_id)}: it ended less than two seconds ago, is older than"
                " `usage.ttl` of the config, is of another key, or was refused after many others in its minute"
            )
            raise UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=request.request_id[:100])
        newest, *earlier = [_message(each, reader) for each in reversed(found)]
        return pb.GetRequestRecordResponse(record=newest, earlier_records=earlier)

    @converted_errors()
    async def list(self, request: pb.ListRequestRecordsRequest, reader: Reader) -> pb.ListRequestRecordsResponse:
        """Return a page of records, newest first. Raise UmgError(INVALID_FIELD) for an invalid filter or page token."""
        calls, after = selected(request, utc_of(self._clock), reader.keys), None
        if request.page_token:
            position = position_of(request.page_token, _RecordPosition)
            calls, after = position.apply_to(calls), (position.start, position.record_id)
        size = request.page_size if request.HasField("page_size") else PAGE_SIZE
        admitted = [RefusedCall(record, 0) for record in await self._records.page(calls, after, size + 1)]
        refused = await self._refused.page(calls, after, size + 1)
        found = sorted([*admitted, *refused], key=_place, reverse=True)
        response = pb.ListRequestRecordsResponse(records=[_message(each, reader) for each in found[:size]])
        if len(found) > size:
            since, until, last = micros_of(calls.since), micros_of(calls.until or calls.since), found[size - 1].record
            response.next_page_token = _RecordPosition(since, until, last.start_micros, last.record_id).token()
        return response


def _place(each: RefusedCall) -> tuple[int, str]:
    return each.record.start_micros, each.record.record_id


def _message(each: RefusedCall, reader: Reader) -> pb.RequestRecord:
    """Return a record as a message. `each`: with the number of refused calls, 0 for an admitted call."""
    record = each.record
    details = record.details or NO_DETAILS
    message = pb.RequestRecord(
        request_id=record.request_id,
        key_id=record.key_id,
        operation=MODEL_OPERATION_VALUES.get(record.operation, pb.MODEL_OPERATION_UNSPECIFIED),
        method=SCHEMA_PACKAGE + record.method if record.method else "",
        face=record.face,
        model=record.model,
        streamed="/Stream" in record.method,
        start_time=timestamp(record.start_time),
        duration=_duration(record.duration_micros),
        status=record.status,
        reason=_reason(record.reason),
        message=details.message,
        dropped=details.dropped,
        quantities=quantities(msgspec.structs.asdict(record)),
        micro_credits=record.micro_credits,
        tokens_estimated=record.estimated,
        cached=record.cached,
        channel=record.channel if reader.sees_channels else "",
        attempts=attempt_messages(record.start_time, details.attempts) if reader.sees_details else [],
        prices=[
            pb.Price(unit=UNITS_BY_NUMBER.get(unit, pb.BILLABLE_UNIT_UNSPECIFIED), micro_credits_per_million=price)
            for unit, price in details.prices
        ],
        price_conditions=details.price_conditions,
        agent=record.agent,
        requested_model=details.requested_model or None,
        fallback_cause=details.fallback_cause or None,
        task_id=details.task_id or None,
        guard_decisions=details.guards,
        guard_annotations=details.guard_notes if reader.sees_details else {},
        refused_calls=each.calls,
        end_user=record.end_user,
    )
    if details.first_output_micros is not None:
        message.first_byte_duration.CopyFrom(_duration(details.first_output_micros))
    return message


def attempt_messages(start_time: datetime, attempts: Sequence[AttemptRecord]) -> list[pb.RequestAttempt]:
    """Return the attempts of a call that started at a time as messages."""
    return [
        pb.RequestAttempt(
            channel=attempt.channel,
            upstream_model=attempt.model,
            start_time=timestamp(start_time + timedelta(microseconds=attempt.start_micros)),
            duration=_duration(attempt.duration_micros),
            upstream_status_code=attempt.status or None,
            reason=_reason(attempt.reason),
            upstream_request_id=attempt.request_id or None,
            failure_kind=attempt.kind or None,
            upstream_code=attempt.code or None,
            upstream_message=attempt.message or None,
            protocol_choice=attempt.protocol or None,
            remedy=_remedy(attempt) or None,
        )
        for attempt in attempts
    ]


def _remedy(attempt: AttemptRecord) -> str:
    facts = ProviderFailure(FailureKind.REQUEST, attempt.status, message=attempt.message, model=attempt.model)
    return remedy_of_kind(attempt.kind, facts)


def _reason(name: str) -> "pb.ErrorReason.ValueType":
    return dict(pb.ErrorReason.items()).get(f"ERROR_REASON_{name}", pb.ERROR_REASON_UNSPECIFIED)


def _duration(micros: int) -> Duration:
    duration = Duration()
    duration.FromTimedelta(timedelta(microseconds=micros))
    return duration
