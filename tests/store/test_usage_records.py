"""Usage records in the database: written once, found, summed and swept."""

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta

import msgspec
import pytest
from sqlalchemy import delete

from tests.support.databases import Database
from umg_grpc.store import Store, open_store
from umg_grpc.store.tables import KeptUsage
from umg_grpc.store.usage_records import (
    DAY,
    ROW_BYTES,
    AttemptRecord,
    CallDetails,
    UsageRecord,
    UsageRecords,
    micros_of,
    storable,
)

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
ALL = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
async def records(module_database: Database) -> AsyncIterator[UsageRecords]:
    store: Store = await open_store(module_database.url, module_database.data_dir)
    async with store.write() as session:
        await session.execute(delete(KeptUsage))
    yield UsageRecords(store)
    await store.aclose()


def record(number: int, **changed: object) -> UsageRecord:
    made = UsageRecord(
        record_id=f"boot-{number}", request_id=f"req-{number}", key_id="key_a", operation="generate",
        method="GenerationService/Generate", face="chat", model="m", channel="main", start_micros=micros_of(NOW) + number,
        duration_micros=1500, status="OK", reason="", attempts=1, cached=False, estimated=False,
        input_tokens=10, output_tokens=2**40, micro_credits=7,
    )  # fmt: skip
    return msgspec.structs.replace(made, **changed)


ATTEMPT = AttemptRecord(
    channel="main", model="real", start_micros=5, duration_micros=9, status=429, request_id="req", reason="RATE_LIMITED"
)


def test_a_text_is_storable_whatever_characters_it_has() -> None:
    assert storable("a\udc00b" * 200) == "a?b" * 100


def lines(*made: UsageRecord) -> list[bytes]:
    return [msgspec.json.encode(each) for each in made]


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
    [total] = await records.sums([], ALL)
    assert (total.requests, total.sums["micro_credits"]) == (3, 21)


async def test_a_line_that_cannot_be_read_harms_no_other(records: UsageRecords) -> None:
    await records.insert([b"{", *lines(record(0)), b'["too", "short"]', b"\xff"])
    assert len(await records.find("req-0")) == 1


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
    by_day = await records.sums([DAY, "model"], ALL)
    assert [(each.group, each.requests, each.failed) for each in by_day] == [
        ((date(2026, 5, 3), "n"), 1, 0),
        ((date(2026, 5, 4), "m"), 2, 1),
    ]
    assert by_day[1].sums["output_tokens"] == 2**41
    by_key = await records.sums(["key"], NOW)
    assert [(each.group, each.requests) for each in by_key] == [(("key_a",), 1), (("key_b",), 1)]
    assert await records.sums(["channel"], NOW + timedelta(days=1)) == []
    assert await records.sums([], NOW + timedelta(days=1)) == []


async def test_old_records_are_swept_and_those_above_the_size(records: UsageRecords) -> None:
    old = [record(number, start_micros=micros_of(NOW - timedelta(days=2))) for number in range(3)]
    await records.insert(lines(*old, *(record(number) for number in range(10, 20))))
    await records.sweep(NOW - timedelta(days=1), 100 * ROW_BYTES)
    assert [each.requests for each in await records.sums([], ALL)] == [10]
    await records.sweep(NOW - timedelta(days=1), 4 * ROW_BYTES)
    assert [each.group for each in await records.sums(["model"], ALL)] == [("m",)]
    assert [bool(await records.find(f"req-{number}")) for number in range(10, 20)] == [False] * 6 + [True] * 4
