"""Usage log: the number of records that the database does not have."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from tests.support.databases import Postgres
from umg_grpc.access.usage_record_writer import UsageLog
from umg_grpc.config.values import Retention
from umg_grpc.store.database import open_store
from umg_grpc.store.in_flight_records import NO_SLOT
from umg_grpc.store.usage_record_table import UsageRecord


async def _until_waiting(log: UsageLog, count: int) -> None:
    async with asyncio.timeout(60):
        while log.waiting_writes != count:  # noqa: ASYNC110  # no event reports the end of a write
            await asyncio.sleep(0.01)  # leaves the processor to the writer


async def test_records_wait_from_the_first_failed_step_of_a_write(postgres: Postgres, tmp_path: Path) -> None:
    """The first step of a first write reads the holders of budget leases."""
    store = await open_store(postgres.create("test_usage_log"), tmp_path)
    log = UsageLog(store, tmp_path, Retention(ttl=3600, max_bytes=10**6), lambda: datetime.now(UTC))
    record = UsageRecord(
        record_id=next(log.new_ids),
        request_id="one",
        key_id="",
        operation="generate",
        method="",
        face="",
        start_micros=1,
    )
    try:
        log.add(record, NO_SLOT)
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
