"""Processes on machines of their own that spend one budget, with clocks that the test moves."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tests.support.databases import Database
from umg_grpc.access.budget_reservations import Budgets, Reservation
from umg_grpc.access.caller_identity import Caller
from umg_grpc.base.errors import UmgError
from umg_grpc.store import Store, open_store
from umg_grpc.store.budget_accounts import Balance, BudgetAccounts
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
            budget_period=reservation.accounts[0].period,
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
        for process in all_of_them.processes.values():
            await process.aclose(5)
        await store.aclose()
