"""Pages of usage records by their filters: those of the selected calls, without reading the others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event

from tests.support.usage_records import NOW, lines, record
from umg_grpc.base.time_units import micros_of
from umg_grpc.store import Store, usage_record_pages
from umg_grpc.store.usage_parts import CallFilter
from umg_grpc.store.usage_record_table import UsageRecord, UsageRecords

SINCE, UNTIL = NOW - timedelta(days=90), NOW + timedelta(hours=1)
SIZE = 20


def _record(number: int) -> UsageRecord:
    """Return a record of 90 days, three in an hour, of which two arrived at the same time."""
    failed = number % 4 == 0
    return record(
        number,
        record_id=f"boot-{number:05}",
        request_id=f"req_{number:03}" if number % 3 else f"job-{number}",
        start_micros=micros_of(NOW - timedelta(hours=number // 3, minutes=10 * (number % 3 // 2))),
        model=f"m{number % 7}",
        key_id="key_a" if number % 2 else f"key_{number % 30}",
        operation="embed" if number % 5 == 0 else "generate",
        channel="" if number % 50 == 0 else "main",
        agent="codex" if number % 11 == 0 else "",
        status="UNAVAILABLE" if failed else "OK",
        reason=("UPSTREAM_UNPAID" if number % 8 else "CANCELLED") if failed else "",
        failure_kind="unpaid" if failed and number % 8 else "",
        duration_micros=number * 10**5,
        first_byte_micros=number * 10**3 if number % 2 else None,
        end_user="ann" if number % 13 == 0 else "",
    )


RECORDS = [_record(number) for number in range(2000)]


@dataclass(frozen=True)
class Selected:
    id: str
    is_selected: Callable[[UsageRecord], bool]
    criteria: Mapping[str, Any] = field(default_factory=dict)
    only: Mapping[str, list[str]] = field(default_factory=dict)


CASES = [
    Selected("all", lambda _: True),
    Selected("a key", lambda each: each.key_id == "key_4", only={"key": ["key_4"]}),
    Selected("a model", lambda each: each.model == "m3", only={"model": ["m3"]}),
    Selected("an unknown model", lambda _: False, only={"model": ["none"]}),
    Selected("an agent", lambda each: each.agent == "codex", only={"agent": ["codex"]}),
    Selected("an operation", lambda each: each.operation == "embed", only={"operation": ["embed"]}),
    Selected(
        "a key, a model and a channel",
        lambda each: (each.key_id, each.model, each.channel) == ("key_a", "m1", "main"),
        only={"key": ["key_a"], "model": ["m1"], "channel": ["main"]},
    ),
    Selected("failed calls", lambda each: each.status != "OK", {"failed": True}),
    Selected("a reason", lambda each: each.reason == "CANCELLED", only={"reason": ["CANCELLED"]}),
    Selected(
        "a reason of a model",
        lambda each: each.reason == "UPSTREAM_UNPAID" and each.model == "m2",
        only={"reason": ["UPSTREAM_UNPAID"], "model": ["m2"]},
    ),
    Selected("slow calls", lambda each: each.duration_micros >= 190_000_000, {"min_duration_micros": 190_000_000}),
    Selected(
        "slow calls of a key",
        lambda each: each.duration_micros >= 190_000_000 and each.key_id == "key_a",
        {"min_duration_micros": 190_000_000},
        {"key": ["key_a"]},
    ),
    Selected("some request ids", lambda each: each.request_id.startswith("req_12"), {"request_id_prefix": "req_12"}),
    Selected("many request ids", lambda each: each.request_id.startswith("req_"), {"request_id_prefix": "req_"}),
    Selected("an end user", lambda each: each.end_user == "ann", only={"end_user": ["ann"]}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_pages_have_the_selected_records_and_read_no_table_as_a_whole(usage_store: Store, case: Selected) -> None:
    records = UsageRecords(usage_store)
    await records.insert(lines(*RECORDS))
    plans = _plans(usage_store)
    calls = CallFilter(SINCE, UNTIL, case.only, **case.criteria)
    found, after = list[UsageRecord](), None
    while page := await records.page(calls, after, SIZE):
        found += page
        after = page[-1].start_micros, page[-1].record_id
    expected = sorted(filter(case.is_selected, RECORDS), key=lambda each: (each.start_micros, each.record_id))
    assert [each.record_id for each in found] == [each.record_id for each in reversed(expected)]
    if plans:
        assert [step for step in plans if step.startswith("SCAN call_records")] == []
        assert any("SEARCH call_records" in step for step in plans)


@pytest.mark.parametrize("few", [True, False])
async def test_slow_calls_of_keys_are_read_by_their_index_or_by_hours(
    usage_store: Store, monkeypatch: pytest.MonkeyPatch, few: bool
) -> None:
    if not few:
        monkeypatch.setattr(usage_record_pages, "MAX_KEY_CALLS", 3)
    records = UsageRecords(usage_store)
    await records.insert(lines(*RECORDS))
    plans = _plans(usage_store)
    calls = CallFilter(SINCE, UNTIL, {"key": ["key_4", "key_8"]}, min_duration_micros=100_000_000)
    found = await records.page(calls, None, len(RECORDS))
    slow = [each for each in RECORDS if each.key_id in {"key_4", "key_8"} and each.duration_micros >= 100_000_000]
    assert slow
    assert sorted(each.record_id for each in found) == sorted(each.record_id for each in slow)
    if plans and few:
        assert any("ix_call_records_key" in step for step in plans)


async def test_calls_of_versions_without_durations_are_among_the_slow_ones(usage_store: Store) -> None:
    records = UsageRecords(usage_store)
    await records.insert(lines(record(0, duration_micros=5 * 10**6), record(1, duration_micros=10**6)))
    async with usage_store.write() as session:
        for table in ("call_duration_minutes", "call_duration_hours", "call_duration_days"):
            await (await session.connection()).exec_driver_sql(f"DELETE FROM {table}")
    found = await records.page(CallFilter(SINCE, UNTIL, min_duration_micros=2 * 10**6), None, SIZE)
    assert [each.record_id for each in found] == ["boot-0"]


async def test_calls_without_totals_are_listed(usage_store: Store) -> None:
    records = UsageRecords(usage_store)
    await records.insert(lines(record(0), record(1, model="n")))
    async with usage_store.write() as session:
        await (await session.connection()).exec_driver_sql("DELETE FROM usage_hours")
    found = await records.page(CallFilter(SINCE, UNTIL, {"model": ["n"]}), None, SIZE)
    assert [each.record_id for each in found] == ["boot-1"]


async def test_more_records_than_are_read_by_their_request_ids_are_listed(
    usage_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_record_pages, "MAX_IDS", 3)
    records = UsageRecords(usage_store)
    await records.insert(lines(*(record(number, request_id="same") for number in range(9))))
    found = await records.page(CallFilter(SINCE, UNTIL, request_id_prefix="sam"), None, 5)
    assert [each.record_id for each in found] == [f"boot-{number}" for number in (8, 7, 6, 5, 4)]


def _plans(store: Store) -> list[str]:
    """Return a list to which the steps of the plans of further queries are added, on SQLite."""
    steps = list[str]()
    engine = store._engine.sync_engine
    if engine.dialect.name == "sqlite":

        def explain(_1: object, cursor: Any, statement: str, parameters: Any, *_2: object) -> None:
            if statement.startswith("SELECT"):
                cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
                steps.extend(row[-1] for row in cursor.fetchall())

        event.listen(engine, "before_cursor_execute", explain)
    return steps
