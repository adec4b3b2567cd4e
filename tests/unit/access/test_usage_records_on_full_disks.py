"""Usage records on a full disk: each reaches the database, and calls without a place for their record are known."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from tests.support.databases import Postgres, wait_until_back
from tests.support.full_disks import Disk, disk_at
from umg_grpc.access.usage_record_writer import UsageLog
from umg_grpc.config.config_values import UsageRetention
from umg_grpc.store import Store
from umg_grpc.store.database import open_store
from umg_grpc.store.in_flight_record_file import NO_SLOT, records_of
from umg_grpc.store.usage_parts import CallFilter
from umg_grpc.store.usage_record_table import CallDetails, UsageRecord, UsageRecords, encode_record

DISK_SIZE = "12m"
"""Of a data folder with space for two segments of the journal and the file of calls in flight."""
MANY = 6000
"""Number of records that do not fit into a segment."""
ALL = CallFilter(datetime.fromtimestamp(0, UTC))


def _record(log: UsageLog, request_id: str = "one") -> UsageRecord:
    return UsageRecord(
        record_id=next(log.new_ids),
        request_id=request_id,
        key_id="",
        operation="generate",
        method="",
        face="",
        start_micros=1,
        details=CallDetails(attempts=[], message="x" * 300, first_output_micros=None, dropped=["y" * 400]),
    )


def _log(store: Store, data: Path, lost: list[int], memory_bytes: int = 2**26) -> UsageLog:
    retention = UsageRetention(ttl=10**10, max_bytes=10**9)
    return UsageLog(
        *(store, data, retention, lambda: datetime.now(UTC), lambda count, _reason: lost.append(count)),
        memory_bytes=memory_bytes,
    )


async def _count(store: Store) -> int:
    return sum(each.requests for each in await UsageRecords(store).sums([], ALL))


async def _until_counted(store: Store, count: int) -> None:
    async with asyncio.timeout(60):
        while await _count(store) != count:  # noqa: ASYNC110  # no event reports the end of a write
            await asyncio.sleep(0.01)  # leaves the processor to the writer


@asynccontextmanager
async def _store(postgres: Postgres, name: str, tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(await postgres.create_prepared(name), tmp_path)
    try:
        yield store
    finally:
        await store.aclose()


@asynccontextmanager
async def _full(disk: Disk) -> AsyncIterator[None]:
    disk.fill(os.getpid())
    try:
        yield
    finally:
        disk.empty(os.getpid())


async def test_records_that_the_journal_refuses_reach_the_database(postgres: Postgres, tmp_path: Path) -> None:
    lost = list[int]()
    async with _store(postgres, "test_refused_records", tmp_path) as store:
        with disk_at(tmp_path / "disk", DISK_SIZE) as disk:
            log = _log(store, tmp_path / "disk", lost)
            async with _full(disk):
                for _ in range(MANY):
                    log.add(_record(log), NO_SLOT)
                assert (log.problem != "", log.can_charge) == (True, True)
                log.start()
                await _until_counted(store, MANY)
                assert log.problem != ""
            log.add(_record(log), NO_SLOT)
            await _until_counted(store, MANY + 1)
            assert (log.problem, log.can_charge) == ("", True)
            await log.aclose()
            assert [path.name for path in (tmp_path / "disk" / "usage").iterdir()] == ["id"]
    assert lost == []


async def test_no_call_can_be_charged_while_neither_the_disk_nor_the_database_takes_records(
    postgres: Postgres, tmp_path: Path
) -> None:
    lost = list[int]()
    async with _store(postgres, "test_no_charge", tmp_path) as store:
        with disk_at(tmp_path / "disk", DISK_SIZE) as disk:
            log = _log(store, tmp_path / "disk", lost)
            postgres.stop()
            try:
                async with _full(disk):
                    for _ in range(MANY):
                        log.add(_record(log), NO_SLOT)
                    log.start()
                    async with asyncio.timeout(60):
                        while log.can_charge:  # noqa: ASYNC110  # no event reports the failure of a write
                            await asyncio.sleep(0.01)
            finally:
                postgres.start()
            await wait_until_back(store)
            await _until_counted(store, MANY)
            async with asyncio.timeout(60):
                while not log.can_charge:  # noqa: ASYNC110  # as above
                    await asyncio.sleep(0.01)
            await log.aclose()
    assert lost == []


async def test_a_record_in_memory_keeps_its_place_in_the_file_of_calls_in_flight(
    postgres: Postgres, tmp_path: Path
) -> None:
    """A process that ends while neither the disk nor the database takes records leaves that file to the next one."""
    lost = list[int]()
    async with _store(postgres, "test_left_records", tmp_path) as store:
        with disk_at(tmp_path / "disk", DISK_SIZE) as disk:
            log = _log(store, tmp_path / "disk", lost)
            async with _full(disk):
                kept = [_record(log, "kept") for _ in range(10)]
                slots = [log.open_records.add(encode_record(record)) for record in kept]
                for _ in range(MANY):
                    log.add(_record(log), NO_SLOT)
                for record, slot in zip(kept, slots, strict=True):
                    log.add(record, slot)
                written = _written(tmp_path / "disk" / "usage")
                await log.aclose()
            assert written + sum(lost) == MANY + len(kept), "the others had no place"
            following = _log(store, tmp_path / "disk", lost)
            following.start()
            await _until_counted(store, written)
            assert len(await UsageRecords(store).find("kept")) == len(kept)
            await following.aclose()


def _written(directory: Path) -> int:
    [calls] = directory.glob("*.open")
    journal = sum(path.read_bytes().count(b"\n") for path in directory.glob("*.jsonl"))
    return journal + len(records_of(directory, calls.stem))


async def test_records_above_the_bound_of_the_memory_are_counted_as_lost(tmp_path: Path) -> None:
    lost = list[int]()
    store = await open_store("sqlite", tmp_path / "database")
    with disk_at(tmp_path / "disk", DISK_SIZE) as disk:
        log = _log(store, tmp_path / "disk", lost, memory_bytes=1_000_000)
        async with _full(disk):
            for _ in range(3 * MANY):
                log.add(_record(log), NO_SLOT)
            size = len(encode_record(_record(log)))
            assert 3 * MANY - sum(lost) <= (4 * 2**20 + 1_000_000) // size + 1
            assert sum(lost) > MANY
        await log.aclose()
    await store.aclose()
