"""Command `python -m tests.proofs.usage_scale [--rows N] [--keys N] [--page-size N]`: fills a PostgreSQL database of its own
with records of 90 days, and prints the time of each page of every report. The exit code states whether all took less
than 0.2 s of processor time (0.5 s by key and agent), which does not depend on other work of the machine.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import text

from tests.proofs.usage_scale.filling import Filling, fill
from tests.proofs.usage_scale.reports import Measured, Report, measure, reports
from tests.support.databases import Postgres
from umg_grpc.service.servicers.usage_report import UsageReport
from umg_grpc.store import open_store
from umg_grpc.store.usage_record_table import UsageRecords

MAX_SECONDS = 0.2
MAX_SECONDS_OF_AGENTS = 0.5
"""For reports by key and agent: they read the totals of keys, and those of keys and agents twice, which they subtract."""


async def run(url: str, directory: Path, filling: Filling, page_size: int) -> list[Measured]:
    """Fill the database, and measure each report twice, of which the quicker counts."""
    store = await open_store(url, directory)
    try:
        began = time.perf_counter()
        await fill(store, filling)
        sys.stdout.write(f"{filling.rows} records of {filling.keys} keys in {time.perf_counter() - began:.0f} s\n")
        async with store.read() as session:  # the pool uses one connection, since there is one report at a time
            process = await session.scalar(text("SELECT pg_backend_pid()")) or 0
        usage, found = UsageReport(UsageRecords(store), store.clock), list[Measured]()
        for report in reports(filling.end):
            runs = [await measure(usage, report, page_size, process) for _ in range(2)]
            found.append(min(runs, key=lambda each: max(each.processor_seconds)))
            sys.stdout.write(f"{found[-1]}\n")
            sys.stdout.flush()
        return found
    finally:
        await store.aclose()


def _limit(report: Report) -> float:
    return MAX_SECONDS_OF_AGENTS if {"key", "agent"} <= {*report.by} else MAX_SECONDS


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.proofs.usage_scale", description="Times of reports of usage."
    )
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--keys", type=int, default=Filling.keys)
    parser.add_argument("--page-size", type=int, default=1000)
    given = parser.parse_args()
    filling = Filling(datetime.now(UTC), given.rows, keys=given.keys)
    directory = Path(tempfile.mkdtemp(prefix="umg-usage-"))  # short: it is part of a socket's path
    server = Postgres(directory)
    try:
        found = asyncio.run(
            run(
                f"{server.create('usage')}&options=-c%20max_parallel_workers_per_gather%3D0",
                directory,
                filling,
                given.page_size,
            )
        )
    finally:
        server.stop()
        shutil.rmtree(directory)
    slow = [each for each in found if max(each.processor_seconds) > _limit(each.report)]
    longest = max(max(each.processor_seconds) for each in found)
    sys.stdout.write(f"{len(found)} reports, the longest page took {1000 * longest:.0f} ms of the processor\n")
    sys.stdout.write("".join(f"SLOW: {each}\n" for each in slow))
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
