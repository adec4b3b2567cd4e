"""Transactions of a process that does not go on: PostgreSQL ends them, so that others get their locks."""

import asyncio
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from tests.support.databases import Postgres
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.store import database, open_store
from umg_grpc.store.database_outages import is_lost

RENAME = text("UPDATE api_keys SET name = :name")
NAME = text("SELECT name FROM api_keys")


@dataclass(frozen=True)
class Case:
    id: str
    has_statement: bool
    """Whether the process makes a statement after it was frozen, before the commit."""


CASES = [Case("during a statement", has_statement=True), Case("before the commit", has_statement=False)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_the_locks_of_a_process_that_does_not_go_on_are_released(
    case: Case, postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = await postgres.create_prepared(f"{tmp_path.name}_frozen_{case.has_statement}")
    async with asyncio.timeout(60), AsyncExitStack() as stack:
        other = await stack.enter_async_context(aclosing(await open_store(url, tmp_path)))
        await ApiKeys(other).create("key")  # its connection has the usual limit: it goes on, also on a busy machine
        monkeypatch.setattr(database, "IDLE_TRANSACTION_MILLISECONDS", 500)
        frozen = await stack.enter_async_context(aclosing(await open_store(url, tmp_path)))
        with pytest.raises(DBAPIError) as raised:
            async with frozen.write() as session:
                await session.execute(RENAME, {"name": "of the frozen process"})
                async with other.write() as waiting:  # waits for the lock, while the first session does nothing
                    await waiting.execute(RENAME, {"name": "of the other"})
                if case.has_statement:
                    await session.execute(NAME)
        assert is_lost(raised.value)  # certainly not stored, so that the transaction is repeated
        async with frozen.read() as session:  # which has a new connection
            assert await session.scalar(NAME) == "of the other"
