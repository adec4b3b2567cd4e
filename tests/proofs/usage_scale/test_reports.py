"""Reports of usage and pages of the console on a filled PostgreSQL database: the short form of
`python -m tests.proofs.usage_scale`, without times.
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from sqlalchemy import text

from tests.proofs.usage_scale.console_pages import MAX_CALLS, measure_pages, visits
from tests.proofs.usage_scale.filling import Filling, fill
from tests.proofs.usage_scale.filling_objects import Objects, fill_objects
from tests.proofs.usage_scale.reports import groupings
from tests.support.databases import Postgres
from umg_grpc.base.time_units import micros_of
from umg_grpc.store import Store, open_store
from umg_grpc.store.database_time import GivenClock
from umg_grpc.store.usage_parts import DIMENSION_COLUMNS, SUM_BUCKETS, CallFilter, bucket_start
from umg_grpc.store.usage_record_table import UsageRecords
from umg_grpc.store.usage_sum_queries import UsageSum
from umg_grpc.store.usage_tables import SUM_COLUMNS

END = datetime(2026, 5, 4, 12, 34, 56, 789, tzinfo=UTC)
FILLING = Filling(END, rows=50_000, days=30, keys=40, models=6)

OBJECTS = Objects(END, keys=60, projects=40, people=60, events=200)
SPANS = {"30 d": timedelta(days=30)}
SHOWN = {
    *(f"requests, {name}, newest" for name in ("all", "small key", "rare model", "project", "failed", "end user")),
    *("overview, all, 30 d", "overview, project, 30 d", "usage by key, 30 d", "usage by project, 30 d"),
    *("small key, 30 d", "organisation, 30 d", "request", "keys", "keys/new", "projects", "people", "audit"),
}
"""Pages of the short form."""
CACHED = "count(*) FILTER (WHERE cached)"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def url(postgres: Postgres) -> str:
    return postgres.create("usage_scale")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def store(url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Store]:
    """Open a database with 50,000 records and their totals, whose clock is at the end of them."""
    directory = tmp_path_factory.mktemp("usage")
    store = await open_store(url, directory)
    store.clock = GivenClock(lambda: END)
    await fill(store, FILLING)
    yield store
    await store.aclose()


@pytest.mark.parametrize("by", [*groupings()], ids=lambda by: ",".join(by) or "total")
async def test_sums_from_totals_are_those_of_the_records(store: Store, by: list[str]) -> None:
    until = END - timedelta(minutes=3, seconds=7)
    since = END - (timedelta(days=1, hours=5) if "minute" in by else timedelta(days=20, hours=5, minutes=6, seconds=7))
    records, found = UsageRecords(store), list[UsageSum]()
    size = 4001
    while page := await records.sums(by, CallFilter(since, until), after=found[-1].group if found else (), limit=size):
        found += page
        if len(page) < size:
            break
    async with store.read() as session:
        rows = (await session.execute(text(_sums_of_records(by, since, until)))).all()
    assert found == [
        UsageSum(
            tuple(row[: len(by)]),
            row[len(by)],
            row[len(by) + 1],
            dict(zip(SUM_COLUMNS, row[len(by) + 2 : -1], strict=True)),
            row[-1],
        )
        for row in rows
    ]
    assert found


async def test_pages_of_the_console_read_records_by_indexes_and_make_few_calls(
    store: Store, url: str, postgres: Postgres, tmp_path: Path
) -> None:
    await fill_objects(store, OBJECTS)
    pages = [page for page in visits(END, SPANS, {"newest": timedelta()}, 25_000) if page.name in SHOWN]
    # few records are read without an index where many are not
    planned = f"{url}&options=-c%20enable_seqscan%3Doff"
    found = [page async for page in measure_pages(planned, tmp_path, pages, postgres, times=0)]
    assert len(found) == len(SHOWN)
    wrong = [page for page in found if page.status != 200 or page.scans or page.calls > MAX_CALLS + 1]
    assert not wrong, "\n".join(map(str, wrong))


def _sums_of_records(by: list[str], since: datetime, until: datetime) -> str:
    """Return the SQL of sums that reads only records."""
    groups = [str(bucket_start(name, "postgresql")) if name in SUM_BUCKETS else DIMENSION_COLUMNS[name] for name in by]
    sums = ", ".join(f"CAST(sum({name}) AS BIGINT)" for name in SUM_COLUMNS)
    selected = ", ".join([*groups, "count(*)", "count(*) FILTER (WHERE status <> 'OK')", sums, CACHED])
    places = ", ".join(str(number) for number in range(1, len(by) + 1))
    query = f"SELECT {selected} FROM call_records"
    query += f" WHERE start_micros >= {micros_of(since)} AND start_micros < {micros_of(until)}"
    return f"{query} GROUP BY {places} ORDER BY {places}" if by else query
