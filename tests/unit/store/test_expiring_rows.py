"""Retained rows: written by any process, found by all, deleted by age and size."""

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select

from tests.support.databases import Database, Postgres
from tests.support.store_fixtures import Clock, WrongClock, opened_stores
from umg_grpc.store import Store, expiring_rows, open_store
from umg_grpc.store.database_time import GivenClock
from umg_grpc.store.expired_row_sweep import Bounds
from umg_grpc.store.expiring_rows import Retained
from umg_grpc.store.table_definitions import ReasoningRow

UNBOUNDED = Bounds(owner_bytes=0, total_bytes=0)
SECONDS = 20.0


@pytest.fixture
def store(emptied_store: Store) -> Store:
    return emptied_store


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """Yield a server that a test may stop."""
    directory = Path(tempfile.mkdtemp(prefix="umg-postgres-"))  # which the server's user may enter
    server = Postgres(directory)
    yield server
    server.stop()
    shutil.rmtree(directory)


def row(
    object_id: str, expire_time: datetime, *, owner: str = "me", size: int = 1, thoughts: bytes = b""
) -> ReasoningRow:
    return ReasoningRow(
        owner=owner, object_id=object_id, expire_time=expire_time, size_bytes=size, channel="c", thoughts=thoughts
    )


@asynccontextmanager
async def opened(store: Store, clock: Clock, bounds: Bounds = UNBOUNDED) -> AsyncIterator[Retained[ReasoningRow]]:
    rows = Retained(store, ReasoningRow, bounds, GivenClock(clock))
    rows.start()
    try:
        yield rows
    finally:
        await rows.aclose()


async def ids(store: Store) -> list[str]:
    async with store.read() as session:
        return list(await session.scalars(select(ReasoningRow.object_id).order_by(ReasoningRow.object_id)))


async def test_every_process_finds_a_put_row_at_once(store: Store, module_database: Database, clock: Clock) -> None:
    async with (
        opened_stores(module_database, 1) as [other],
        opened(store, clock) as mine,
        opened(other, clock) as theirs,
    ):
        assert await mine.put(row("a", clock.later(1), thoughts=b"\0\xff"), SECONDS)
        found = await theirs.get("me", "a")
        assert found is not None
        assert (found.thoughts, found.expire_time) == (b"\0\xff", clock.later(1))
        assert await theirs.get("another", "a") is None


async def test_an_added_row_is_found_before_it_is_written(store: Store, clock: Clock) -> None:
    rows = Retained(store, ReasoningRow, UNBOUNDED, GivenClock(clock))  # not started: rows are not written
    assert rows.add(row("a", clock.later(1), thoughts=b"1"))
    assert rows.add(row("a", clock.later(1), thoughts=b"2"))
    assert [found.thoughts for found in await rows.find("me", ["a", "b"])] == [b"2"]
    assert await ids(store) == []
    assert not await rows.put(row("b", clock.later(1)), SECONDS), "nobody writes it"


async def test_closing_writes_the_pending_rows(store: Store, clock: Clock) -> None:
    async with opened(store, clock) as rows:
        for number in range(3 * expiring_rows.BATCH_ROWS):
            rows.add(row(f"{number:04}", clock.later(1)))
    assert len(await ids(store)) == 3 * expiring_rows.BATCH_ROWS


async def test_the_last_row_of_an_id_stays(store: Store, clock: Clock) -> None:
    async with opened(store, clock) as rows:
        puts = (rows.put(row("a", clock.later(1), thoughts=bytes([number])), SECONDS) for number in range(9))
        assert all(await asyncio.gather(*puts))
        assert await rows.put(row("a", clock.later(2), thoughts=b"last"), SECONDS)
        found = await rows.get("me", "a")
        assert found is not None
        assert found.thoughts == b"last"
    assert await ids(store) == ["a"]


async def test_processes_that_write_the_same_rows_do_not_stop_each_other(
    store: Store, module_database: Database, clock: Clock
) -> None:
    async def write(store: Store, names: list[str]) -> None:
        async with opened(store, clock) as rows:
            for _ in range(5):
                assert all(await asyncio.gather(*(rows.put(row(name, clock.later(1)), SECONDS) for name in names)))

    names = [f"{number:03}" for number in range(40)]
    async with opened_stores(module_database, 3) as stores:
        orders = (names, names[::-1], names[20:] + names[:20])
        await asyncio.gather(*(write(each, order) for each, order in zip(stores, orders, strict=True)))
    assert await ids(store) == names


async def test_an_expired_row_is_not_found_and_is_swept(store: Store, clock: Clock) -> None:
    async with opened(store, clock) as rows:
        for name, seconds in (("a", 10), ("b", 20)):
            assert await rows.put(row(name, clock.later(seconds)), SECONDS)
        clock.time = clock.later(10)
        assert [found.object_id for found in await rows.find("me", ["a", "b"])] == ["b"]
        assert not await rows.delete("me", "a")
        assert await rows.put(row("a", clock.time), SECONDS)
        await rows.sweep()
    assert await ids(store) == ["b"]


async def test_no_row_is_swept_while_the_clock_is_wrong(store: Store, clock: Clock) -> None:
    async with opened(store, clock) as rows:
        assert await rows.put(row("a", clock.time), SECONDS)
    await Retained(store, ReasoningRow, UNBOUNDED, WrongClock(clock)).sweep()
    assert await ids(store) == ["a"]
    await Retained(store, ReasoningRow, UNBOUNDED, GivenClock(clock)).sweep()
    assert await ids(store) == []


async def test_a_deleted_row_is_gone_also_if_it_was_not_written_yet(store: Store, clock: Clock) -> None:
    async with opened(store, clock) as rows:
        assert await rows.put(row("a", clock.later(1)), SECONDS)
        rows.add(row("b", clock.later(1)))
        assert await rows.delete("me", "a")
        assert await rows.delete("me", "b")
        assert not await rows.delete("me", "b")
        assert await rows.find("me", ["a", "b"]) == []
    assert await ids(store) == []


async def test_above_a_bound_those_go_that_would_expire_first(store: Store, clock: Clock) -> None:
    async with opened(store, clock, Bounds(owner_bytes=30, total_bytes=50)) as rows:
        for number, owner in enumerate(["me"] * 5 + ["you"] * 3):
            assert await rows.put(row(str(number), clock.later(90 - number), owner=owner, size=10), SECONDS)
        await rows.sweep()
    # my rows are held to 30 bytes (the numbers 3 and 4 are deleted), then all to 50 (number 7 is deleted)
    assert await ids(store) == ["0", "1", "2", "5", "6"]


async def test_concurrent_sweeps_delete_no_more_rows_than_one(
    store: Store, module_database: Database, clock: Clock
) -> None:
    bounds = Bounds(owner_bytes=0, total_bytes=10)
    async with opened_stores(module_database, 3) as stores:
        async with opened(stores[0], clock) as rows:
            for number in range(15):
                rows.add(row(f"{number:02}", clock.later(number)))
            assert await rows.flushed(SECONDS)
        swept = [Retained(each, ReasoningRow, bounds, GivenClock(clock)) for each in stores]
        await asyncio.gather(*(each.sweep() for each in swept))
    assert await ids(store) == [f"{number:02}" for number in range(5, 15)]


async def test_many_rows_are_deleted_batch_by_batch(store: Store, clock: Clock) -> None:
    count = 2 * expiring_rows.BATCH_ROWS + 7
    async with opened(store, clock, Bounds(owner_bytes=5, total_bytes=0)) as rows:
        for number in range(count):
            rows.add(row(f"old {number:04}", clock.later(1)))
            rows.add(row(f"new {number:04}", clock.later(60 + number)))
        assert await rows.flushed(SECONDS)
        clock.time = clock.later(2)
        await rows.sweep()
    assert await ids(store) == [f"new {number:04}" for number in range(count - 5, count)]


async def test_a_bound_applies_by_default(store: Store, clock: Clock) -> None:
    async with opened(store, clock, Bounds(owner_bytes=0, total_bytes=100)) as rows:
        async with asyncio.timeout(SECONDS):
            for number in range(1000):
                assert await rows.put(row(f"{number:04}", clock.later(number), size=10), SECONDS)
                if number > 100 and len(await ids(store)) <= 20:
                    return
    pytest.fail("nothing was swept")


async def test_a_row_beyond_the_bound_is_not_stored_at_all(store: Store, clock: Clock) -> None:
    async with opened(store, clock, Bounds(owner_bytes=10, total_bytes=0)) as rows:
        assert not await rows.put(row("a", clock.later(1), size=11), SECONDS)
        assert await rows.put(row("b", clock.later(1), size=10), SECONDS)
    assert await ids(store) == ["b"]


async def test_a_row_that_the_database_refuses_delays_no_other(
    postgres: Postgres, tmp_path: Path, clock: Clock
) -> None:
    store = await open_store(postgres.create("refusing"), tmp_path)
    async with opened(store, clock) as rows:
        kept = await asyncio.gather(
            *(rows.put(row(name, clock.later(1)), SECONDS) for name in ("a", "y" * 600, "b", "x" * 600, "c"))
        )
    assert kept == [True, False, True, False, True]
    assert await ids(store) == ["a", "b", "c"]
    await store.aclose()


async def test_rows_of_an_outage_are_written_when_the_database_is_available_again(
    own_postgres: Postgres, tmp_path: Path, clock: Clock
) -> None:
    store = await open_store(own_postgres.create("coming"), tmp_path)
    async with opened(store, clock) as rows:
        assert await rows.put(row("a", clock.later(1)), SECONDS)
        own_postgres.stop()
        assert not await rows.put(row("b", clock.later(1)), SECONDS)
        put = asyncio.create_task(rows.put(row("c", clock.later(1)), SECONDS))
        await asyncio.sleep(0)
        assert put.done(), "nobody waits for what is known to be away"
        assert not await put
        assert [found.object_id for found in await rows.find("me", ["b", "c"])] == ["b", "c"]
        own_postgres.start()
        async with asyncio.timeout(SECONDS):
            while not await rows.flushed(SECONDS):
                await ids(store)
    assert await ids(store) == ["a", "b", "c"]
    await store.aclose()


async def test_a_put_waits_no_longer_than_it_may(tmp_path: Path, clock: Clock) -> None:
    store = await open_store("sqlite", tmp_path)
    async with opened(store, clock) as rows:
        with closing(sqlite3.connect(tmp_path / "umg.db", isolation_level=None)) as stranger:
            stranger.execute("BEGIN IMMEDIATE")
            began = asyncio.get_running_loop().time()
            assert not await rows.put(row("a", clock.later(1)), 0.05)
            assert asyncio.get_running_loop().time() - began < 5
            stranger.execute("COMMIT")
        assert await rows.put(row("b", clock.later(1)), SECONDS)
    async with store.read() as session:
        assert await session.scalar(select(func.count()).select_from(ReasoningRow)) == 2
    await store.aclose()
