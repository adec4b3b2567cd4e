"""Connections to SQLite: the effects of a step whose caller is cancelled."""

import asyncio
import threading
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.store import open_store, sqlite_connection
from umg_grpc.store.database_constants import SQLITE_KIND

SLOW = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300000) SELECT count(*) FROM n"


async def test_a_cancelled_connect_leaves_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, reached, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def wait(_: object) -> None:
        loop.call_soon_threadsafe(reached.set)
        go_on.wait(20)

    monkeypatch.setattr(sqlite_connection, "_configure", wait)
    others = set(threading.enumerate())
    connecting = asyncio.create_task(sqlite_connection.Connector(tmp_path / "file").connect())
    await reached.wait()
    (thread,) = set(threading.enumerate()) - others
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    go_on.set()
    await asyncio.to_thread(thread.join, 20)
    assert not thread.is_alive()


async def _cancel_slow_statement(opened: AbstractAsyncContextManager[AsyncSession], first: str) -> None:
    """Execute a first statement in the session, and cancel the caller of a second one, which takes long."""
    begun = asyncio.Event()

    async def execute() -> None:
        async with opened as session:
            await session.execute(text(first))
            begun.set()
            await session.execute(text(SLOW))

    executing = asyncio.create_task(execute())
    await begun.wait()
    executing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await executing


async def test_a_cancelled_statement_leaves_nothing_of_its_transaction(tmp_path: Path) -> None:
    store = await open_store(SQLITE_KIND, tmp_path)
    async with store.write() as session:
        await session.execute(text("CREATE TABLE names (name TEXT)"))
    await _cancel_slow_statement(store.write(), "INSERT INTO names VALUES ('a')")
    async with store.write() as session:
        await session.execute(text("INSERT INTO names VALUES ('b')"))
    async with store.read() as session:
        assert list(await session.scalars(text("SELECT name FROM names"))) == ["b"]
    await store.aclose()


async def test_the_statement_of_a_cancelled_caller_has_ended_when_the_store_is_closed(tmp_path: Path) -> None:
    others = set(threading.enumerate())
    store = await open_store(SQLITE_KIND, tmp_path)
    (thread,) = {thread for thread in set(threading.enumerate()) - others if "_connection_worker" in thread.name}
    await _cancel_slow_statement(store.read(), "SELECT 1")
    await store.aclose()
    assert not thread.is_alive()
