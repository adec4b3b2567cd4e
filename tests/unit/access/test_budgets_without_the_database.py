"""Budgets while the database does not answer: the calls that leases pay for, and their waits."""

import asyncio
import heapq
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count

import pytest
from sqlalchemy import event, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError

from tests.support.databases import Database
from tests.support.machines import BUDGET, COST, Machines, machines
from umg_grpc.access.budget_leases import VALID_SECONDS
from umg_grpc.access.budget_reservations import STEP_SECONDS, Reservation
from umg_grpc.base.errors import UmgError
from umg_grpc.store.budget_accounts import lock_accounts
from umg_grpc.v1 import pb


async def test_without_the_database_a_lease_is_spent_for_75_seconds(database: Database) -> None:
    async with machines(database) as fleet:
        for _ in range(5):
            await fleet.call("one")
        await fleet.process("one").step()
        async with fleet.store.write() as session:
            await session.execute(text("ALTER TABLE budget_leases RENAME TO away"))
        await fleet.call("one")
        fleet.wait(VALID_SECONDS - 1)
        await fleet.call("one")
        fleet.wait(1)
        with pytest.raises(UmgError) as refused:
            await fleet.call("one")
        assert refused.value.reason == pb.ERROR_REASON_UNAVAILABLE


async def test_calls_in_a_queue_do_not_wait_for_an_absent_database_one_by_one(database: Database) -> None:
    async with machines(database) as fleet:
        await fleet.call("one")
        async with fleet.store.write() as session:
            await session.execute(text("ALTER TABLE budget_accounts RENAME TO away"))
        statements = list[str]()

        def note(_: object, __: object, statement: str, *___: object) -> None:
            statements.append(statement)

        event.listen(Engine, "before_cursor_execute", note)
        try:
            calls = [fleet.reserve("one", BUDGET // 2) for _ in range(20)]
            errors = await asyncio.gather(*calls, return_exceptions=True)
        finally:
            event.remove(Engine, "before_cursor_execute", note)
        assert {getattr(error, "reason", None) for error in errors} == {pb.ERROR_REASON_UNAVAILABLE}
        assert len([statement for statement in statements if "budget_accounts" in statement]) == 1
        fleet.wait(1)
        async with fleet.store.write() as session:
            await session.execute(text("ALTER TABLE away RENAME TO budget_accounts"))
        await fleet.reserve("one", BUDGET // 2)


@dataclass(frozen=True)
class Spending:
    """Calls of a process: one each tenth of a second, which lasts half a second. Every sixth may cost more."""

    id: str
    least: int
    """Least reservation of every sixth call."""
    most: int


SPENDING = [
    Spending("all calls alike", COST, COST),
    Spending("maxima of twenty times the cost", 20 * COST, 20 * COST),
    Spending("answers without a maximum", 10 * COST, 1000 * COST),
]
PAUSE_SECONDS, CALL_SECONDS = 0.1, 0.5


@pytest.mark.parametrize("case", SPENDING, ids=lambda case: case.id)
async def test_without_the_database_a_large_budget_is_spent_for_a_minute(database: Database, case: Spending) -> None:
    async with machines(database, 10**9) as fleet:
        assert await spend(fleet, case, 30) == 0
        async with away(fleet, "budget_leases"):
            assert await spend(fleet, case, 60) == 0
        assert await spend(fleet, case, 1) == 0


@asynccontextmanager
async def away(fleet: Machines, table: str) -> AsyncGenerator[None, None]:
    async with fleet.store.write() as session:
        await session.execute(text(f"ALTER TABLE {table} RENAME TO away"))
    yield
    async with fleet.store.write() as session:
        await session.execute(text(f"ALTER TABLE away RENAME TO {table}"))


async def spend(fleet: Machines, case: Spending, seconds: float) -> int:
    """Make calls for some time. Return the number of refused ones."""
    running, refused, until = list[tuple[float, int, Reservation]](), 0, fleet.monotonic + seconds
    for number in count():
        if number % round(STEP_SECONDS / PAUSE_SECONDS) == 0:
            with suppress(SQLAlchemyError):
                await fleet.process("one").step()
        least, most = (case.least, case.most) if number % 6 == 0 else (COST, COST)
        try:
            reservation = await fleet.process("one").reserve(fleet.caller, least, most)
        except UmgError:
            refused += 1
        else:
            assert reservation is not None
            heapq.heappush(running, (fleet.monotonic + CALL_SECONDS, number, reservation))
        is_last = fleet.monotonic >= until
        while running and (is_last or running[0][0] <= fleet.monotonic):
            heapq.heappop(running)[2].end(COST)
        if is_last:
            break
        fleet.wait(PAUSE_SECONDS)
    return refused


async def test_a_call_does_not_wait_for_a_larger_lease_while_the_database_does_not_answer(database: Database) -> None:
    async with machines(database) as fleet:
        (await fleet.reserve("one", 10 * COST)).end(COST)
        async with fleet.store.write() as session:
            await lock_accounts(session, [(fleet.caller.key_id, 0)])
            first, other = await asyncio.gather(
                *(fleet.process("one").reserve(fleet.caller, COST, BUDGET) for _ in range(2))
            )
        assert first is not None
        assert other is not None
        assert COST <= first.micro_credits < BUDGET // 16
        assert COST <= other.micro_credits < BUDGET // 16
