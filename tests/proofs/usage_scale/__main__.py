"""Command `python -m tests.proofs.usage_scale [--rows N] [--days N] [--keys N] [--page-size N] [--sqlite]
[--console]`: fills a database of its own with records of 90 days, and prints the time of each page of every report, and of the queries of the
console (with `--console` of these alone). The exit code states whether all took less than 0.2 s of processor time (0.5 s
by key and agent, 1 s for a summary), which does not depend on other work of the machine.
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

from tests.proofs.usage_scale.console_queries import Query, measure_query, queries
from tests.proofs.usage_scale.filling import Filling, fill
from tests.proofs.usage_scale.reports import Measured, Report, measure, reports
from tests.support.databases import Postgres
from umg_grpc.service.servicers.usage_report import UsageReport
from umg_grpc.store import open_store
from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.store.usage_record_table import UsageRecords

MAX_SECONDS = 0.2
MAX_SECONDS_OF_AGENTS = 0.5
"""For reports by key and agent: they read the totals of keys, and those of keys and agents twice, which they subtract."""


async def run(
    url: str, directory: Path, filling: Filling, page_size: int, *, only_console: bool
) -> tuple[list[Measured], list[Query]]:
    """Fill the database, and measure each report and query twice, of which the quicker counts."""
    store = await open_store(url, directory)
    try:
        began = time.perf_counter()
        await fill(store, filling)
        sys.stdout.write(f"{filling.rows} records of {filling.keys} keys in {time.perf_counter() - began:.0f} s\n")
        sys.stdout.flush()
        process = None
        if url != SQLITE_KIND:
            async with store.read() as session:  # the pool uses one connection, since there is one report at a time
                process = await session.scalar(text("SELECT pg_backend_pid()")) or 0
        usage, found = UsageReport(UsageRecords(store), store.clock), list[Measured]()
        for report in () if only_console else reports(filling.end):
            runs = [await measure(usage, report, page_size, process) for _ in range(2)]
            found.append(min(runs, key=lambda each: max(each.processor_seconds)))
            sys.stdout.write(f"{found[-1]}\n")
            sys.stdout.flush()
        made = [*queries(store, filling.end)]
        for query in made:
            for _ in range(2):
                await measure_query(query, process)
            sys.stdout.write(f"{query}\n")
            sys.stdout.flush()
        return found, made
    finally:
        await store.aclose()


def _limit(report: Report) -> float:
    return MAX_SECONDS_OF_AGENTS if {"key", "agent"} <= {*report.by} else MAX_SECONDS


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.proofs.usage_scale", description="Times of reports of usage."
    )
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--days", type=int, default=Filling.days)
    parser.add_argument("--keys", type=int, default=Filling.keys)
    parser.add_argument("--page-size", type=int, default=1000)
    parser.add_argument("--sqlite", action="store_true", help="use SQLite in place of PostgreSQL")
    parser.add_argument("--console", action="store_true", help="measure the queries of the console alone")
    given = parser.parse_args()
    filling = Filling(datetime.now(UTC), given.rows, given.days, keys=given.keys)
    directory = Path(tempfile.mkdtemp(prefix="umg-usage-"))  # short: it is part of a socket's path
    server = None if given.sqlite else Postgres(directory)
    url = (
        SQLITE_KIND if server is None else f"{server.create('usage')}&options=-c%20max_parallel_workers_per_gather%3D0"
    )
    try:
        found, made = asyncio.run(run(url, directory, filling, given.page_size, only_console=given.console))
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(directory)
    slow: list[Measured | Query] = [each for each in found if max(each.processor_seconds) > _limit(each.report)]
    slow += [query for query in made if query.is_slow]
    sys.stdout.write(f"{len(found)} reports and {len(made)} queries\n")
    sys.stdout.write("".join(f"SLOW: {each}\n" for each in slow))
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
