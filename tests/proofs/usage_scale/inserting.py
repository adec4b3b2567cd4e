"""Inserts records into a filled database, as a gateway does, and measures the processor time of 500 of them."""

import time
from datetime import datetime

from tests.proofs.usage_scale.filling import Filling
from tests.proofs.usage_scale.reports import processor_seconds
from tests.support.usage_records import lines, record
from umg_grpc.base.time_units import micros_of
from umg_grpc.store import Store
from umg_grpc.store.usage_record_table import INSERTED_ROWS, UsageRecord, UsageRecords

BATCHES = 12


def new_records(filling: Filling, begin: datetime, batch: int) -> list[UsageRecord]:
    """Return records of as many keys, models and channels as the filled ones, which arrived in the second of a batch."""
    start = micros_of(begin) + batch * 10**6
    return [
        record(
            number,
            record_id=f"{batch:016x}-{number:012x}",
            request_id=f"req_{start + number:014x}{number:018x}",
            key_id=f"key_{0 if number % 2 else number * 7919 % filling.keys:016d}",
            model=f"vendor/model-{number * 31 % filling.models}",
            channel=f"channel-{number % 4}",
            start_micros=start + number,
            duration_micros=300_000 + number * 7919 % 9_000_000,
            first_byte_micros=200_000,
            status="OK" if number % 50 else "UNAVAILABLE",
            input_tokens=1000,
            output_tokens=100,
        )
        for number in range(INSERTED_ROWS)
    ]


async def measure_inserts(store: Store, filling: Filling, server_process: int | None) -> tuple[float, float]:
    """Return the median processor time of a transaction with 500 records, in seconds: of the gateway, and of the
    connection's server process.
    """
    records, ours, theirs = UsageRecords(store), list[float](), list[float]()
    for batch in range(BATCHES):
        made = lines(*new_records(filling, filling.end, batch))
        began, all_began = time.process_time(), processor_seconds(server_process)
        await records.insert(made)
        own = time.process_time() - began
        ours.append(own)
        theirs.append(processor_seconds(server_process) - all_began - own if server_process else 0.0)
    return sorted(ours)[BATCHES // 2], sorted(theirs)[BATCHES // 2]
