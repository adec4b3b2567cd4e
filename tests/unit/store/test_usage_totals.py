"""Totals of usage: equal to the sums of the records for each grouping, filter and time span, however these are written."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, func, select, text

from tests.support.databases import Database
from tests.support.store_fixtures import opened_stores
from tests.support.usage_records import ALL, NOW, column_sets, lines, record
from umg_grpc.base.time_units import micros_of, time_of
from umg_grpc.store import Store
from umg_grpc.store.call_count_tables import COUNT_TABLES, FAILURE_HOURS
from umg_grpc.store.database_time import GivenClock
from umg_grpc.store.usage_parts import DIMENSION_COLUMNS, SUM_BUCKETS, CallFilter, Group
from umg_grpc.store.usage_record_table import UsageRecord, UsageRecords
from umg_grpc.store.usage_sum_queries import UsageSum
from umg_grpc.store.usage_tables import SUM_COLUMNS, TOTAL_TABLES, UsageRow
from umg_grpc.store.usage_totals import BUCKET_MICROS

COUNT = 400


def varied(number: int) -> UsageRecord:
    """Return one of many records whose columns vary, over three days around the begin of a month."""
    return record(
        number,
        key_id=f"key_{number % 3}",
        model=["m", "é", "M", "a-model"][number % 4],
        channel=["main", "", "other"][number % 3 if number % 5 else 1],
        operation=["generate", "embed"][number % 7 == 0],
        agent="codex" if number % 4 == 3 else ["", "codex", "claude-code"][number // 4 % 3],
        status="UNAVAILABLE" if number % 11 == 0 else "OK",
        start_micros=micros_of(NOW.replace(day=1)) + (number * 7919 % 3600 - 1800) * 86 * 10**6 + number,
        cached=number % 13 == 0,
        input_tokens=number,
        images=number % 2,
        micro_credits=number * 1000,
    )


RECORDS = [varied(number) for number in range(COUNT)]


def expected(by: Sequence[str], calls: CallFilter) -> list[UsageSum]:
    """Return the sums of the records as Python computes them."""
    found: dict[Group, list[UsageRecord]] = {}
    for each in RECORDS:
        is_selected = all(
            not values or getattr(each, DIMENSION_COLUMNS[name]) in values for name, values in calls.only.items()
        )
        if is_selected and calls.since <= each.start_time and (calls.until is None or each.start_time < calls.until):
            found.setdefault(tuple(group_value(each, name) for name in by), []).append(each)
    return [
        UsageSum(
            group,
            len(records),
            sum(each.status != "OK" for each in records),
            {name: sum(getattr(each, name) for each in records) for name in SUM_COLUMNS},
            sum(each.cached for each in records),
        )
        for group, records in sorted(found.items())
    ]


def group_value(each: UsageRecord, name: str) -> int | str:
    """Return the value by which a record is grouped for the dimension or time span `name`."""
    if name in DIMENSION_COLUMNS:
        value: str = getattr(each, DIMENSION_COLUMNS[name])
        return value
    if name in BUCKET_MICROS:
        return each.start_micros - each.start_micros % BUCKET_MICROS[name]
    return micros_of(each.start_time.replace(day=1, hour=0, minute=0, second=0, microsecond=0))


@pytest.fixture
async def records(usage_store: Store) -> UsageRecords:
    usage_store.clock = GivenClock(lambda: NOW.replace(day=2))
    records = UsageRecords(usage_store)
    await records.insert(lines(*RECORDS))
    return records


@dataclass(frozen=True)
class Selection:
    """Selection of calls of which the sums are compared."""

    id: str
    calls: CallFilter
    by: Sequence[Sequence[str]] = field(
        default_factory=lambda: [
            [*bucket, *names] for bucket in ([], *([name] for name in SUM_BUCKETS)) for names in column_sets()
        ]
    )


MIDDLE = NOW.replace(day=1)
SELECTIONS = [
    Selection("all", CallFilter(ALL)),
    Selection("whole days", CallFilter(MIDDLE.replace(hour=0), MIDDLE.replace(hour=0) + timedelta(days=1))),
    Selection(
        "a span with parts of days, hours and minutes at both ends",
        CallFilter(
            MIDDLE - timedelta(days=1, hours=2, minutes=3, seconds=4, microseconds=5),
            MIDDLE + timedelta(hours=9, minutes=8, seconds=7, microseconds=6),
        ),
    ),
    Selection(
        "a span within an hour",
        CallFilter(MIDDLE + timedelta(minutes=4, seconds=1), MIDDLE + timedelta(minutes=55, seconds=3)),
    ),
    Selection("a span within a minute", CallFilter(MIDDLE, MIDDLE + timedelta(seconds=30))),
    Selection(
        "some models and channels",
        CallFilter(MIDDLE - timedelta(hours=30), None, {"model": ["m", "é"], "channel": ["main", ""], "key": []}),
        by=[[], ["day"], ["hour", "model"], ["key"], ["month", "channel"]],
    ),
    Selection(
        "one key",
        CallFilter(MIDDLE - timedelta(hours=30), MIDDLE + timedelta(seconds=1), {"key": ["key_1"]}),
        by=[[], ["day"], ["hour", "model"], ["minute"], ["month", "key", "channel"]],
    ),
]


@pytest.mark.parametrize("selection", SELECTIONS, ids=lambda each: each.id)
async def test_sums_are_equal_to_those_of_the_records(usage_store: Store, selection: Selection) -> None:
    usage_store.clock = GivenClock(lambda: NOW.replace(day=2))
    records = UsageRecords(usage_store)
    await records.insert(lines(*RECORDS[: COUNT // 2]))
    await records.insert(lines(*RECORDS[COUNT // 3 :]))  # some again
    for by in selection.by:
        assert await records.sums(by, selection.calls) == expected(by, selection.calls), by


async def test_pages_of_sums_are_the_whole_list(records: UsageRecords) -> None:
    calls = CallFilter(MIDDLE - timedelta(hours=30, seconds=5), MIDDLE + timedelta(hours=7, seconds=3))
    for by in (
        ["hour", "key", "model"],
        ["key", "model", "operation", "channel"],
        ["month", "model"],
        ["minute"],
        ["day", "model", "agent"],
    ):
        paged = list[UsageSum]()
        while page := await records.sums(by, calls, after=paged[-1].group if paged else (), limit=3):
            assert len(page) == 3 or len(paged) + len(page) == len(expected(by, calls))
            paged += page
        assert paged == expected(by, calls), by


async def test_totals_remain_without_the_records(usage_store: Store, records: UsageRecords) -> None:
    async with usage_store.write() as session:
        await session.execute(delete(UsageRow))
    for by in ([], ["day", "key"], ["hour", "channel"], ["month", "model", "operation"], ["day", "model", "agent"]):
        assert await records.sums(by, CallFilter(ALL)) == expected(by, CallFilter(ALL))


@pytest.mark.parametrize("bucket", ["", *SUM_BUCKETS])
async def test_a_span_may_end_at_the_last_time_that_a_datetime_has(usage_store: Store, bucket: str) -> None:
    records = UsageRecords(usage_store)
    await records.insert(lines(*RECORDS))
    by, last = [*([bucket] if bucket else []), "key"], datetime.max.replace(tzinfo=UTC)
    everything = await records.sums(by, CallFilter(ALL, last), limit=COUNT + 1)
    assert everything == expected(by, CallFilter(ALL))
    assert await records.sums(by, CallFilter(last - timedelta(days=40), last), limit=10) == []


async def test_sums_without_the_key_are_read_from_the_totals_without_it(
    usage_store: Store, records: UsageRecords
) -> None:
    async with usage_store.write() as session:
        for table in (UsageRow.__table__, *(totals.table for totals in TOTAL_TABLES if "key_id" in totals.columns)):
            await session.execute(text(f"DELETE FROM {table.name}"))
    calls = CallFilter(ALL, only={"key": [], "model": ["m"], "channel": []})
    for by in ([], ["day", "model"], ["hour", "channel"], ["month", "operation"]):
        assert await records.sums(by, calls) == expected(by, calls)


async def test_usage_begins_with_the_oldest_call_of_any_agent(usage_store: Store) -> None:
    records = UsageRecords(usage_store)
    await records.insert(lines(record(0, start_micros=micros_of(NOW - timedelta(days=40))), record(1, agent="codex")))
    begin = await records.begin()
    assert begin.totals["day"] == (NOW - timedelta(days=40)).replace(hour=0)


async def test_totals_of_versions_without_agents_are_of_unknown_agents(
    usage_store: Store, records: UsageRecords
) -> None:
    async with usage_store.write() as session:
        await session.execute(delete(UsageRow))
        for totals in TOTAL_TABLES:
            if totals.has_agents:
                await session.execute(delete(totals.table))
    [unknown] = await records.sums(["agent"], CallFilter(ALL))
    [everything] = await records.sums([], CallFilter(ALL))
    assert (unknown.group, unknown.requests, unknown.sums) == (("",), COUNT, everything.sums)


async def test_processes_that_write_the_same_records_at_once_count_each_once(
    prepared_database: Database,
) -> None:
    async with opened_stores(prepared_database, 4) as stores:
        batches = [RECORDS[first : first + 100] for first in range(0, COUNT, 50)]
        await asyncio.gather(
            *(
                UsageRecords(store).insert(lines(*(batch[:: 1 - 2 * (number % 2)])))
                for number, store in enumerate(stores)
                for batch in batches
            )
        )
        async with stores[0].read() as session:
            for totals in TOTAL_TABLES:
                columns = totals.table.c
                query = select(func.sum(columns.requests), func.sum(columns.micro_credits))
                [(requests, cost)] = (await session.execute(query)).all()
                counted = [each for each in RECORDS if each.agent or not totals.has_agents]
                expected_cost = sum(each.micro_credits for each in counted)
                assert (requests, cost) == (len(counted), expected_cost), totals.table.name
            failed = sum(each.status != "OK" for each in RECORDS)
            for totals in COUNT_TABLES:
                calls = await session.scalar(select(func.sum(totals.table.c.calls)))
                assert calls == (failed if totals is FAILURE_HOURS else COUNT), totals.table.name


def test_the_records_cover_several_months_days_and_hours() -> None:
    starts = {name: len({group_value(each, name) for each in RECORDS}) for name in SUM_BUCKETS}
    assert starts["month"] == 2
    assert starts["day"] >= 3
    assert starts["hour"] > 50
    assert time_of(min(each.start_micros for each in RECORDS)) < MIDDLE.replace(hour=0)
