"""Authentication of secrets: looked up at each call, answered from memory, correct soon after every change."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from secrets import token_hex

import psycopg
import pytest
from sqlalchemy import event, text
from structlog.testing import capture_logs

from tests.support.databases import Database, Postgres, wait_until_back
from tests.unit.access.conftest import Clock
from umg_grpc.access.api_keys import ApiKeys, hash_secret
from umg_grpc.access.authentication import KEYS_PER_PAGE, KNOWN_WAIT_SECONDS, UNKNOWN_WAIT_SECONDS, Authenticator
from umg_grpc.access.cached_api_keys import MAX_REJECTED
from umg_grpc.access.caller_identity import Caller
from umg_grpc.base.errors import UmgError
from umg_grpc.store import Store, open_store
from umg_grpc.store.table_definitions import ApiKey
from umg_grpc.v1 import pb

NEVER = 86_400.0
"""Seconds between two reads of changes, in tests of the lookups of single keys."""


@pytest.fixture
async def authenticator(keys: ApiKeys, clock: Clock) -> AsyncIterator[Authenticator]:
    authenticator = Authenticator(keys, monotonic=clock, now=clock, every=NEVER)
    await authenticator.start()
    yield authenticator
    await authenticator.aclose()


@dataclass(frozen=True)
class Outage:
    """Outage of the database: `begin` takes it away, `end` restores it."""

    begin: Callable[[], None]
    end: Callable[[], None]


@pytest.fixture
def outage(database: Database, request: pytest.FixtureRequest) -> Outage:
    if database.url != "sqlite":
        postgres: Postgres = request.getfixturevalue("postgres")
        return Outage(postgres.stop, postgres.start)

    def rename(old: str, new: str) -> None:
        with closing(sqlite3.connect(database.data_dir / "umg.db")) as connection:
            connection.execute(f"ALTER TABLE {old} RENAME TO {new}")

    return Outage(lambda: rename("api_keys", "away"), lambda: rename("away", "api_keys"))


async def reason(authenticator: Authenticator, secret: str) -> "pb.ErrorReason.ValueType":
    with pytest.raises(UmgError) as caught:
        await authenticator.authenticate(secret)
    assert not secret or secret not in caught.value.message
    return caught.value.reason


async def settled(authenticator: Authenticator) -> None:
    """Wait until all pending lookups have ended, for as long as the database takes: they are made in turn."""
    await authenticator._request_lookup(hash_secret(token_hex()))  # an unknown secret, so looked up after the others


async def test_a_valid_secret_authenticates_its_caller(
    authenticator: Authenticator, keys: ApiKeys, clock: Clock
) -> None:
    expire_time = clock.utc() + timedelta(days=1)
    key, secret = await keys.create(
        "app",
        model_patterns=["m-*"],
        requests_per_minute=5,
        expire_time=expire_time,
        channels=["eu-*"],
        show_route=True,
    )
    assert authenticator.cached(secret) is None
    caller = await authenticator.authenticate(secret)
    expires_at = expire_time.timestamp()
    assert caller == Caller(
        key.key_id, "app", ("m-*",), 5, expires_at, ("eu-*",), show_route=True, key_prefix=secret[:11]
    )
    assert authenticator.cached(secret) is caller
    assert await authenticator.authenticate(secret) is caller


async def test_every_live_key_is_known_after_the_start_without_the_database(
    keys: ApiKeys, clock: Clock, outage: Outage
) -> None:
    _, unused = await keys.create("unused")
    _, revoked = await keys.create("revoked")
    await keys.revoke("revoked")
    _, expired = await keys.create("expired", expire_time=clock.utc())
    many = [(await keys.create(f"app-{number}"))[1] for number in range(KEYS_PER_PAGE + 1)]
    authenticator = Authenticator(keys, monotonic=clock, now=clock)
    await authenticator.start()
    outage.begin()
    try:
        assert authenticator.known == len(many) + 1
        clock.seconds += 3600
        for secret in (unused, *many):
            assert (await authenticator.authenticate(secret)).name
        for secret in (revoked, expired, "sk-umg-of-nobody"):
            assert await reason(authenticator, secret) == pb.ERROR_REASON_UNAVAILABLE
    finally:
        outage.end()
        await authenticator.aclose()


async def test_a_revoked_key_is_forgotten_by_the_next_load(
    authenticator: Authenticator, keys: ApiKeys, clock: Clock, outage: Outage
) -> None:
    _, secret = await keys.create("app")
    await authenticator.authenticate(secret)
    await keys.revoke("app")
    clock.seconds += 60
    await authenticator.aclose()
    await authenticator.start()
    assert authenticator.known == 0
    outage.begin()
    assert await reason(authenticator, secret) == pb.ERROR_REASON_INVALID_KEY
    clock.seconds += 60
    assert await reason(authenticator, secret) == pb.ERROR_REASON_UNAVAILABLE
    outage.end()


async def test_an_invalid_key_is_refused_with_its_reason(
    authenticator: Authenticator, keys: ApiKeys, clock: Clock
) -> None:
    _, revoked = await keys.create("revoked")
    await keys.revoke("revoked")
    _, expired = await keys.create("expired", expire_time=clock.utc())
    assert await reason(authenticator, "") == pb.ERROR_REASON_MISSING_KEY
    assert await reason(authenticator, "sk-umg-wrong") == pb.ERROR_REASON_INVALID_KEY
    assert await reason(authenticator, "\udcff") == pb.ERROR_REASON_INVALID_KEY
    assert await reason(authenticator, revoked) == pb.ERROR_REASON_INVALID_KEY
    assert await reason(authenticator, expired) == pb.ERROR_REASON_KEY_EXPIRED
    assert authenticator.cached(expired) is None


async def test_expiry_is_to_the_second_and_needs_no_lookup(
    authenticator: Authenticator, keys: ApiKeys, clock: Clock, outage: Outage
) -> None:
    _, secret = await keys.create("app", expire_time=clock.utc() + timedelta(seconds=0.5))
    await authenticator.authenticate(secret)
    outage.begin()
    clock.seconds += 0.4
    assert authenticator.cached(secret) is not None
    clock.seconds += 0.1
    assert authenticator.cached(secret) is None
    assert await reason(authenticator, secret) == pb.ERROR_REASON_KEY_EXPIRED
    outage.end()


async def test_a_revoked_key_is_served_once_more_and_then_refused(
    authenticator: Authenticator, keys: ApiKeys, clock: Clock
) -> None:
    _, secret = await keys.create("app")
    await authenticator.authenticate(secret)
    await keys.revoke("app")
    clock.seconds += 0.9
    assert authenticator.cached(secret) is not None
    await settled(authenticator)
    assert authenticator.cached(secret) is not None  # fresh: no lookup was made
    clock.seconds += 3
    assert authenticator.cached(secret) is not None  # stale: returned, and looked up in the background
    await settled(authenticator)
    assert authenticator.cached(secret) is None
    assert await reason(authenticator, secret) == pb.ERROR_REASON_INVALID_KEY


async def test_a_key_in_memory_is_valid_for_its_caller_until_it_is_revoked(
    authenticator: Authenticator, keys: ApiKeys, clock: Clock
) -> None:
    _, secret = await keys.create("app")
    assert authenticator.find(f"Bearer {secret}") is None
    caller = await authenticator.authenticate(secret)
    assert [authenticator.find(f"{scheme} {secret}") for scheme in ("Basic", "")] == [None, None]
    known = authenticator.find(f"bearer  {secret} ")
    assert known is not None
    assert authenticator.valid_caller(known) is caller
    await keys.revoke("app")
    clock.seconds += 3
    assert authenticator.valid_caller(known) is caller  # stale: returned, and looked up in the background
    await settled(authenticator)
    assert authenticator.valid_caller(known) is None


async def test_a_key_in_memory_is_not_valid_after_its_expiry(
    authenticator: Authenticator, keys: ApiKeys, clock: Clock
) -> None:
    _, secret = await keys.create("app", expire_time=clock.utc() + timedelta(seconds=0.5))
    await authenticator.authenticate(secret)
    known = authenticator.find(f"Bearer {secret}")
    assert known is not None
    clock.seconds += 0.5
    assert authenticator.valid_caller(known) is None
    assert authenticator.find(f"Bearer {secret}") is None


async def test_a_caller_not_seen_for_long_is_looked_up_first(
    authenticator: Authenticator, keys: ApiKeys, clock: Clock
) -> None:
    _, secret = await keys.create("app")
    caller = await authenticator.authenticate(secret)
    clock.seconds += 11
    assert authenticator.cached(secret) is None
    assert await authenticator.authenticate(secret) is caller
    assert authenticator.cached(secret) is caller
    await keys.revoke("app")
    clock.seconds += 5
    assert authenticator.cached(secret) is None
    assert await reason(authenticator, secret) == pb.ERROR_REASON_INVALID_KEY


async def test_both_secrets_of_a_rotated_key_are_valid_until_the_overlap_ends(
    authenticator: Authenticator, keys: ApiKeys, clock: Clock
) -> None:
    key, old = await keys.create("app", operations=["embed"], administrator=True)
    before = await authenticator.authenticate(old)
    rotated, new = await keys.rotate("app", timedelta(hours=1))
    assert (rotated.key_id, rotated.prefix, rotated.previous_prefix) == (key.key_id, new[:11], old[:11])
    clock.seconds += 5
    after = [await authenticator.authenticate(secret) for secret in (old, new)]
    assert [caller.key_id for caller in after] == [key.key_id] * 2
    assert [caller.key_prefix for caller in after] == [old[:11], new[:11]]
    assert [caller.scopes for caller in after] == [before.scopes] * 2 == [frozenset({"embed", "admin"})] * 2
    clock.seconds += 3595
    assert await reason(authenticator, old) == pb.ERROR_REASON_KEY_EXPIRED
    assert (await authenticator.authenticate(new)).expires_at is None
    await keys.revoke("app")
    clock.seconds += 5
    for secret in (old, new):
        assert await reason(authenticator, secret) in {pb.ERROR_REASON_INVALID_KEY, pb.ERROR_REASON_KEY_EXPIRED}


async def test_a_second_rotation_ends_the_secret_before_the_first(authenticator: Authenticator, keys: ApiKeys) -> None:
    _, first = await keys.create("app")
    _, second = await keys.rotate("app")
    _, third = await keys.rotate("app", timedelta(0))
    assert await reason(authenticator, first) == pb.ERROR_REASON_INVALID_KEY
    assert await reason(authenticator, second) == pb.ERROR_REASON_KEY_EXPIRED
    assert (await authenticator.authenticate(third)).name == "app"


async def test_a_key_works_as_soon_as_it_is_made(authenticator: Authenticator, keys: ApiKeys) -> None:
    await reason(authenticator, "sk-umg-wrong")
    _, secret = await keys.create("app")
    assert (await authenticator.authenticate(secret)).name == "app"


async def test_a_wrong_secret_is_not_looked_up_again_for_a_while(
    authenticator: Authenticator, clock: Clock, outage: Outage
) -> None:
    await reason(authenticator, "wrong")
    outage.begin()
    clock.seconds += 5
    assert await reason(authenticator, "wrong") == pb.ERROR_REASON_INVALID_KEY
    clock.seconds += 0.1
    assert await reason(authenticator, "wrong") == pb.ERROR_REASON_UNAVAILABLE
    outage.end()


async def test_wrong_secrets_in_large_numbers_take_bounded_memory_and_block_no_caller(
    authenticator: Authenticator, keys: ApiKeys
) -> None:
    _, secret = await keys.create("app")
    wrong = [f"wrong {number}" for number in range(MAX_REJECTED + 500)]
    reasons = asyncio.gather(*(reason(authenticator, each) for each in wrong))
    assert (await authenticator.authenticate(secret)).name == "app"
    assert set(await reasons) == {pb.ERROR_REASON_INVALID_KEY}
    assert len(authenticator._memory.rejected) == MAX_REJECTED


async def test_callers_of_one_key_at_once_are_one_lookup(authenticator: Authenticator, keys: ApiKeys) -> None:
    _, secret = await keys.create("app")
    callers = await asyncio.gather(*(authenticator.authenticate(secret) for _ in range(50)))
    assert all(caller is callers[0] for caller in callers)


async def test_cached_callers_stay_valid_during_an_outage(
    authenticator: Authenticator, keys: ApiKeys, clock: Clock, outage: Outage, store: Store
) -> None:
    _, secret = await keys.create("app")
    _, unseen = await keys.create("unseen")
    caller = await authenticator.authenticate(secret)
    with capture_logs() as logs:
        outage.begin()
        for seconds in (2, 3, 20, 3500):
            clock.seconds += seconds
            assert await authenticator.authenticate(secret) is caller
            await settled(authenticator)
        assert authenticator.cached(secret) is caller
        assert await reason(authenticator, unseen) == pb.ERROR_REASON_UNAVAILABLE
        assert await reason(authenticator, "sk-umg-wrong") == pb.ERROR_REASON_UNAVAILABLE
        assert len(logs) == 1
        outage.end()
        clock.seconds += 2
        await wait_until_back(store)
        await settled(authenticator)
        assert (await authenticator.authenticate(unseen)).name == "unseen"
    assert [entry["log_level"] for entry in logs] == ["warning", "info"]
    assert await reason(authenticator, "sk-umg-wrong") == pb.ERROR_REASON_INVALID_KEY


async def test_a_key_that_was_learnt_is_known_in_an_outage_before_its_first_use(
    authenticator: Authenticator, keys: ApiKeys, outage: Outage
) -> None:
    _, secret = await keys.create("app")
    revoked, refused = await keys.create("revoked")
    await keys.revoke(revoked.key_id)
    for known in (secret, refused, ""):
        await authenticator.learn(known)
    outage.begin()
    assert (await authenticator.authenticate(secret)).name == "app"
    assert await reason(authenticator, refused) == pb.ERROR_REASON_INVALID_KEY
    outage.end()


async def test_a_key_revoked_in_an_outage_is_refused_after_it(
    authenticator: Authenticator, keys: ApiKeys, clock: Clock, outage: Outage, store: Store
) -> None:
    _, secret = await keys.create("app")
    await authenticator.authenticate(secret)
    outage.begin()
    clock.seconds += 60
    await authenticator.authenticate(secret)
    outage.end()
    await wait_until_back(store)
    await settled(authenticator)  # a lookup that waited for the database
    await keys.revoke("app")
    clock.seconds += 3
    authenticator.cached(secret)
    await settled(authenticator)
    assert await reason(authenticator, secret) == pb.ERROR_REASON_INVALID_KEY


async def test_a_database_that_hangs_is_waited_for_once(postgres: Postgres, clock: Clock, tmp_path: Path) -> None:
    url = postgres.create(tmp_path.name)
    store = await open_store(url, tmp_path)
    keys = ApiKeys(store, clock.utc)
    authenticator = Authenticator(keys, monotonic=clock, now=clock)
    await authenticator.start()
    _, secret = await keys.create("app")
    caller = await authenticator.authenticate(secret)
    clock.seconds += 60
    loop = asyncio.get_running_loop()
    with psycopg.connect(url) as connection:
        connection.execute("LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE")
        began = loop.time()
        assert await authenticator.authenticate(secret) is caller
        assert 0.9 * KNOWN_WAIT_SECONDS < loop.time() - began < UNKNOWN_WAIT_SECONDS
        assert authenticator.cached(secret) is caller  # from now on no caller waits
        connection.rollback()
    await settled(authenticator)
    assert authenticator.cached(secret) is caller
    await authenticator.aclose()
    await store.aclose()


async def test_closing_answers_waiting_lookups(postgres: Postgres, tmp_path: Path) -> None:
    url = postgres.create(tmp_path.name)
    store = await open_store(url, tmp_path)
    authenticator = Authenticator(ApiKeys(store))
    await authenticator.start()
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute("LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE")
        waiting = asyncio.create_task(reason(authenticator, "sk-umg-wrong"))
        blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while await (await connection.execute(blocked)).fetchone() == (0,):
            pass
        await authenticator.aclose()
        assert await waiting == pb.ERROR_REASON_UNAVAILABLE
    await store.aclose()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "key lookups"]


class Reader:
    """Keys of a database, and the numbers of rows that were read of them."""

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self.keys = ApiKeys(store, now)
        self.rows = 0

        def count(*_: object) -> None:
            self.rows += 1

        self.end = lambda: event.remove(ApiKey, "load", count)
        event.listen(ApiKey, "load", count)


@pytest.fixture
async def current(keys: ApiKeys) -> AsyncIterator[Authenticator]:
    """Yield an authenticator that reads the changes all the time."""
    authenticator = Authenticator(keys, every=0.001)
    await authenticator.start()
    yield authenticator
    await authenticator.aclose()


async def until(condition: Callable[[], bool]) -> None:
    async def is_met() -> bool:
        await asyncio.sleep(0.001)
        return condition()

    async with asyncio.timeout(60):
        while not await is_met():
            pass


async def test_each_change_of_a_key_is_in_memory_soon(current: Authenticator, keys: ApiKeys, store: Store) -> None:
    _, secret = await keys.create("app")
    await until(lambda: current.cached(secret) is not None)
    await keys.update("app", {"requests_per_minute": 7})
    await until(lambda: (found := current.cached(secret)) is not None and found.requests_per_minute == 7)
    _, second = await keys.rotate("app")
    await until(lambda: current.cached(second) is not None)
    assert (former := current.cached(secret)) is not None
    assert former.expires_at is not None
    _, third = await keys.rotate("app")
    await until(lambda: current.cached(third) is not None)
    assert [current.cached(each) is not None for each in (secret, second)] == [False, True]
    await keys.revoke("app")
    await until(lambda: current.cached(third) is None)
    _, deleted = await keys.create("deleted")
    await until(lambda: current.cached(deleted) is not None)
    async with store.write() as session:
        await session.execute(text("DELETE FROM api_keys WHERE name = 'deleted'"))
    await until(lambda: current.known == 0)
    assert current._memory._secrets == {}


async def test_keys_that_do_not_change_are_not_read_again(store: Store, clock: Clock) -> None:
    reader = Reader(store, clock.utc)
    secrets = [(await reader.keys.create(f"app-{number}"))[1] for number in range(20)]
    used = {(await reader.keys.get("app-0")).key_id: clock.utc()}
    authenticator = Authenticator(reader.keys, every=0.001)
    await authenticator.start()
    try:
        assert authenticator.known == len(secrets)
        loaded = reader.rows
        await reader.keys.record_uses(used)  # no change
        async with store.write() as session:
            await session.execute(text("UPDATE api_keys SET requests_per_minute = 3 WHERE name = 'app-1'"))
        await until(lambda: (found := authenticator.cached(secrets[1])) is not None and found.requests_per_minute == 3)
        assert [authenticator.cached(secret) is not None for secret in secrets] == [True] * len(secrets)
        assert reader.rows == loaded + 1
    finally:
        await authenticator.aclose()
        reader.end()


async def test_no_change_is_passed_over_that_is_committed_after_a_later_one(
    database: Database, keys: ApiKeys, current: Authenticator, store: Store
) -> None:
    first, second = [(await keys.create(name))[1] for name in ("first", "second")]
    await until(lambda: current.known == 2)

    async def revoke_both() -> None:
        async with store.write() as session:
            await session.execute(text("UPDATE api_keys SET revoke_time = create_time WHERE name = 'first'"))
            other = asyncio.create_task(keys.revoke("second"))
            for _ in range(20):  # the other may be committed first, if nothing keeps it from that
                await asyncio.sleep(0.001)
        await other

    await revoke_both()
    await until(lambda: current.cached(first) is None and current.cached(second) is None)


async def test_a_stored_key_is_valid_for_a_bounded_time_without_the_database(
    keys: ApiKeys, clock: Clock, outage: Outage
) -> None:
    _, secret = await keys.create("app")
    _, first = await keys.create("first")
    authenticator = Authenticator(keys, monotonic=clock, now=clock, every=NEVER, max_stale=600, permanent=[first])
    await authenticator.start()
    outage.begin()
    try:
        for seconds in (30, 570):
            clock.seconds += seconds
            assert (await authenticator.authenticate(secret)).name == "app"
        clock.seconds += 1
        assert authenticator.cached(secret) is None
        assert await reason(authenticator, secret) == pb.ERROR_REASON_UNAVAILABLE
        assert (await authenticator.authenticate(first)).name == "first"
        assert authenticator.cached(first) is not None
    finally:
        outage.end()
    clock.seconds += 5
    async with asyncio.timeout(60):
        while authenticator.cached(secret) is None:
            with suppress(UmgError):
                await authenticator.authenticate(secret)
            clock.seconds += 1
    await authenticator.aclose()
