"""Leases of processes on budgets: their size, their return, and the leases of lost and of frozen processes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event, text
from sqlalchemy.engine import Engine

from tests.support.databases import Database
from umg_grpc.access.budget_leases import VALID_SECONDS
from umg_grpc.access.budget_reservations import CONFIRM_SECONDS, Budgets, Reservation
from umg_grpc.access.caller import Caller
from umg_grpc.errors import UmgError
from umg_grpc.store import Store, open_store
from umg_grpc.store.budget_accounts import LOST_SECONDS, Balance, BudgetAccounts
from umg_grpc.store.database_time import GivenClock
from umg_grpc.store.usage_record_table import UsageRecord, UsageRecords, encode_record
from umg_grpc.v1 import pb

BUDGET, COST = 1000, 10


@dataclass
class Machines:
    """Processes on machines of their own that share a database, with clocks that the test moves."""

    store: Store
    accounts: BudgetAccounts
    caller: Caller
    now: datetime = datetime(2026, 5, 1, tzinfo=UTC)
    monotonic: float = 0.0
    records: int = 0
    processes: dict[str, Budgets] = field(default_factory=dict)

    def process(self, name: str) -> Budgets:
        return self.processes.setdefault(
            name, Budgets(self.accounts, name, f"folder of {name}", self.store.clock, lambda: self.monotonic)
        )

    def wait(self, seconds: float) -> None:
        """Let the clocks of the database and of all machines run."""
        self.now += timedelta(seconds=seconds)
        self.monotonic += seconds

    async def reserve(self, name: str, amount: int = COST) -> Reservation:
        reservation = await self.process(name).reserve(self.caller, amount)
        assert reservation is not None
        return reservation

    async def call(self, name: str) -> UsageRecord:
        """Make a call that costs `COST`. Return its record, which is not in the database yet."""
        reservation = await self.reserve(name)
        reservation.end(COST)
        self.records += 1
        return UsageRecord(
            record_id=f"record {self.records}",
            request_id="",
            key_id=self.caller.key_id,
            operation="generate",
            method="",
            face="",
            start_micros=0,
            micro_credits=COST,
            budget_period=reservation.lease_id.period,
            budget_holder=name,
        )

    async def write(self, *records: UsageRecord) -> None:
        await UsageRecords(self.store).insert([encode_record(record) for record in records])

    async def balance(self) -> Balance:
        return (await self.accounts.balances({"key_1": 0}))["key_1"]

    async def spend_rest(self, name: str) -> int:
        """Make calls until one is refused. Return their cost."""
        spent = 0
        while True:
            try:
                await self.call(name)
            except UmgError as error:
                if error.reason != pb.ERROR_REASON_QUOTA_EXHAUSTED:
                    raise
                return spent
            spent += COST


@asynccontextmanager
async def machines(database: Database, budget: int = BUDGET) -> AsyncGenerator[Machines, None]:
    store = await open_store(database.url, database.data_dir)
    caller = Caller("key_1", "app", (), None, None, budget_micro_credits=budget)
    all_of_them = Machines(store, BudgetAccounts(store), caller)
    store.clock = GivenClock(lambda: all_of_them.now)
    try:
        yield all_of_them
    finally:
        await store.aclose()


async def test_the_lease_of_a_lost_machine_is_booked_as_spent_until_its_records_arrive(database: Database) -> None:
    async with machines(database) as fleet:
        fleet.process("other")
        record = await fleet.call("lost")
        held = (await fleet.balance()).held
        assert COST < held < BUDGET // 4
        fleet.wait(LOST_SECONDS + 1)
        await fleet.process("other").step()
        assert await fleet.balance() == Balance(held, 0)
        assert await fleet.spend_rest("other") == BUDGET - held, "nothing of the lost machine is free"

        await fleet.write(record)  # its disk is found
        await fleet.write(record)
        assert sum(await fleet.balance()) == BUDGET, "the call was counted already"
        await fleet.process("other").return_all({"lost"})
        assert sum(await fleet.balance()) == BUDGET - held + COST
        fleet.wait(10)
        assert await fleet.spend_rest("other") == held - COST


async def test_a_lease_that_is_confirmed_is_not_booked(database: Database) -> None:
    async with machines(database) as fleet:
        fleet.process("other")
        reservation = await fleet.reserve("one")
        for _ in range(12):
            fleet.wait(CONFIRM_SECONDS)
            await fleet.process("one").step()
            await fleet.process("other").step()
        assert await fleet.balance() == Balance(0, COST), "only the call in flight has an amount"
        reservation.end(0)


async def test_a_process_that_was_frozen_spends_nothing_of_its_former_lease(database: Database) -> None:
    async with machines(database) as fleet:
        fleet.process("other")
        in_flight = await fleet.reserve("frozen")
        held = (await fleet.balance()).held
        fleet.wait(180)
        await fleet.process("other").step()
        assert await fleet.balance() == Balance(held, 0)
        assert await fleet.spend_rest("other") == BUDGET - held
        with pytest.raises(UmgError) as refused:
            await fleet.reserve("frozen")
        assert refused.value.reason == pb.ERROR_REASON_QUOTA_EXHAUSTED
        in_flight.end(COST)
        await fleet.process("frozen").step()
        assert sum(await fleet.balance()) == BUDGET - held + COST, "it has returned all but its call"


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


async def test_a_lease_lasts_about_a_minute_at_the_rate_of_the_process(database: Database) -> None:
    async with machines(database, 1_000_000) as fleet:
        for second in range(120):
            for _ in range(5):
                await fleet.call("one")
            fleet.wait(1)
            await fleet.process("one").step()
            if second > 30:
                unspent = (await fleet.balance()).held - 5 * COST * (second + 1)  # no record is written
                assert 40 * 5 * COST < unspent <= 65 * 5 * COST
        fleet.wait(60)
        await fleet.process("one").step()
        assert (await fleet.balance()).held == 600 * COST, "an idle process keeps nothing"


async def test_a_refused_process_gets_the_amounts_that_others_do_not_use(database: Database) -> None:
    async with machines(database, 40 * COST) as fleet:
        spent = 0
        for _ in range(5):
            await fleet.call("idle")
            spent += COST
        unused = (await fleet.balance()).held - spent
        assert unused > 0
        spent += await fleet.spend_rest("other")
        assert spent == (40 * COST - unused) // COST * COST
        fleet.wait(1.5)
        await fleet.process("idle").step()
        spent += await fleet.spend_rest("other")
        assert spent == 40 * COST


async def test_the_budget_period_is_that_of_the_database(database: Database) -> None:
    async with machines(database) as fleet:
        fleet.caller = Caller("key_1", "app", (), None, None, budget_micro_credits=BUDGET, budget_period="day")
        reservation = await fleet.reserve("a machine whose own clock is of another year")
        assert reservation.lease_id.period == fleet.now.timestamp()


@dataclass(frozen=True)
class Refusal:
    id: str
    own: int
    """Calls in flight of the process that refuses."""
    others: int
    """Calls in flight of another process."""
    message: str


REFUSALS = [
    Refusal("nothing in flight", 0, 0, "0.000100 are spent; "),
    Refusal("own calls", 4, 0, "0.000060 are spent and 0.000040 reserved by calls in flight; "),
    Refusal("others' leases", 0, 3, "0.000070 are spent and 0.000030 leased by other processes of the gateway; "),
    Refusal(
        "both",
        *(2, 3),
        "0.000050 are spent, 0.000020 reserved by calls in flight and 0.000030 leased by other processes of the gateway; ",
    ),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
async def test_a_refusal_names_spent_reserved_and_leased_amounts(database: Database, case: Refusal) -> None:
    async with machines(database, 10 * COST) as fleet:
        for _ in range(case.others):
            await fleet.reserve("other")
        fleet.wait(3)
        await fleet.process("other").step()
        for _ in range(case.own):
            await fleet.reserve("own")
        await fleet.spend_rest("own")
        with pytest.raises(UmgError) as caught:
            await fleet.reserve("own")
        assert f"a budget of 0.000100 credits, of which {case.message}this call needs about 0.000010." in str(
            caught.value
        )


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
