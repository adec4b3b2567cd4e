"""One database for all tests of a module, which each of them finds empty: a new one for each takes long to remove."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import delete

from tests.databases import Database, Postgres
from umg_grpc.store import Store, open_store
from umg_grpc.store.tables import KeptReasoning, KeptResponse, KeptThread


def shared_database(request: pytest.FixtureRequest, directories: pytest.TempPathFactory) -> Database:
    """For a fixture of a module, whose params are `sqlite` and `postgresql`."""
    directory = directories.mktemp("shared")
    if request.param == "sqlite":
        return Database("sqlite", directory)
    server: Postgres = request.getfixturevalue("postgres")
    return Database(server.create(request.module.__name__), directory)


@asynccontextmanager
async def opened_empty(database: Database) -> AsyncIterator[Store]:
    """The store, less what the tests before left in it."""
    store = await open_store(database.url, database.data_dir)
    async with store.write() as session:
        for table in (KeptResponse, KeptReasoning, KeptThread):
            await session.execute(delete(table))
    try:
        yield store
    finally:
        await store.aclose()
