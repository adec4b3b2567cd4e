"""Budget accounts of PostgreSQL, whose transactions go on side by side."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncSession

from tests.support.databases import Postgres, waiting_queries
from tests.support.polling import pause
from umg_grpc.store import budget_accounts, open_store
from umg_grpc.store.budget_accounts import Balance, BudgetAccounts, Demand, LeaseId


@pytest.mark.asyncio
async def test_a_lease_that_grows_while_it_is_returned_has_the_whole_grant(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, lease = await postgres.create_prepared("leases"), LeaseId("key_1", 0, "process")
    returning, go_on, take = asyncio.Event(), asyncio.Event(), budget_accounts._take_from

    async def take_slowly(session: AsyncSession, amounts: Mapping[LeaseId, int]) -> None:
        await take(session, amounts)
        returning.set()
        await go_on.wait()

    store = await open_store(url, tmp_path)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as watch:
        try:
            accounts = BudgetAccounts(store)
            assert (await accounts.lease(lease, "folder", 100, Demand(10))).micro_credits == 10
            monkeypatch.setattr(budget_accounts, "_take_from", take_slowly)
            returned = asyncio.create_task(accounts.return_unused({lease: 10}))
            await returning.wait()
            granted = asyncio.create_task(accounts.lease(lease, "folder", 100, Demand(60)))
            async with asyncio.timeout(60):
                while not await waiting_queries(watch):
                    await pause()
            go_on.set()
            await returned
            assert (await granted).micro_credits == 60
            assert (await accounts.balances({"key_1": 0}))["key_1"] == Balance(0, 60)
            assert (await accounts.lease(lease._replace(holder="other"), "folder", 100, Demand(60))).micro_credits == 0
        finally:
            await store.aclose()
