"""Usage log: the number of records that the database does not have, and the deletion of old records."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from structlog.testing import capture_logs

from tests.support.databases import Database, Postgres
from umg_grpc.access.usage_record_writer import UsageLog
from umg_grpc.base.time_units import micros_of
from umg_grpc.config.config_values import UsageRetention
from umg_grpc.store.database import open_store
from umg_grpc.store.in_flight_record_file import NO_SLOT
from umg_grpc.store.usage_record_table import UsageRecord, UsageRecords, encode_record
from umg_grpc.store.usage_sweep import ROW_BYTES


async def _until_waiting(log: UsageLog, count: int) -> None:
    async with asyncio.timeout(60):
        while log.waiting_writes != count:  # noqa: ASYNC110  # no event reports the end of a write
            await asyncio.sleep(0.01)  # leaves the processor to the writer


def _record(record_id: str, start_micros: int) -> UsageRecord:
    return UsageRecord(
        record_id=record_id,
        request_id="one",
        key_id="",
        operation="generate",
        method="",
        face="",
        start_micros=start_micros,
    )


async def test_records_wait_from_the_first_failed_step_of_a_write(postgres: Postgres, tmp_path: Path) -> None:
    """The first step of a first write reads the holders of budget leases."""
    store = await open_store(postgres.create("test_usage_log"), tmp_path)
    log = UsageLog(store, tmp_path, UsageRetention(ttl=3600, max_bytes=10**6), lambda: datetime.now(UTC))
    try:
        log.add(_record(next(log.new_ids), 1), NO_SLOT)
        assert log.waiting_writes == 0, "no write has begun"
        postgres.stop()
        try:
            log.start()
            await _until_waiting(log, 1)
        finally:
            postgres.start()
        await _until_waiting(log, 0)
    finally:
        await log.aclose()
        await store.aclose()


async def test_records_deleted_for_their_size_before_their_time_are_logged_and_counted(
    prepared_database: Database, tmp_path: Path
) -> None:
    store = await open_store(prepared_database.url, tmp_path)
    now = micros_of(datetime.now(UTC))
    records = [_record(f"r-{number}", now + number) for number in range(10)]
    await UsageRecords(store).insert([encode_record(record) for record in records])
    counted = asyncio.Queue[int]()
    log = UsageLog(
        *(
            store,
            tmp_path,
            UsageRetention(ttl=3600, max_bytes=4 * ROW_BYTES),
            lambda: datetime.now(UTC),
        ),
        count_deleted_early=counted.put_nowait,
        sweep_seconds=0.01,
    )
    try:
        with capture_logs() as logged:
            log.start()
            async with asyncio.timeout(60):
                assert await counted.get() == 6
    finally:
        await log.aclose()
        await store.aclose()
    [line] = [line for line in logged if line["log_level"] == "warning"]
    assert line["event"] == "usage records were deleted before `usage.ttl`, since they exceed `usage.max_bytes`"
    assert (line["records"], line["records_begin"]) == (6, records[6].start_time.isoformat(timespec="seconds"))
