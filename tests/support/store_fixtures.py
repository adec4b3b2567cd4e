"""Fixtures of stores: a clock, and one database for all tests of a module, emptied before each test."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete

from tests.support.databases import Database, Postgres
from umg_grpc.store import Store, open_store
from umg_grpc.store.call_count_tables import COUNT_TABLES
from umg_grpc.store.database_time import GivenClock
from umg_grpc.store.table_definitions import ReasoningRow, ResponseRow, ThreadRow
from umg_grpc.store.usage_tables import TOTAL_TABLES, EarlierUsageRow, UsageRow


@dataclass
class Clock:
    time: datetime = datetime(2026, 5, 4, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def later(self, seconds: float) -> datetime:
        return self.time + timedelta(seconds=seconds)


class WrongClock(GivenClock):
    """Clock of a database that differs by more than five seconds from that of the process."""

    is_trusted = False


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def module_database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Return a database of the module. To remove a new one for each test takes long."""
    directory = tmp_path_factory.mktemp("shared")
    if request.param == "sqlite":
        return Database("sqlite", directory)
    server: Postgres = request.getfixturevalue("postgres")
    return Database(server.create(request.module.__name__), directory)


@asynccontextmanager
async def opened_stores(database: Database, number: int) -> AsyncIterator[list[Store]]:
    """Open a database as several processes do."""
    async with AsyncExitStack() as stack:
        stores = [await open_store(database.url, database.data_dir) for _ in range(number)]
        for store in stores:
            stack.push_async_callback(store.aclose)
        yield stores


@pytest.fixture
async def prepared_store(prepared_database: Database) -> AsyncIterator[Store]:
    async with opened_stores(prepared_database, 1) as [store]:
        yield store


@pytest.fixture
async def emptied_store(module_database: Database) -> AsyncIterator[Store]:
    """Open the store, and delete the rows of earlier tests."""
    async with opened_stores(module_database, 1) as [store]:
        async with store.write() as session:
            for table in (ResponseRow, ReasoningRow, ThreadRow):
                await session.execute(delete(table))
        yield store


@pytest.fixture
async def usage_store(module_database: Database) -> AsyncIterator[Store]:
    async with opened_stores(module_database, 1) as [store]:
        async with store.write() as session:
            for row in (UsageRow, EarlierUsageRow):
                await session.execute(delete(row))
            for totals in (*TOTAL_TABLES, *COUNT_TABLES):
                await session.execute(delete(totals.table))
        yield store
