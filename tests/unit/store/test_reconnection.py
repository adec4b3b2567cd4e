"""Restarts of PostgreSQL: sessions wait for it, and a transaction whose connection is lost is repeated where it can be."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from tests.support.databases import Postgres
from umg_grpc.store import Store, database_outages, open_store, repeated_background_tasks
from umg_grpc.store.database import repeated, repeated_idempotent
from umg_grpc.store.database_outages import DatabaseAwayError, Reconnection, UnconfirmedCommitError
from umg_grpc.store.repeated_background_tasks import Background

CALLS = 200
"""Sessions at once, many times the connections of the pool."""


@pytest.fixture
async def store(postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Store]:
    monkeypatch.setattr(database_outages, "WAIT_SECONDS", 60)  # the machine of the tests may be slow
    store = await open_store(await postgres.create_prepared(tmp_path.name), tmp_path)
    async with store.write() as session:
        await session.execute(text("CREATE TABLE counts (count integer UNIQUE)"))
    yield store
    await store.aclose()


class Base(DeclarativeBase):
    """Base class of the table of the tests."""


class Count(Base):
    __tablename__ = "counts"
    count: Mapped[int] = mapped_column(primary_key=True)


LOSE = text("SELECT pg_terminate_backend(pg_backend_pid())")


class Counts:
    """Repository of numbers, whose methods lose their connection at their first run."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.runs = 0

    @repeated
    async def read(self) -> list[int]:
        self.runs += 1
        async with self._store.read() as session:
            if self.runs == 1:
                await session.execute(LOSE)
            return list(await session.scalars(text("SELECT count FROM counts ORDER BY count")))

    @repeated
    async def insert(self, row: Count) -> None:
        self.runs += 1
        async with self._store.write() as session:
            session.add(row)
            await session.flush()
            if self.runs == 1:
                await session.execute(LOSE)

    @repeated_idempotent
    async def put(self, count: int) -> None:
        self.runs += 1
        async with self._store.write() as session:
            await session.merge(Count(count=count))


async def test_all_calls_during_a_restart_are_answered(store: Store, postgres: Postgres) -> None:
    async def read() -> int | None:
        async with store.read() as session:
            count: int | None = await session.scalar(select(1))
            return count

    async def insert(count: int) -> None:
        async with store.write() as session:
            await session.execute(text("INSERT INTO counts VALUES (:count)"), {"count": count})

    await read()
    await asyncio.to_thread(postgres.stop)
    calls = [asyncio.create_task(read()) for _ in range(CALLS)]
    writes = [asyncio.create_task(insert(number)) for number in range(CALLS)]
    await asyncio.to_thread(postgres.start)
    assert set(await asyncio.gather(*calls)) == {1}
    await asyncio.gather(*writes)
    async with store.read() as session:
        assert await session.scalar(text("SELECT count(*) FROM counts")) == CALLS
    assert store.reconnection.may_lack_rows  # the calls noticed the restart
    assert not store.reconnection.is_away


async def test_a_transaction_that_loses_its_connection_is_repeated(store: Store) -> None:
    counts = Counts(store)
    await counts.insert(Count(count=7))
    assert counts.runs == 2
    counts.runs = 0
    assert await counts.read() == [7]
    assert counts.runs == 2


async def test_a_commit_without_an_answer_is_not_repeated(store: Store) -> None:
    async with store.write() as session:
        await session.execute(
            text(
                "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
            )
        )
        await session.execute(
            text(
                "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON counts DEFERRABLE INITIALLY DEFERRED"
                " FOR EACH ROW EXECUTE FUNCTION lose()"
            )
        )
    counts = Counts(store)
    counts.runs = 1  # loses its connection in the commit alone
    with pytest.raises(UnconfirmedCommitError):
        await counts.insert(Count(count=7))
    assert counts.runs == 2
    with pytest.raises(UnconfirmedCommitError):
        await counts.put(7)
    assert counts.runs == 4


async def test_other_errors_are_not_repeated(store: Store) -> None:
    counts = Counts(store)
    counts.runs = 1
    await counts.insert(Count(count=7))
    with pytest.raises(DBAPIError, match="duplicate key"):
        await counts.insert(Count(count=7))
    assert counts.runs == 3


class Probe:
    """Database that is away until `answers` is set, and a clock that a test sets."""

    def __init__(self) -> None:
        self.answers = False
        self.seconds = 0.0
        self.state = Reconnection(self.run, lambda: self.seconds)

    async def run(self) -> None:
        if not self.answers:
            raise OSError("refused")

    def lose(self) -> None:
        self.answers = False
        self.state.mark_away(OSError("the connection is lost"))


@pytest.fixture
async def probe(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Probe]:
    for name in ("PROBE_SECONDS", "LATE_PROBE_SECONDS"):
        monkeypatch.setattr(database_outages, name, 0.001)
    probe = Probe()
    yield probe
    await probe.state.aclose()


async def until_back(probe: Probe) -> None:
    probe.answers = True
    async with asyncio.timeout(60):
        await probe.state.returned.wait()


async def test_no_call_waits_in_a_long_outage_or_beside_too_many(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    await probe.state.wait(0)  # the database is not away
    probe.lose()
    with pytest.raises(DatabaseAwayError, match="the connection is lost"):
        await probe.state.wait(0)
    monkeypatch.setattr(database_outages, "MAX_WAITING", 1)
    waiting = asyncio.create_task(probe.state.wait(60))
    await asyncio.sleep(0)
    with pytest.raises(DatabaseAwayError):
        await probe.state.wait(60)
    probe.seconds = database_outages.PATIENCE_SECONDS
    monkeypatch.setattr(database_outages, "MAX_WAITING", 10)
    with pytest.raises(DatabaseAwayError):
        await probe.state.wait(probe.seconds + 60)
    await until_back(probe)
    await waiting


async def test_rows_may_be_missing_for_ten_seconds_after_an_outage(probe: Probe) -> None:
    seen = [probe.state.may_lack_rows]
    probe.lose()
    seen.append(probe.state.may_lack_rows)
    await until_back(probe)
    seen.append(probe.state.may_lack_rows)
    probe.seconds = database_outages.UNWRITTEN_SECONDS
    seen.append(probe.state.may_lack_rows)
    assert seen == [False, True, True, False]


async def test_an_outage_that_ended_within_a_time_is_known_and_one_before_the_process_is_not_excluded(
    probe: Probe,
) -> None:
    seen = [probe.state.may_have_been_away(60)]
    probe.seconds = 100
    seen.append(probe.state.may_have_been_away(60))
    probe.lose()
    seen.append(probe.state.may_have_been_away(60))
    await until_back(probe)
    probe.seconds = 130
    seen += [probe.state.may_have_been_away(60), probe.state.may_have_been_away(10)]
    assert seen == [True, False, True, True, False]


async def test_the_return_of_the_database_ends_the_pauses_of_background_work(
    probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated_background_tasks, "FIRST_PAUSE_SECONDS", 3600)
    tried, done = asyncio.Semaphore(0), asyncio.Semaphore(0)

    async def step() -> None:
        tried.release()
        await probe.state.wait(probe.seconds)
        done.release()

    probe.lose()
    tasks = [Background("the work", step) for _ in range(3)]
    async with asyncio.timeout(60):
        for task in tasks:
            task.wake()
            await tried.acquire()
        probe.answers = True
        for _ in tasks:
            await done.acquire()
    for task in tasks:
        await task.aclose(1)
