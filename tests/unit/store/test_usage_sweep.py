"""Deletion of old usage: records by age and size, whole days of them on PostgreSQL, and totals by age."""

import asyncio
from collections.abc import AsyncIterator
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, text

from tests.support.databases import Database, Postgres
from tests.support.store_fixtures import opened_stores
from tests.support.usage_records import ALL, NOW, lines, record
from umg_grpc.base.time_units import micros_of, time_of
from umg_grpc.store import Store, open_store
from umg_grpc.store.database_time import GivenClock
from umg_grpc.store.usage_partitions import EPOCH_DAY, create_partitions, days_of_partitions
from umg_grpc.store.usage_parts import CallFilter
from umg_grpc.store.usage_record_table import MAX_FOUND, UsageRecords
from umg_grpc.store.usage_sweep import ROW_BYTES, Swept, sweep_usage
from umg_grpc.store.usage_tables import TOTAL_TABLES, UsageRow

DAY_SECONDS = 86_400
YEARS_SECONDS = 10**9


async def kept(store: Store) -> list[str]:
    """Return the request ids of the records in the database, oldest first."""
    async with store.read() as session:
        return [*await session.scalars(select(UsageRow.request_id).order_by(UsageRow.start_micros))]


async def days(store: Store) -> list[date]:
    async with store.read() as session:
        return [EPOCH_DAY + timedelta(days=day) for day in await days_of_partitions(session)]


@pytest.fixture
async def partitioned(postgres: Postgres, tmp_path: Path) -> AsyncIterator[Store]:
    """Open an empty database on PostgreSQL; SQLite has no partitions."""
    store = await open_store(await postgres.create_prepared(tmp_path.name), tmp_path)
    yield store
    await store.aclose()


async def test_old_records_are_swept_and_those_above_the_size(usage_store: Store) -> None:
    usage_store.clock = GivenClock(lambda: NOW)
    old = [record(number, start_micros=micros_of(NOW - timedelta(days=2))) for number in range(3)]
    await UsageRecords(usage_store).insert(lines(*old, *(record(number) for number in range(10, 20))))
    swept = await sweep_usage(usage_store, DAY_SECONDS, 100 * ROW_BYTES, YEARS_SECONDS)
    assert swept.deleted_early == 0
    assert await kept(usage_store) == [f"req-{number}" for number in range(10, 20)]
    swept = await sweep_usage(usage_store, DAY_SECONDS, 4 * ROW_BYTES, YEARS_SECONDS)
    assert swept == Swept(deleted_early=6, begin=record(16).start_time)
    assert await kept(usage_store) == [f"req-{number}" for number in range(16, 20)]


async def test_records_of_whole_days_are_deleted_for_their_size(usage_store: Store) -> None:
    usage_store.clock = GivenClock(lambda: NOW)
    made = [record(number, start_micros=micros_of(NOW - timedelta(hours=6 * number))) for number in range(20)]
    await UsageRecords(usage_store).insert(lines(*made))
    swept = await sweep_usage(usage_store, 4 * DAY_SECONDS, 6 * ROW_BYTES, YEARS_SECONDS)
    assert swept == Swept(deleted_early=11, begin=made[5].start_time)
    assert await kept(usage_store) == [f"req-{number}" for number in range(5, -1, -1)]


async def test_records_without_a_limit_of_size_are_kept_for_their_time(usage_store: Store) -> None:
    usage_store.clock = GivenClock(lambda: NOW + timedelta(days=1))
    await UsageRecords(usage_store).insert(lines(*(record(number) for number in range(10))))
    assert (await sweep_usage(usage_store, DAY_SECONDS, None, YEARS_SECONDS)).deleted_early == 0
    assert len(await kept(usage_store)) == 10


async def test_the_days_of_old_records_are_dropped_and_the_next_days_are_created(partitioned: Store) -> None:
    now = [NOW]
    partitioned.clock = GivenClock(lambda: now[0])
    records = UsageRecords(partitioned)
    await records.insert(lines(record(0), record(1, start_micros=micros_of(NOW - timedelta(days=40)))))
    late = (NOW - timedelta(days=40)).date()
    assert {late, NOW.date()} <= set(await days(partitioned))
    await sweep_usage(partitioned, 2 * DAY_SECONDS, None, YEARS_SECONDS)
    expected = [NOW.date() + timedelta(days=ahead) for ahead in range(3)]
    assert await days(partitioned) == expected
    now[0] = (
        datetime.combine(NOW.date(), datetime.min.time(), NOW.tzinfo) + timedelta(days=3) - timedelta(microseconds=1)
    )
    await sweep_usage(partitioned, 2 * DAY_SECONDS, None, YEARS_SECONDS)
    assert await kept(partitioned) == ["req-0"], "the day has records that are not old enough"
    now[0] += timedelta(microseconds=1)
    await sweep_usage(partitioned, 2 * DAY_SECONDS, None, YEARS_SECONDS)
    assert await kept(partitioned) == []
    assert [each.requests for each in await records.sums([], CallFilter(ALL))] == [2], "totals remain"


async def test_records_of_one_id_are_found_over_many_days(partitioned: Store) -> None:
    records = UsageRecords(partitioned)
    made = [
        record(number, request_id="same", start_micros=micros_of(NOW - timedelta(days=20 * number)))
        for number in range(MAX_FOUND + 5)
    ]
    await records.insert(lines(*made[:5], record(500)))
    assert await records.find("same") == made[4::-1]
    await records.insert(lines(*made))
    assert await records.find("same") == made[MAX_FOUND - 1 :: -1]
    begin = await records.begin()
    assert (begin.records, begin.totals["day"]) == (made[-1].start_time, made[-1].start_time.replace(hour=0))


async def test_totals_are_deleted_after_their_time(usage_store: Store) -> None:
    usage_store.clock = GivenClock(lambda: NOW)
    ages = {"now": 0, "days": 3, "year": 399, "years": 500, "long": 1500}
    made = [
        record(number, agent="codex", start_micros=micros_of(NOW - timedelta(days=age)))
        for number, age in enumerate(ages.values())
    ]
    await UsageRecords(usage_store).insert(lines(*made))
    await sweep_usage(usage_store, 90 * DAY_SECONDS, None, 1000 * DAY_SECONDS)
    found = {}
    async with usage_store.read() as session:
        for totals in TOTAL_TABLES:
            starts = await session.scalars(select(totals.table.c.start_micros))
            found[totals.table.name] = sorted((NOW - time_of(start)).days for start in starts)
    by_hour, by_day, by_month = [0, 3, 399], [0, 3, 399, 500], [3, 429, 519]
    assert found == {
        "usage_minutes": [0],
        "usage_hours": by_hour,
        "usage_days": by_day,
        "usage_months": by_month,
        "usage_key_hours": by_hour,
        "usage_key_days": by_day,
        "usage_key_months": by_month,
        "usage_agent_hours": by_hour,
        "usage_agent_days": by_day,
        "usage_agent_months": by_month,
        "usage_key_agent_hours": by_hour,
        "usage_key_agent_days": by_day,
        "usage_key_agent_months": by_month,
    }


async def test_processes_create_and_drop_the_same_days_at_once(prepared_database: Database) -> None:
    async with opened_stores(prepared_database, 4) as stores:
        for store in stores:
            store.clock = GivenClock(lambda: NOW)
        old = [record(number, start_micros=micros_of(NOW - timedelta(days=number))) for number in range(8)]
        await asyncio.gather(
            *(UsageRecords(store).insert(lines(each)) for store in stores for each in old),
            *(sweep_usage(store, 4 * DAY_SECONDS, None, YEARS_SECONDS) for store in stores),
        )
        await sweep_usage(stores[0], 4 * DAY_SECONDS, None, YEARS_SECONDS)
        assert (await kept(stores[0]))[-4:] == [f"req-{number}" for number in range(3, -1, -1)]


async def test_a_day_that_an_operator_detached_is_attached_again(partitioned: Store) -> None:
    await UsageRecords(partitioned).insert(lines(record(0)))
    async with partitioned.write() as session:
        await session.execute(text(f"ALTER TABLE call_records DETACH PARTITION call_records_{NOW:%Y%m%d}"))
    async with partitioned.write() as session:
        await create_partitions(session, [(NOW.date() - EPOCH_DAY).days])
    assert await kept(partitioned) == ["req-0"]
