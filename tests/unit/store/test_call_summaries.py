"""Summaries of calls, which are compared with those of the records themselves, and with the sums of usage."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from sqlalchemy import event, text

from tests.support.usage_records import lines, record
from umg_grpc.base.time_units import micros_of
from umg_grpc.service.servicers.call_summary_report import CallSummaryReport
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.service.servicers.usage_report import UsageReport
from umg_grpc.store import Store
from umg_grpc.store.call_count_tables import COUNT_TABLES
from umg_grpc.store.call_summaries import MAX_GROUPS, CallSummaries
from umg_grpc.store.database_time import GivenClock
from umg_grpc.store.duration_steps import percentile, step_of
from umg_grpc.store.usage_record_table import UsageRecord, UsageRecords
from umg_grpc.v1 import pb

NOW = datetime(2026, 5, 4, 12, 34, 56, 789, tzinfo=UTC)
COUNT = 600
DAYS = 9
FAILURES = (("UPSTREAM_UNPAID", "unpaid"), ("UPSTREAM_TIMEOUT", "slow"), ("CANCELLED", ""))


def _record(number: int, random: Random) -> UsageRecord:
    reason, kind = random.choice(FAILURES) if number % 5 == 0 else ("", "")
    return record(
        number,
        start_micros=micros_of(NOW) - random.randrange(DAYS * 86_400) * 10**6 - 1,
        key_id=f"key_{number % 4}",
        model=f"m{random.randrange(12)}",
        channel=random.choice(("main", "spare", "")),
        agent=random.choice(("codex", "")),
        status="UNAVAILABLE" if reason else "OK",
        reason=reason,
        failure_kind=kind,
        cached=number % 7 == 0,
        duration_micros=random.randrange(1, 10**8),
        first_byte_micros=random.randrange(1, 10**7) if number % 3 else None,
        micro_credits=random.randrange(10**6),
        output_tokens=random.randrange(1000),
        cache_read_tokens=random.randrange(100),
        reasoning_tokens=random.randrange(10),
    )


RECORDS = [_record(number, Random(number)) for number in range(COUNT)]


@dataclass(frozen=True)
class Summarised:
    id: str
    span: timedelta
    bucket: "pb.UsageBucket.ValueType"
    """That which the report chooses, or which is named."""
    is_named: bool = False
    end: datetime = NOW
    filters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    is_selected: Callable[[UsageRecord], bool] = lambda _: True
    group_by: "pb.UsageDimension.ValueType" = pb.USAGE_DIMENSION_UNSPECIFIED
    group: Callable[[UsageRecord], str] = lambda each: each.model

    def request(self) -> pb.GetCallSummaryRequest:
        return pb.GetCallSummaryRequest(
            start_time=timestamp(self.end - self.span),
            end_time=timestamp(self.end),
            bucket=self.bucket if self.is_named else None,
            group_by=self.group_by,
            **self.filters,  # type: ignore[arg-type]
        )

    def calls(self, *, before: bool = False) -> list[UsageRecord]:
        end = micros_of(self.end - self.span if before else self.end)
        begin = end - self.span // timedelta(microseconds=1)
        return [each for each in RECORDS if begin <= each.start_micros < end and self.is_selected(each)]


CASES = [
    Summarised("two hours", timedelta(hours=2), pb.USAGE_BUCKET_MINUTE),
    Summarised("ten hours", timedelta(hours=10), pb.USAGE_BUCKET_FIVE_MINUTES),
    Summarised("a day", timedelta(days=1), pb.USAGE_BUCKET_HOUR),
    Summarised("a day by five minutes", timedelta(days=1), pb.USAGE_BUCKET_FIVE_MINUTES, is_named=True),
    Summarised("four days by day", timedelta(days=4), pb.USAGE_BUCKET_DAY, is_named=True),
    Summarised("thirty days", timedelta(days=30), pb.USAGE_BUCKET_DAY),
    Summarised("a year", timedelta(days=365), pb.USAGE_BUCKET_MONTH),
    Summarised("a past span", timedelta(days=2), pb.USAGE_BUCKET_HOUR, end=NOW - timedelta(days=3, minutes=7)),
    Summarised(
        "a key by channel",
        timedelta(days=4),
        pb.USAGE_BUCKET_HOUR,
        filters={"key_ids": ["key_1"]},
        is_selected=lambda each: each.key_id == "key_1",
        group_by=pb.USAGE_DIMENSION_CHANNEL,
        group=lambda each: each.channel,
    ),
    Summarised(
        "models and a channel by key",
        timedelta(days=8),
        pb.USAGE_BUCKET_DAY,
        filters={"models": ["m1", "m2"], "channels": ["main"]},
        is_selected=lambda each: each.model in {"m1", "m2"} and each.channel == "main",
        group_by=pb.USAGE_DIMENSION_KEY,
        group=lambda each: each.key_id,
    ),
    Summarised(
        "an agent by agent",
        timedelta(days=4),
        pb.USAGE_BUCKET_DAY,
        is_named=True,
        filters={"agents": ["codex"]},
        is_selected=lambda each: each.agent == "codex",
        group_by=pb.USAGE_DIMENSION_AGENT,
        group=lambda each: each.agent,
    ),
    Summarised("by agent", timedelta(days=4), pb.USAGE_BUCKET_HOUR, group_by=pb.USAGE_DIMENSION_AGENT,
               group=lambda each: each.agent),
]  # fmt: skip


@pytest.fixture
async def store(usage_store: Store) -> Store:
    usage_store.clock = GivenClock(lambda: NOW)
    records = UsageRecords(usage_store)
    await records.insert(lines(*RECORDS[: COUNT // 2]))
    await records.insert(lines(*RECORDS[COUNT // 3 :]))  # some again
    return usage_store


def _report(store: Store) -> CallSummaryReport:
    return CallSummaryReport(CallSummaries(store), store.clock)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_summary_is_that_of_the_records(store: Store, case: Summarised) -> None:
    summary = await _report(store).get(case.request())
    now, before = case.calls(), case.calls(before=True)
    assert summary.bucket == case.bucket
    for figures, calls in ((summary.total, now), (summary.previous, before)):
        assert _plain(figures) == _figures(calls)
        assert _durations(figures) == _expected_durations(calls)
    _check_buckets(summary, case, now)
    _check_groups(summary, case, now, before)
    _check_failures(summary, now, before)


def _check_buckets(summary: pb.GetCallSummaryResponse, case: Summarised, now: Sequence[UsageRecord]) -> None:
    bounds = [(micros_of(_time(each.start_time)), micros_of(_time(each.end_time))) for each in summary.buckets]
    assert [end for _, end in bounds[:-1]] == [start for start, _ in bounds[1:]]
    assert bounds[0][0] <= micros_of(case.end - case.span) < bounds[0][1]
    assert bounds[-1][0] < micros_of(case.end) <= bounds[-1][1]
    for figures, (start, end) in zip(summary.buckets, bounds, strict=True):
        calls = [each for each in now if start <= each.start_micros < end]
        assert (figures.request_count, figures.failed_request_count, figures.micro_credits) == (
            len(calls),
            sum(each.status != "OK" for each in calls),
            sum(each.micro_credits for each in calls),
        )
        assert _durations(figures) == _expected_durations(calls)


def _check_groups(
    summary: pb.GetCallSummaryResponse, case: Summarised, now: Sequence[UsageRecord], before: Sequence[UsageRecord]
) -> None:
    costs = Counter[str]()
    for each in now:
        costs[case.group(each)] += each.micro_credits
    ordered = sorted(costs, key=lambda name: (-costs[name], name))
    assert [group.value for group in summary.groups] == ordered[:MAX_GROUPS]
    others = ({*costs} | {case.group(each) for each in before}) - {*ordered[:MAX_GROUPS]}
    assert summary.other_group_count == len(others)
    assert summary.HasField("other_groups") == bool(others)
    groups = [({group.value}, group) for group in summary.groups]
    if others:
        groups.append((others, summary.other_groups))
    for names, group in groups:
        calls = [each for each in now if case.group(each) in names]
        assert _plain(group.current) == _figures(calls)
        assert _plain(group.previous) == _figures([each for each in before if case.group(each) in names])
        assert [*group.micro_credits] == [
            sum(
                each.micro_credits
                for each in calls
                if _time(bucket.start_time) <= each.start_time < _time(bucket.end_time)
            )
            for bucket in summary.buckets
        ]


def _check_failures(
    summary: pb.GetCallSummaryResponse, now: Sequence[UsageRecord], before: Sequence[UsageRecord]
) -> None:
    values: tuple[tuple[Sequence[pb.FailureCount], Callable[[pb.FailureCount], str], Callable[[UsageRecord], str]], ...]
    values = (
        (
            summary.failures_by_reason,
            lambda each: pb.ErrorReason.Name(each.reason).removeprefix("ERROR_REASON_"),
            lambda each: each.reason,
        ),
        (summary.failures_by_channel, lambda each: each.channel, lambda each: each.channel),
        (summary.failures_by_kind, lambda each: each.kind, lambda each: each.failure_kind),
    )
    for counts, name, value in values:
        current, previous = (Counter(value(each) for each in calls if each.status != "OK") for calls in (now, before))
        assert {name(each): (each.request_count, each.previous_request_count) for each in counts} == {
            each: (current[each], previous[each]) for each in {*current, *previous}
        }
        assert [each.request_count for each in counts] == sorted(current[name(each)] for each in counts)[::-1]


def _plain(figures: pb.CallFigures) -> tuple[int, ...]:
    return (
        *(figures.request_count, figures.failed_request_count, figures.cached_request_count),
        *(figures.input_tokens, figures.output_tokens, figures.cache_read_tokens, figures.micro_credits),
    )


def _figures(calls: Sequence[UsageRecord]) -> tuple[int, ...]:
    return (
        len(calls),
        sum(each.status != "OK" for each in calls),
        sum(each.cached for each in calls),
        sum(each.input_tokens + each.cache_read_tokens for each in calls),
        sum(each.output_tokens + each.reasoning_tokens for each in calls),
        sum(each.cache_read_tokens for each in calls),
        sum(each.micro_credits for each in calls),
    )


def _durations(figures: pb.CallFigures) -> list[tuple[int, ...]]:
    return [
        (each.call_count, *(value.ToMicroseconds() for value in (each.p50, each.p95, each.p99)))
        for name in ("first_byte", "whole_call")
        for each in ([getattr(figures, name)] if figures.HasField(name) else [])  # type: ignore[arg-type]
    ]


def _expected_durations(calls: Sequence[UsageRecord]) -> list[tuple[int, ...]]:
    successful = [each for each in calls if each.status == "OK"]
    first_byte = Counter(step_of(each.first_byte_micros) for each in successful if each.first_byte_micros is not None)
    whole_call = Counter(step_of(each.duration_micros) for each in successful)
    return [
        (steps.total(), *(percentile(steps, percent) or 0 for percent in (50, 95, 99)))
        for steps in (first_byte, whole_call)
        if steps
    ]


def _time(moment: object) -> datetime:
    found: datetime = moment.ToDatetime(UTC)  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_the_sums_are_those_of_the_list_of_usage(store: Store, case: Summarised) -> None:
    summary = await _report(store).get(case.request())
    request = pb.ListUsageRequest(
        start_time=summary.total.start_time,
        end_time=summary.total.end_time,
        **case.filters,  # type: ignore[arg-type]
    )
    usage = await UsageReport(UsageRecords(store), store.clock).list(request)
    [entry] = usage.entries
    assert (entry.request_count, entry.failed_request_count, entry.cached_request_count, entry.micro_credits) == (
        *(summary.total.request_count, summary.total.failed_request_count, summary.total.cached_request_count),
        summary.total.micro_credits,
    )
    assert sum(each.count for each in entry.quantities) == summary.total.input_tokens + summary.total.output_tokens
    assert sum(bucket.micro_credits for bucket in summary.buckets) == entry.micro_credits


async def test_a_summary_is_at_most_five_queries(store: Store) -> None:
    sent = list[str]()
    engine = store._engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda _1, _2, statement, *_: sent.append(statement))
    await _report(store).get(CASES[0].request())
    assert len([statement for statement in sent if statement.startswith("SELECT")]) == 5


async def test_calls_of_earlier_versions_have_no_durations_and_failures_without_a_reason(store: Store) -> None:
    case = next(case for case in CASES if case.id == "thirty days")
    async with store.write() as session:
        for totals in COUNT_TABLES:
            await session.execute(text(f"DELETE FROM {totals.table.name}"))
        await session.execute(text("DELETE FROM call_records"))
    summary = await _report(store).get(case.request())
    failed = sum(each.status != "OK" for each in RECORDS)
    assert not summary.total.HasField("whole_call")
    assert [(each.reason, each.request_count) for each in summary.failures_by_reason] == [
        (pb.ERROR_REASON_UNSPECIFIED, failed)
    ]
    assert [*summary.failures_by_kind] == []


async def test_a_summary_of_nothing_has_its_buckets(usage_store: Store) -> None:
    usage_store.clock = GivenClock(lambda: NOW)
    summary = await _report(usage_store).get(pb.GetCallSummaryRequest(start_time=timestamp(NOW - timedelta(hours=1))))
    assert (summary.total.request_count, len(summary.buckets), [*summary.groups]) == (0, 61, [])
    assert not summary.HasField("other_groups")
