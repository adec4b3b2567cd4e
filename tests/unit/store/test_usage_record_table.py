"""Usage records in the database: written once, found and summed."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from sqlalchemy import event

from tests.support.usage_records import ALL, NOW, lines, record
from umg_grpc.base.time_units import micros_of, time_of
from umg_grpc.store import Store
from umg_grpc.store.budget_accounts import Balance, BudgetAccounts
from umg_grpc.store.usage_parts import CallFilter, Group
from umg_grpc.store.usage_record_table import (
    STATEMENT_ROWS,
    AttemptRecord,
    CallDetails,
    UsageRecord,
    UsageRecords,
    storable,
)
from umg_grpc.store.usage_tables import DAY_BUCKET


@pytest.fixture
def records(usage_store: Store) -> UsageRecords:
    return UsageRecords(usage_store)


ATTEMPT = AttemptRecord(
    channel="main", model="real", start_micros=5, duration_micros=9, status=429, request_id="req", reason="RATE_LIMITED"
)


def test_a_text_with_any_characters_is_storable() -> None:
    assert storable("a\udc00b" * 200) == "a?b" * 100


async def test_a_record_is_found_as_it_was_written(records: UsageRecords) -> None:
    odd = record(1, model='vendor/мodel "x"\'', cached=True, estimated=True, status="CANCELLED", reason="CANCELLED")
    odd.details = CallDetails(attempts=[ATTEMPT], message="a\0b", first_output_micros=5, dropped=["seed"])
    await records.insert(lines(record(0), odd))
    assert await records.find("req-1") == [odd]
    assert await records.find("req-0") == [record(0)]
    assert await records.find("req-2") == []


async def test_a_record_that_is_written_again_changes_nothing(records: UsageRecords) -> None:
    await records.insert(lines(record(0), record(1)))
    await records.insert(lines(record(1, micro_credits=9), record(2), record(2)))
    [total] = await records.sums([], CallFilter(ALL))
    assert (total.requests, total.sums["micro_credits"]) == (3, 21)


async def test_a_line_that_cannot_be_read_harms_no_other(records: UsageRecords) -> None:
    await records.insert([b"{", *lines(record(0)), b'["too", "short"]', b"\xff"])
    assert len(await records.find("req-0")) == 1


async def test_lines_of_earlier_versions_are_read_between_those_of_this_one(records: UsageRecords) -> None:
    [current, line] = lines(record(0), record(1))
    shorter = msgspec.json.encode(msgspec.json.decode(line)[: UsageRecord.__struct_fields__.index("details")])
    await records.insert([current, shorter])
    [found] = await records.find("req-1")
    assert (found.details, found.images, found.micro_credits) == (None, 0, record(1).micro_credits)
    [total] = await records.sums([], CallFilter(ALL))
    assert (total.requests, total.sums["micro_credits"]) == (2, 14)


async def test_the_new_records_of_a_large_batch_are_added_once(records: UsageRecords) -> None:
    batch = lines(*(record(number) for number in range(2 * STATEMENT_ROWS + 3)))
    await records.insert(batch[1::40])
    await records.insert(batch)
    [total] = await records.sums([], CallFilter(ALL))
    assert total.requests == len(batch)
    assert all([await records.find(f"req-{number}") for number in (0, 1, len(batch) - 1)])


async def test_the_budgets_of_many_keys_are_charged_by_as_many_statements_as_those_of_few(usage_store: Store) -> None:
    sent, wanted = list[str](), list[Mapping[tuple[str, int], int]]()
    records = UsageRecords(usage_store, wanted.append)
    engine = usage_store._engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda _1, _2, statement, *_: sent.append(statement))
    counts = []
    for first, size in ((0, 2), (2, 40), (2, 40)):
        batch = range(first, first + size)
        sent.clear()
        await records.insert(
            lines(*(record(number, key_id=f"key_{number}", budget_period=0, budget_holder="p") for number in batch))
        )
        counts.append(len(sent))
    assert counts[1] <= counts[0]
    assert counts[2] < counts[0]  # the last records are known
    assert [set(accounts) for accounts in wanted] == [
        {("key_0", 0), ("key_1", 0)},
        {(f"key_{n}", 0) for n in range(2, 42)},
    ]
    balances = await BudgetAccounts(usage_store).balances({f"key_{number}": 0 for number in range(42)})
    assert balances == {f"key_{number}": Balance(7, 0) for number in range(42)}


async def test_a_record_that_the_database_rejects_harms_no_other(records: UsageRecords) -> None:
    await records.insert(lines(record(0), record(1, model="m\0"), record(2)))  # PostgreSQL has no NUL
    assert await records.find("req-0")
    assert await records.find("req-2")


async def test_usage_is_summed_by_any_dimensions(records: UsageRecords) -> None:
    yesterday = micros_of(NOW - timedelta(days=1))
    await records.insert(
        lines(
            record(0),
            record(1, key_id="key_b", status="UNAVAILABLE", reason="UNAVAILABLE", micro_credits=0),
            record(2, start_micros=yesterday, model="n"),
        )
    )
    by_day = await records.sums([DAY_BUCKET, "model"], CallFilter(ALL))
    assert [(each.group, each.requests, each.failed) for each in by_day] == [
        ((micros_of(datetime(2026, 5, 3, tzinfo=UTC)), "n"), 1, 0),
        ((micros_of(datetime(2026, 5, 4, tzinfo=UTC)), "m"), 2, 1),
    ]
    assert by_day[1].sums["output_tokens"] == 2**41
    by_key = await records.sums(["key"], CallFilter(NOW))
    assert [(each.group, each.requests) for each in by_key] == [(("key_a",), 1), (("key_b",), 1)]
    assert await records.sums(["channel"], CallFilter(NOW + timedelta(days=1))) == []
    assert await records.sums([], CallFilter(NOW + timedelta(days=1))) == []


@pytest.mark.parametrize(
    ("bucket", "starts"),
    [
        ("minute", ["2026-04-30T23:59", "2026-05-04T12:00", "2026-05-04T12:01"]),
        ("hour", ["2026-04-30T23:00", "2026-05-04T12:00"]),
        ("day", ["2026-04-30T00:00", "2026-05-04T00:00"]),
        ("month", ["2026-04-01T00:00", "2026-05-01T00:00"]),
    ],
)
async def test_a_bucket_begins_at_its_time_in_utc(records: UsageRecords, bucket: str, starts: list[str]) -> None:
    times = [datetime(2026, 4, 30, 23, 59, 59, tzinfo=UTC), NOW, NOW + timedelta(seconds=60)]
    await records.insert(lines(*(record(number, start_micros=micros_of(time)) for number, time in enumerate(times))))
    found = await records.sums([bucket], CallFilter(ALL))
    assert [time_of(int(each.group[0])) for each in found] == [datetime.fromisoformat(f"{text}Z") for text in starts]


async def test_usage_is_selected_by_dimensions_and_time(records: UsageRecords) -> None:
    await records.insert(lines(record(0), record(1, key_id="key_b"), record(2, model="n"), record(3, channel="other")))

    async def ids(**only: list[str]) -> int:
        return sum(each.requests for each in await records.sums([], CallFilter(ALL, only=only)))

    assert [await ids(key=["key_a"]), await ids(model=["m", "n"]), await ids(channel=["main"])] == [3, 4, 3]
    assert [await ids(key=["key_b"], model=["n"]), await ids(operation=[])] == [0, 4]
    until = CallFilter(ALL, NOW + timedelta(microseconds=2))
    assert [each.requests for each in await records.sums([], until)] == [2]


async def test_groups_are_read_by_pages(records: UsageRecords) -> None:
    models = ["B", "a", "b", "é"]
    await records.insert(
        lines(
            *(record(2 * n, model=model) for n, model in enumerate(models)),
            *(record(2 * n + 1, model=model, key_id="key_b") for n, model in enumerate(models)),
        )
    )
    by = [DAY_BUCKET, "key", "model"]
    everything = [each.group for each in await records.sums(by, CallFilter(ALL))]
    assert len(everything) == 8
    paged = list[Group]()
    while page := await records.sums(by, CallFilter(ALL), after=paged[-1] if paged else (), limit=3):
        paged += [each.group for each in page]
    assert paged == everything


async def test_records_are_read_by_pages_newest_first(records: UsageRecords) -> None:
    same = micros_of(NOW)
    written = [
        record(0),
        record(1, start_micros=same),
        record(2, status="UNAVAILABLE", reason="UNAVAILABLE"),
        record(3),
    ]
    await records.insert(lines(*written))
    newest = [written[3], written[2], written[1], written[0]]
    first = await records.page(CallFilter(ALL), None, 3)
    rest = await records.page(CallFilter(ALL), (first[-1].start_micros, first[-1].record_id), 3)
    assert [*first, *rest] == newest
    assert await records.page(CallFilter(ALL, failed=True), None, 3) == [written[2]]
    assert await records.page(CallFilter(ALL, only={"model": ["n"]}), None, 3) == []
