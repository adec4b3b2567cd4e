"""Outbox of notifications: the shares of keys and receivers, on each kind of database."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tests.support.databases import Database
from umg_grpc.store import Store, open_store
from umg_grpc.store.callback_outbox import NONE_EXCLUDED, Excluded, TaskCallbacks
from umg_grpc.store.table_definitions import TaskCallback

LEASE_SECONDS = 30.0
EACH = 5
"""Number of notifications of each key."""


@asynccontextmanager
async def opened(database: Database, *owners: str) -> AsyncGenerator[Store, None]:
    """Open a store with due notifications of some keys, those of the first one before those of the others. The receiver
    of each key is `https://KEY.example`.
    """
    store = await open_store(database.url, database.data_dir)
    try:
        async with store.write() as session:
            session.add_all(
                row(owner, EACH * position + each) for position, owner in enumerate(owners) for each in range(EACH)
            )
        yield store
    finally:
        await store.aclose()


def row(owner: str, number: int) -> TaskCallback:
    return TaskCallback(
        callback_id=f"msg_{number:03}", task_id=f"task_{number:03}", owner=owner, url=f"https://{owner}.example/{number}",
        attempts=0, lease_owner="", next_attempt_micros=number, create_micros=number, body=b"",
    )  # fmt: skip


async def owners_of(
    callbacks: TaskCallbacks, limit: int, share: int, without: Excluded = NONE_EXCLUDED
) -> Counter[str]:
    return Counter(sent.owner for sent in await callbacks.claim(LEASE_SECONDS, limit, share, without))


async def test_each_key_gets_its_share(prepared_database: Database) -> None:
    async with opened(prepared_database, "first", "second", "third") as store:
        callbacks = TaskCallbacks(store, "process")
        assert await owners_of(callbacks, 100, 2) == {"first": 2, "second": 2, "third": 2}
        assert await owners_of(callbacks, 4, 4) == {"first": 2, "second": 1, "third": 1}
        assert (await owners_of(callbacks, 100, 100)).total() == 3 * EACH - 10


async def test_excluded_keys_and_receivers_get_none(prepared_database: Database) -> None:
    async with opened(prepared_database, "first", "second", "third", "third.examples") as store:
        without = Excluded(["first"], ["https://third.example"])
        found = await owners_of(TaskCallbacks(store, "process"), 100, 100, without)
    assert found == {"second": EACH, "third.examples": EACH}


async def test_a_notification_is_leased_to_one_process(prepared_database: Database) -> None:
    async with opened(prepared_database, "first", "second", "third") as store:
        processes = [TaskCallbacks(store, f"process {number}") for number in range(4)]
        claims = await asyncio.gather(*(each.claim(LEASE_SECONDS, 100, 100) for each in processes))
    assert sorted(sent.callback_id for claim in claims for sent in claim) == [
        f"msg_{each:03}" for each in range(3 * EACH)
    ]
