"""Totals of usage by end user and day."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.databases import Database
from umg_grpc.base.time_units import micros_of
from umg_grpc.store import Store, open_store
from umg_grpc.store.end_user_usage import KEPT_USERS, EndUserFilter, EndUserSum, EndUserUsage, sweep_end_users
from umg_grpc.store.usage_record_table import UsageRecord, UsageRecords, encode_record

DAY = datetime(2026, 5, 4, tzinfo=UTC)
NEXT = DAY + timedelta(days=1)


@pytest.fixture
async def store(prepared_database: Database) -> AsyncIterator[Store]:
    store = await open_store(prepared_database.url, prepared_database.data_dir)
    yield store
    await store.aclose()


def record(number: int, end_user: str, cost: int, *, day: datetime = DAY, **fields: object) -> bytes:
    values = {"key_id": "key_1", "input_tokens": 2, "cache_read_tokens": 3, "output_tokens": 5, "reasoning_tokens": 7}
    made = UsageRecord(
        record_id=f"{end_user}-{day:%d}-{number}",
        request_id="r",
        operation="generate",
        method="m",
        face="grpc",
        start_micros=micros_of(day) + number,
        micro_credits=cost,
        end_user=end_user,
        **{**values, **fields},  # type: ignore[arg-type]
    )
    return encode_record(made)


async def sums(store: Store, since: datetime = DAY, until: datetime = NEXT, *keys: str) -> list[EndUserSum]:
    return await EndUserUsage(store).sums(EndUserFilter(micros_of(since), micros_of(until), keys), 0, 2000)


async def test_calls_of_end_users_are_added_up_by_day(store: Store) -> None:
    lines = [record(1, "ada", 10), record(2, "ada", 5, status="INTERNAL"), record(3, "ben", 20), record(4, "", 99)]
    await UsageRecords(store).insert([*lines, record(5, "ada", 1, day=NEXT)])
    await UsageRecords(store).insert([lines[0]])  # repeated by a journal
    assert await sums(store) == [EndUserSum("ben", 1, 0, 5, 12, 20), EndUserSum("ada", 2, 1, 10, 24, 15)]
    assert await sums(store, DAY, NEXT + timedelta(days=1)) == [
        EndUserSum("ben", 1, 0, 5, 12, 20),
        EndUserSum("ada", 3, 1, 15, 36, 16),
    ]


async def test_the_end_users_of_some_keys_are_read(store: Store) -> None:
    await UsageRecords(store).insert([record(1, "ada", 10), record(2, "ada", 4, key_id="key_2")])
    assert [(found.end_user, found.micro_credits) for found in await sums(store, DAY, NEXT, "key_2")] == [("ada", 4)]


async def test_a_record_keeps_its_end_user(store: Store) -> None:
    await UsageRecords(store).insert([record(1, "ada", 10)])
    assert [found.end_user for found in await UsageRecords(store).find("r")] == ["ada"]


async def test_a_day_keeps_the_end_users_with_the_highest_cost(store: Store) -> None:
    small = [record(number, f"user {number:04}", 1) for number in range(KEPT_USERS)]
    large = [record(number, f"large {number}", 9, key_id=f"key_{number % 2}") for number in range(4)]
    await UsageRecords(store).insert([*small, *large, record(1, "next", 1, day=NEXT)])
    for _ in range(2):  # a second sweep finds nothing to do
        await sweep_end_users(store, 0)
        found = await sums(store)
        assert len(found) == KEPT_USERS + 1
        assert [each.end_user for each in found[:5]] == ["large 0", "large 1", "large 2", "large 3", ""]
        assert found[4] == EndUserSum("", 4, 0, 20, 48, 4)
        assert sum(each.micro_credits for each in found) == KEPT_USERS + 4 * 9
    await UsageRecords(store).insert([record(5000, "user 0999", 2)])
    await sweep_end_users(store, 0)
    assert (await sums(store))[4].micro_credits == 5  # it is kept now, and a user with less is not


async def test_old_days_are_deleted(store: Store) -> None:
    await UsageRecords(store).insert([record(1, "ada", 10), record(1, "ada", 1, day=NEXT)])
    await sweep_end_users(store, micros_of(NEXT))
    assert [found.micro_credits for found in await sums(store, DAY, NEXT + timedelta(days=1))] == [1]
