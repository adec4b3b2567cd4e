"""Summaries of calls for administrators, as messages of `umg.v1`."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.base.time_units import micros_of, time_of
from umg_grpc.service.servicers.administration_errors import converted_errors
from umg_grpc.service.servicers.usage_filters import REASON_PREFIX, selected
from umg_grpc.service.servicers.usage_report import BUCKET_NAMES, BUCKET_VALUES, DIMENSION_NAMES, end_of
from umg_grpc.store.call_summaries import (
    CallFailure,
    CallSummaries,
    CallSummary,
    CallSums,
    CountedDurations,
    Steps,
    SummaryRequest,
)
from umg_grpc.store.database_time import Clock, utc_of
from umg_grpc.store.duration_steps import percentile
from umg_grpc.store.key_selection import EVERY_KEY, KeySelection
from umg_grpc.store.usage_tables import MONTH_BUCKET
from umg_grpc.store.usage_totals import BUCKET_MICROS, start_of
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import invalid

CHOSEN_BUCKETS, MAX_BUCKETS = 168, 1000
"""Largest numbers of buckets: of a length that this report chooses, and of one that the caller names."""
MODEL_DIMENSION = "model"
REASON_VALUES: Mapping[str, "pb.ErrorReason.ValueType"] = {
    name.removeprefix(REASON_PREFIX): value for name, value in pb.ErrorReason.items()
}


class CallSummaryReport:
    """Reader of summaries of calls."""

    def __init__(self, summaries: CallSummaries, clock: Clock) -> None:
        self._summaries = summaries
        self._clock = clock

    @converted_errors()
    async def get(self, request: pb.GetCallSummaryRequest, keys: KeySelection = EVERY_KEY) -> pb.GetCallSummaryResponse:
        """Return the summary of the calls of `keys`. Raise UmgError(INVALID_FIELD) for a wrong time or bucket."""
        now = utc_of(self._clock)
        calls = selected(request, now, keys)
        since, until = micros_of(calls.since), micros_of(calls.until or calls.since)
        calls = replace(calls, since=time_of(since), until=time_of(until))
        bucket = BUCKET_NAMES[request.bucket] if request.bucket else _bucket_of(until - since)
        starts = _starts(bucket, since, until)
        if len(starts) > MAX_BUCKETS:
            problem = f"the span has more than {MAX_BUCKETS} buckets; choose longer ones, a shorter span, or none"
            raise invalid("bucket", problem)
        dimension = DIMENSION_NAMES[request.group_by] if request.group_by else MODEL_DIMENSION
        summary = await self._summaries.read(SummaryRequest(calls, bucket, dimension, micros_of(now)))
        response = pb.GetCallSummaryResponse(bucket=BUCKET_VALUES[bucket])
        _add_totals(response, summary, since, until)
        response.buckets.extend(_bucket(summary, bucket, start) for start in starts)
        _add_groups(response, summary, starts)
        _add_failures(response, summary)
        return response


def _bucket_of(span: int) -> str:
    """Return the shortest time span of which `span` microseconds have at most `CHOSEN_BUCKETS`."""
    lengths = (name for name, micros in BUCKET_MICROS.items() if span <= CHOSEN_BUCKETS * micros)
    return next(lengths, MONTH_BUCKET)


def _starts(bucket: str, since: int, until: int) -> Sequence[int]:
    """Return the starts of the buckets that a span meets, at most one more than `MAX_BUCKETS`."""
    start, found = start_of(bucket, since), list[int]()
    while start < until and len(found) <= MAX_BUCKETS:
        found.append(start)
        start = micros_of(end_of(bucket, time_of(start)))
    return found


def _add_totals(response: pb.GetCallSummaryResponse, summary: CallSummary, since: int, until: int) -> None:
    first_byte, whole_call = Counter[int](), Counter[int]()
    for each in summary.durations.values():
        first_byte.update(each.first_byte)
        whole_call.update(each.whole_call)
    spans = (
        (response.total, summary.current, since, until, CountedDurations(first_byte, whole_call)),
        (response.previous, summary.previous, max(0, 2 * since - until), since, summary.previous_durations),
    )
    for message, groups, begin, end, durations in spans:
        message.CopyFrom(_figures(_total(groups.values()), durations))
        message.start_time.CopyFrom(_moment(time_of(begin)))
        message.end_time.CopyFrom(_moment(time_of(end)))


def _bucket(summary: CallSummary, bucket: str, start: int) -> pb.CallFigures:
    sums = _total(summary.series.get((start, group), CallSums()) for group in (*summary.top, None))
    message = _figures(sums, summary.durations.get(start))
    message.start_time.CopyFrom(_moment(time_of(start)))
    message.end_time.CopyFrom(_moment(end_of(bucket, time_of(start))))
    return message


def _add_groups(response: pb.GetCallSummaryResponse, summary: CallSummary, starts: Sequence[int]) -> None:
    def group(name: str | None, names: Iterable[str]) -> pb.CallGroup:
        known = [*names]
        current, previous = (
            _total(groups.get(each, CallSums()) for each in known) for groups in (summary.current, summary.previous)
        )
        costs = (summary.series.get((start, name), CallSums()).micro_credits for start in starts)
        return pb.CallGroup(
            value=name or "", current=_figures(current), previous=_figures(previous), micro_credits=costs
        )

    response.groups.extend(group(name, [name]) for name in summary.top)
    others = {*summary.current, *summary.previous}.difference(summary.top)
    if others:
        response.other_groups.CopyFrom(group(None, others))
        response.other_group_count = len(others)


def _add_failures(response: pb.GetCallSummaryResponse, summary: CallSummary) -> None:
    def counts(by: Callable[[CallFailure], str]) -> dict[str, tuple[int, int]]:
        found = dict[str, tuple[int, int]]()
        for failure, (now, before) in summary.failures.items():
            known = found.get(by(failure), (0, 0))
            found[by(failure)] = known[0] + now, known[1] + before
        return dict(sorted(found.items(), key=lambda item: (-item[1][0], -item[1][1], item[0])))

    by_reason = counts(lambda failure: failure.reason)
    missing = [
        max(0, sums.failed - sum(calls))
        for sums, calls in zip(
            (_total(summary.current.values()), _total(summary.previous.values())),
            zip(*by_reason.values(), strict=True) if by_reason else ((), ()),
            strict=True,
        )
    ]
    response.failures_by_reason.extend(
        pb.FailureCount(
            reason=REASON_VALUES.get(reason, pb.ERROR_REASON_UNSPECIFIED),
            request_count=now,
            previous_request_count=before,
        )
        for reason, (now, before) in by_reason.items()
    )
    if any(missing):
        now, before = missing
        response.failures_by_reason.add(request_count=now, previous_request_count=before)
    response.failures_by_channel.extend(
        pb.FailureCount(channel=channel, request_count=now, previous_request_count=before)
        for channel, (now, before) in counts(lambda failure: failure.channel).items()
    )
    response.failures_by_kind.extend(
        pb.FailureCount(kind=kind, request_count=now, previous_request_count=before)
        for kind, (now, before) in counts(lambda failure: failure.kind).items()
    )


def _moment(time: datetime) -> Timestamp:
    made = Timestamp()
    made.FromDatetime(time)
    return made


def _total(sums: Iterable[CallSums]) -> CallSums:
    total = CallSums()
    for each in sums:
        total = total.plus(each)
    return total


def _figures(sums: CallSums, durations: CountedDurations | None = None) -> pb.CallFigures:
    message = pb.CallFigures(
        request_count=sums.requests,
        failed_request_count=sums.failed,
        cached_request_count=sums.cached,
        input_tokens=sums.input_tokens,
        output_tokens=sums.output_tokens,
        cache_read_tokens=sums.cache_read_tokens,
        micro_credits=sums.micro_credits,
    )
    if durations is not None:
        for field, steps in ((message.first_byte, durations.first_byte), (message.whole_call, durations.whole_call)):
            if steps:
                field.CopyFrom(_percentiles(steps))
    return message


def _percentiles(steps: Steps) -> pb.DurationPercentiles:
    return pb.DurationPercentiles(
        call_count=steps.total(), p50=_duration(steps, 50), p95=_duration(steps, 95), p99=_duration(steps, 99)
    )


def _duration(steps: Steps, percent: int) -> Duration:
    duration = Duration()
    duration.FromTimedelta(timedelta(microseconds=percentile(steps, percent) or 0))
    return duration
