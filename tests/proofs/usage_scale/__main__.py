"""Command `python -m tests.proofs.usage_scale [--rows N] [--days N] [--keys N] [--page-size N] [--sqlite]
[--only reports|queries|pages|inserts]`: fills a database of its own with records of 90 days, and prints the time of each page of
every report, of the queries of the console, and of its pages, as a gateway on this database draws them. The exit code
states whether all took less than 0.2 s of processor time (0.5 s by key and agent, 1 s for a summary and for a page with
one), which does not depend on other work of the machine.
"""

import argparse
import asyncio
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import structlog
from sqlalchemy import text

from tests.proofs.usage_scale.console_pages import PageVisit, measure_pages, visits
from tests.proofs.usage_scale.console_queries import Query, measure_query, queries
from tests.proofs.usage_scale.filling import Filling, bytes_of_record, fill
from tests.proofs.usage_scale.filling_objects import Objects, fill_objects
from tests.proofs.usage_scale.inserting import measure_inserts
from tests.proofs.usage_scale.reports import Measured, Report, measure, reports
from tests.support.databases import Postgres
from umg_grpc.process.gateway_processes import tune
from umg_grpc.service.servicers.usage_report import UsageReport
from umg_grpc.store import open_store
from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.store.usage_record_table import UsageRecords

OBJECT_KEYS = 10_000
"""Keys in the table of keys, of which the first ones call."""
MAX_SECONDS = 0.2
MAX_SECONDS_OF_AGENTS = 0.5
"""For reports by key and agent: they read the totals of keys, and those of keys and agents twice, which they subtract."""


PARTS = ("reports", "queries", "pages", "inserts")


async def run(
    url: str, directory: Path, filling: Filling, page_size: int, parts: Sequence[str]
) -> tuple[list[Measured], list[Query]]:
    """Fill the database, and measure each report and query twice, of which the quicker counts."""
    store = await open_store(url, directory)
    try:
        began = time.perf_counter()
        await fill(store, filling)
        await fill_objects(store, Objects(filling.end, OBJECT_KEYS))
        size = await bytes_of_record(store)
        seconds = time.perf_counter() - began
        sys.stdout.write(f"{filling.rows} records of {filling.keys} keys in {seconds:.0f} s, {size} bytes each\n")
        sys.stdout.flush()
        process = None
        if url != SQLITE_KIND:
            async with store.read() as session:  # the pool uses one connection, since there is one report at a time
                process = await session.scalar(text("SELECT pg_backend_pid()")) or 0
        usage, found = UsageReport(UsageRecords(store), store.clock), list[Measured]()
        for report in reports(filling.end) if "reports" in parts else ():
            runs = [await measure(usage, report, page_size, process) for _ in range(2)]
            found.append(min(runs, key=lambda each: max(each.processor_seconds)))
            sys.stdout.write(f"{found[-1]}\n")
            sys.stdout.flush()
        if "inserts" in parts:
            ours, theirs = await measure_inserts(store, filling, process)
            line = f"500 records: {1000 * ours:.0f} ms of the gateway's processor, {1000 * theirs:.0f} of the server's"
            sys.stdout.write(f"{line}\n")
        made = [*queries(store, filling.end)] if "queries" in parts else []
        for query in made:
            for _ in range(2):
                await measure_query(query, process)
            sys.stdout.write(f"{query}\n")
            sys.stdout.flush()
        return found, made
    finally:
        await store.aclose()


async def run_pages(url: str, directory: Path, filling: Filling, server: Postgres | None) -> list[PageVisit]:
    """Draw the pages of the console, and print their times."""
    tune()  # as `umg serve` does: a collection of the garbage of this process would be the longest turn
    found, pages = list[PageVisit](), visits(filling.end, requests=filling.rows // 2)
    async for page in measure_pages(url, directory, pages, server):
        found.append(page)
        sys.stdout.write(f"{page}\n")
        sys.stdout.flush()
    return found


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
    parser.add_argument("--only", choices=PARTS, help="measure this part alone")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    filling = Filling(datetime.now(UTC), given.rows, given.days, keys=given.keys)
    directory = Path(tempfile.mkdtemp(prefix="umg-usage-"))  # short: it is part of a socket's path
    server = None if given.sqlite else Postgres(directory)
    url = (
        SQLITE_KIND if server is None else f"{server.create('usage')}&options=-c%20max_parallel_workers_per_gather%3D0"
    )
    try:
        parts = [given.only] if given.only else PARTS
        found, made = asyncio.run(run(url, directory, filling, given.page_size, parts))
        pages = asyncio.run(run_pages(url, directory, filling, server)) if "pages" in parts else []
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(directory)
    slow: list[Measured | Query | PageVisit] = [
        each for each in found if max(each.processor_seconds) > _limit(each.report)
    ]
    slow += [each for each in (*made, *pages) if each.is_slow]
    sys.stdout.write(f"{len(found)} reports, {len(made)} queries and {len(pages)} pages\n")
    sys.stdout.write("".join(f"SLOW: {each}\n" for each in slow))
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
