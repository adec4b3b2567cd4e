"""Shares of a budget that calls without a bound of their own reserve."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event
from sqlalchemy.engine import Engine

from umg_grpc.access.budget_reservations import Budgets, Reservation
from umg_grpc.access.caller_identity import Caller
from umg_grpc.base.errors import UmgError
from umg_grpc.store import open_store
from umg_grpc.store.budget_accounts import BudgetAccounts
from umg_grpc.store.database_time import GivenClock

BUDGET = 1_000_000
LEAST, MOST = 1000, 10_000_000
NOW = datetime(2026, 7, 1, tzinfo=UTC)


class Spender:
    """Two processes whose calls are of one key."""

    def __init__(self, one: Budgets, other: Budgets, budget: int) -> None:
        self.processes = one, other
        self.caller = Caller("key_1", "app", (), None, None, budget_micro_credits=budget)
        self.statements = 0
        """Number of leases from the database."""

    async def reserve(self, least: int = LEAST, most: int | None = MOST, process: int = 0) -> Reservation:
        reservation = await self.processes[process].reserve(self.caller, least, most)
        assert reservation is not None
        return reservation


@asynccontextmanager
async def spending(data: Path, budget: int = BUDGET) -> AsyncGenerator[Spender, None]:
    store = await open_store("sqlite", data)
    store.clock = GivenClock(lambda: NOW)  # leases end by the clock: none does while the calls are made
    accounts = BudgetAccounts(store)
    spender = Spender(
        *(Budgets(accounts, holder, "directory", store.clock, lambda: 0.0) for holder in ("one", "other")), budget
    )

    def count(_: object, __: object, statement: str, *___: object) -> None:
        spender.statements += statement.startswith(("INSERT INTO budget_leases", "UPDATE budget_leases"))

    event.listen(Engine, "before_cursor_execute", count)
    try:
        yield spender
    finally:
        event.remove(Engine, "before_cursor_execute", count)
        await store.aclose()


async def test_a_call_reserves_a_sixteenth_of_the_rest_at_most(tmp_path: Path) -> None:
    async with spending(tmp_path) as spender:
        first = await spender.reserve()
        assert first.micro_credits == BUDGET // 16
        assert (await spender.reserve()).micro_credits == pytest.approx(BUDGET * 15 // 256, rel=0.01)
        first.end(0)
        assert (await spender.reserve(most=5000)).micro_credits == 5000


async def test_parallel_calls_share_a_budget_until_it_does_not_pay_for_the_least(tmp_path: Path) -> None:
    async with spending(tmp_path) as spender:
        amounts = list[int]()
        for _ in range(1000):
            try:
                amounts.append((await spender.reserve()).micro_credits)
            except UmgError:
                break
        assert amounts == sorted(amounts, reverse=True)
        assert len(amounts) > 60
        assert min(amounts) >= LEAST
        assert BUDGET - LEAST < sum(amounts) <= BUDGET


async def test_calls_one_after_the_other_lease_seldom(tmp_path: Path) -> None:
    async with spending(tmp_path) as spender:
        for _ in range(200):
            (await spender.reserve()).end(300)
        assert spender.statements < 4


async def test_many_parallel_calls_lease_seldom_from_a_large_budget(tmp_path: Path) -> None:
    async with spending(tmp_path, budget=10**9) as spender:
        open_calls = [await spender.reserve(most=10**6) for _ in range(200)]
        assert {call.micro_credits for call in open_calls} == {10**6}
        assert spender.statements < 20


async def test_a_call_with_a_bound_of_its_own_reserves_exactly_that(tmp_path: Path) -> None:
    async with spending(tmp_path) as spender:
        assert (await spender.reserve(BUDGET - 10, None)).micro_credits == BUDGET - 10
        assert (await spender.reserve(10, None, process=1)).micro_credits == 10
        with pytest.raises(UmgError):
            await spender.reserve(1, None)


operations = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 300_000), st.integers(0, 10**7), st.booleans()), max_size=40)  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations)
async def test_reservations_never_exceed_the_budget(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[int, int, int, bool]]
) -> None:
    data = tmp_path_factory.mktemp("budget")
    async with spending(data) as spender:
        open_calls, spent = list[Reservation](), 0
        for process, least, more, ends in operations:
            try:
                open_calls.append(await spender.reserve(least, least + more, process))
            except UmgError:
                continue
            if ends:
                cost = open_calls[0].micro_credits // 3
                spent += cost
                open_calls.pop(0).end(cost)
            assert spent + sum(call.micro_credits for call in open_calls) <= BUDGET
        store = await open_store("sqlite", data)
        balances = await BudgetAccounts(store).balances({"key_1": 0})
        await store.aclose()
        assert all(sum(balance) <= BUDGET for balance in balances.values())
