"""Usage records of earlier versions: read where they are, moved in small pieces, and counted once in the totals."""

import asyncio

import pytest
from sqlalchemy import func, select, text

from tests.support.databases import Database
from tests.support.store_fixtures import opened_stores
from tests.support.usage_records import ALL, NOW, lines, record
from umg_grpc.store import Store
from umg_grpc.store.database_time import GivenClock
from umg_grpc.store.usage_parts import CallFilter
from umg_grpc.store.usage_record_migration import MOVED_ROWS, EarlierUsageRecords
from umg_grpc.store.usage_record_table import RECORD_COLUMNS, UsageRecord, UsageRecords
from umg_grpc.store.usage_tables import EarlierUsageRow, UsageRow

INSERT = (
    f"INSERT INTO usage_records ({', '.join(RECORD_COLUMNS)}) VALUES ({', '.join(f':{n}' for n in RECORD_COLUMNS)})"
    " ON CONFLICT (record_id) DO NOTHING"
)
"""Statement of an earlier version, which still writes during a rolling upgrade."""


async def write_as_earlier(store: Store, *made: UsageRecord) -> None:
    """Write records as an earlier version does."""
    rows = [{name: getattr(each, name) for name in RECORD_COLUMNS} for each in made]
    async with store.write() as session:
        await session.execute(text(INSERT), rows)


async def counts(store: Store) -> tuple[int, int]:
    async with store.read() as session:
        earlier = await session.scalar(select(func.count()).select_from(EarlierUsageRow))
        current = await session.scalar(select(func.count()).select_from(UsageRow))
    return earlier or 0, current or 0


@pytest.fixture
def store(usage_store: Store) -> Store:
    usage_store.clock = GivenClock(lambda: NOW)
    return usage_store


async def test_records_are_read_during_the_move_and_moved_once(store: Store) -> None:
    records, mover = UsageRecords(store), EarlierUsageRecords(store)
    count = 2 * MOVED_ROWS + 20
    made = [record(number, key_id=f"key_{number % 2}") for number in range(count)]
    await write_as_earlier(store, *made)
    await records.insert(lines(*made[:10], record(count, key_id="key_0")))  # a journal that a killed process left
    more, moved = True, []
    while more:
        sums = await records.sums(["key"], CallFilter(ALL))
        assert [(each.group, each.requests) for each in sums] == [
            (("key_0",), count // 2 + 1),
            (("key_1",), count // 2),
        ]
        newest = await records.page(CallFilter(ALL), None, 30)
        assert [each.record_id for each in newest] == [f"boot-{count - number}" for number in range(30)]
        assert await records.find("req-700") == [made[700]]
        more = await mover.move_some()
        moved.append(await counts(store))
    assert moved == [(520, 501), (20, 1001), (0, count + 1)]
    assert not await mover.move_some()
    assert sum(each.requests for each in await records.sums(["minute"], CallFilter(ALL))) == count + 1


async def test_records_that_an_earlier_version_writes_meanwhile_are_moved_later(store: Store) -> None:
    mover = EarlierUsageRecords(store)
    for number in range(3):
        await write_as_earlier(store, record(number))
        assert not await mover.move_some()
        assert await counts(store) == (0, number + 1)


async def test_a_record_in_both_tables_is_counted_once(store: Store) -> None:
    records = UsageRecords(store)
    await records.insert(lines(record(0)))
    await write_as_earlier(store, record(0), record(1))
    await EarlierUsageRecords(store).move_some()
    assert [each.requests for each in await records.sums([], CallFilter(ALL))] == [2]
    assert await counts(store) == (0, 2)


async def test_several_processes_move_at_once(prepared_database: Database) -> None:
    async def move(store: Store) -> None:
        mover = EarlierUsageRecords(store)
        while await mover.move_some():
            pass

    async with opened_stores(prepared_database, 3) as stores:
        await write_as_earlier(stores[0], *(record(number) for number in range(3 * MOVED_ROWS)))
        await asyncio.gather(*map(move, stores))
        assert await counts(stores[0]) == (0, 3 * MOVED_ROWS)
        found = await UsageRecords(stores[0]).sums(["hour"], CallFilter(ALL))
        assert [each.requests for each in found] == [3 * MOVED_ROWS]
