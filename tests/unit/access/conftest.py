"""Store, and a clock that moves only when a test moves it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from tests.support.databases import Database
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.store import Store, open_store


@dataclass
class Clock:
    seconds: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.seconds

    def utc(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database(prepared_database: Database) -> Database:
    return prepared_database


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    store = await open_store(database.url, database.data_dir)
    yield store
    await store.aclose()


@pytest.fixture
def keys(store: Store, clock: Clock) -> ApiKeys:
    return ApiKeys(store, clock.utc)
