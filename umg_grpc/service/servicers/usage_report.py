"""Usage for administrators: sums of records by time, key, model, channel and other dimensions, as messages."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from umg_grpc.access.api_keys import Key
from umg_grpc.base.time_units import micros_of, time_of
from umg_grpc.knowledge.price_calculation import Unit
from umg_grpc.service.pipeline.usage_record_fields import UNIT_FIELDS
from umg_grpc.service.servicers.administration_errors import converted_errors
from umg_grpc.service.servicers.timestamps import timestamp, utc
from umg_grpc.service.servicers.usage_filters import Position, position_of, selected, unknown_token
from umg_grpc.store.database_time import Clock, utc_of
from umg_grpc.store.key_selection import EVERY_KEY, KeySelection
from umg_grpc.store.usage_parts import ALL_DIMENSIONS, CallFilter
from umg_grpc.store.usage_record_table import UsageRecords
from umg_grpc.store.usage_sum_queries import UsageBegin, UsageSum
from umg_grpc.store.usage_tables import DAY_BUCKET, HOUR_BUCKET, MINUTE_BUCKET, MONTH_BUCKET
from umg_grpc.store.usage_totals import BUCKET_MICROS
from umg_grpc.v1 import pb
from umg_grpc.wire.administration_api_json import MODEL_OPERATION_VALUES
from umg_grpc.wire.core.json_decoding import invalid
from umg_grpc.wire.protobuf_json import enum_names

PAGE_SIZE = 1000
MAX_BUCKETS = 10_000
MIN_MONTH_MICROS = 28 * BUCKET_MICROS["day"]
BUCKET_NAMES = enum_names(pb.UsageBucket.DESCRIPTOR)
BUCKET_VALUES: Mapping[str, "pb.UsageBucket.ValueType"] = {
    name: pb.UsageBucket.ValueType(value) for value, name in BUCKET_NAMES.items()
}
DIMENSION_NAMES = enum_names(pb.UsageDimension.DESCRIPTOR)
UNIT_COLUMNS: Sequence[tuple[Unit, str]] = sorted(UNIT_FIELDS.items())
"""Pairs of a unit and the field of usage records that counts it, in the order of the enum."""


class _GroupPosition(Position, array_like=True):
    """Position in the list of sums, encoded in a page token: the group of the last sum of a page."""

    group: list[int | str]
    """Values by which the last sum of the page is grouped, in the order of the grouping."""


class UsageReport:
    """Reader of usage: of one key, or sums of all usage records page by page."""

    def __init__(self, records: UsageRecords, clock: Clock) -> None:
        self._records = records
        self._clock = clock

    @converted_errors()
    async def of_key(self, key: Key, message: pb.Key, request: pb.GetUsageRequest) -> pb.GetUsageResponse:
        """Return a key's usage in the time span of a request, and the rest of its budget. `message`: of the key."""
        since = utc(request.start_time) if request.HasField("start_time") else key.create_time
        until = utc(request.end_time) if request.HasField("end_time") else utc_of(self._clock)
        found = await self._records.sums([], CallFilter(since, until, {"key": [key.key_id]}))
        span = pb.UsageEntry(start_time=timestamp(since), end_time=timestamp(max(since, until)))
        response = pb.GetUsageResponse(key=message, usage=_entry([], found[0], span) if found else span)
        if key.budget_micro_credits is not None:
            spent = message.spent_micro_credits + message.reserved_micro_credits
            response.remaining_micro_credits = max(0, key.budget_micro_credits - spent)
        return response

    @converted_errors()
    async def list(self, request: pb.ListUsageRequest, keys: KeySelection = EVERY_KEY) -> pb.ListUsageResponse:
        """Return one page of sums of the usage by `keys`, one for each group. Raise UmgError(INVALID_FIELD) for a wrong
        filter or token.
        """
        calls, after = selected(request, utc_of(self._clock), keys), list[int | str]()
        grouped = {DIMENSION_NAMES[dimension] for dimension in request.group_by}
        by = [name for name in ALL_DIMENSIONS if name in grouped]
        if request.bucket:
            by.insert(0, BUCKET_NAMES[request.bucket])
        if request.page_token:
            position = position_of(request.page_token, _GroupPosition)
            calls, after = position.apply_to(calls), position.group
            if [isinstance(value, str) for value in after] != [name in ALL_DIMENSIONS for name in by]:
                raise unknown_token()
        since, until = micros_of(calls.since), micros_of(calls.until or calls.since)
        if request.bucket and (until - since) // BUCKET_MICROS.get(by[0], MIN_MONTH_MICROS) > MAX_BUCKETS:
            problem = f"the span has more than {MAX_BUCKETS} buckets; choose longer ones or a shorter span"
            raise invalid("bucket", problem)
        size = request.page_size if request.HasField("page_size") else PAGE_SIZE
        found = await self._records.sums(by, calls, after=tuple(after), limit=size + 1)
        span = pb.UsageEntry(start_time=timestamp(calls.since), end_time=timestamp(calls.until))
        response = pb.ListUsageResponse(entries=[_entry(by, group, span) for group in found[:size]])
        if not request.page_token:
            _add_begin(response, await self._records.begin())
        if len(found) > size:
            response.next_page_token = _GroupPosition(since, until, [*found[size - 1].group]).token()
        return response


def _add_begin(response: pb.ListUsageResponse, begin: UsageBegin) -> None:
    if begin.records is not None:
        response.record_begin_time.FromDatetime(begin.records)
    for field, bucket in (
        (response.minute_begin_time, MINUTE_BUCKET),
        (response.hour_begin_time, HOUR_BUCKET),
        (response.day_begin_time, DAY_BUCKET),
    ):
        if bucket in begin.totals:
            field.FromDatetime(begin.totals[bucket])


def _entry(by: Sequence[str], group: UsageSum, span: pb.UsageEntry) -> pb.UsageEntry:
    entry = pb.UsageEntry(
        request_count=group.requests,
        failed_request_count=group.failed,
        cached_request_count=group.cached,
        quantities=quantities(group.sums),
        micro_credits=group.sums["micro_credits"],
    )
    entry.MergeFrom(span)
    for name, value in zip(by, group.group, strict=True):
        match name, value:
            case "key", str():
                entry.key_id = value
            case "model", str():
                entry.model = value
            case "channel", str():
                entry.channel = value
            case "agent", str():
                entry.agent = value
            case "project", str():
                entry.project_id = value
            case "owner", str():
                entry.user_id = value
            case "tag", str():
                entry.tag_value = value
            case "operation", str():
                entry.operation = MODEL_OPERATION_VALUES.get(value, pb.MODEL_OPERATION_UNSPECIFIED)
            case bucket, start:
                begins = time_of(int(start))
                entry.start_time.FromDatetime(begins)
                entry.end_time.FromDatetime(end_of(bucket, begins))
    return entry


def quantities(counts: Mapping[str, int]) -> list[pb.Quantity]:
    """Return the counts of a usage record or a sum (field -> number) as quantities with units, without zeros."""
    return [pb.Quantity(unit=unit, count=counts[name]) for unit, name in UNIT_COLUMNS if counts[name]]


def end_of(bucket: str, begins: datetime) -> datetime:
    """Return the end of the time span (`bucket`) that begins at a time; of the last one of all the end of time."""
    try:
        if bucket == MONTH_BUCKET:
            return (begins + timedelta(days=31)).replace(day=1)
        return begins + timedelta(microseconds=BUCKET_MICROS[bucket])
    except OverflowError:
        return datetime.max.replace(tzinfo=begins.tzinfo)
