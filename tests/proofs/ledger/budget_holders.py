"""Many processes that spend one budget: each with leases of its own, at one real database, in simulated time."""

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import event
from sqlalchemy.engine import Engine

from tests.proofs.ledger.simulated_time import SimulatedTime
from tests.support.databases import Postgres
from umg_grpc.access.budget_reservations import STEP_SECONDS, Budgets
from umg_grpc.access.caller_identity import Caller
from umg_grpc.base.errors import UmgError
from umg_grpc.store import Store, open_store
from umg_grpc.store.budget_accounts import BudgetAccounts, Charge, lock_accounts, settle
from umg_grpc.store.database_time import GivenClock
from umg_grpc.v1 import pb

COST = 1000
"""Micro-credits of each call."""
CALL_SECONDS = 0.5
WRITE_SECONDS = 1.0
TABLES = ("budget_accounts", "budget_leases")


@dataclass(frozen=True)
class Crowd:
    holders: int
    budget_calls: int
    """Calls that the budget pays for."""
    calls_per_second: float
    """Of all holders together."""
    calls_each: int | None = None
    """Calls of each holder; None for calls until each holder was refused or `until_spent` is reached."""
    until_spent: float = 1.0
    seed: int = 1


@dataclass
class Spent:
    calls: int = 0
    refused: int = 0
    spent_at_refusal: float | None = None
    """Part of the budget that calls had spent, or had reserved, at the first refusal; None without one."""
    statements: int = 0
    """Statements for leases: grants, confirmations, returns and queries."""
    written: int = 0
    """Statements by which records charge their costs."""
    overspent: int = 0
    """Micro-credits beyond the budget."""
    unaccounted: int = 0
    """Difference between the costs of the calls and the account, once every process has returned its lease."""
    seconds: float = 0.0
    """Simulated time."""

    @property
    def statements_per_call(self) -> float:
        return self.statements / max(1, self.calls)


class Holder:
    """A process: its calls, its background work on leases, and its usage records."""

    def __init__(self, name: str, crowd: Crowd, store: Store, time: SimulatedTime, spent: Spent) -> None:
        self.name = name
        self._crowd = crowd
        self._store = store
        self._time = time
        self._spent = spent
        self._chance = random.Random(f"{crowd.seed} {name}")
        self._caller = Caller("key_1", "app", (), None, None, budget_micro_credits=crowd.budget_calls * COST)
        self.budgets = Budgets(
            *(BudgetAccounts(store), name, f"folder of {name}", store.clock, time.monotonic), sleep=time.sleep
        )
        self._charges = list[Charge]()
        self._ended = False

    async def call_until_refused(self) -> None:
        """Make calls at random times until one is refused, or the number of calls is reached."""
        pause, made = self._crowd.holders / self._crowd.calls_per_second, 0
        while made != self._crowd.calls_each and self._is_wanted():
            await self._time.sleep(self._chance.expovariate(1 / max(pause, 1e-9)))
            if not await self._call():
                break
            made += 1
        self._ended = True

    async def look_after_leases(self) -> None:
        await self._time.sleep(self._chance.random() * STEP_SECONDS)
        while not self._ended:
            await self.budgets.step()
            await self._time.sleep(STEP_SECONDS)

    async def write_records(self) -> None:
        """Write the costs of ended calls once a second, then all of them, and return the lease."""
        await self._time.sleep(self._chance.random() * WRITE_SECONDS)
        while not self._ended:
            await self._write()
            await self._time.sleep(WRITE_SECONDS)
        await self._write()
        await self.budgets.return_own()

    def _is_wanted(self) -> bool:
        return self._spent.calls < self._crowd.until_spent * self._crowd.budget_calls

    async def _call(self) -> bool:
        try:
            reservation = await self.budgets.reserve(self._caller, COST)
        except UmgError as error:
            if error.reason != pb.ERROR_REASON_QUOTA_EXHAUSTED:
                raise
            if self._spent.spent_at_refusal is None:
                self._spent.spent_at_refusal = self._spent.calls / self._crowd.budget_calls
            self._spent.refused += 1
            return False
        assert reservation is not None
        self._spent.calls += 1
        await self._time.sleep(min(CALL_SECONDS, 0.1 * self._crowd.holders / self._crowd.calls_per_second))
        reservation.end(COST)
        self._charges.append(Charge(reservation.accounts[0], COST))
        return True

    async def _write(self) -> None:
        charges, self._charges = self._charges, []
        if charges:
            is_record = _is_record.set(True)
            async with self._store.write() as session:
                await lock_accounts(session, [(charge.lease.key_id, charge.lease.period) for charge in charges])
                self.budgets.note_wanted(await settle(session, charges))
            _is_record.reset(is_record)


async def spend(crowd: Crowd, database: str, data: Path) -> Spent:
    """Let the processes of a crowd spend a budget in an empty database."""
    store, time, spent = await open_store(database, data), SimulatedTime(), Spent()
    store.clock = GivenClock(time.now)
    holders = [Holder(f"process-{number}", crowd, store, time, spent) for number in range(crowd.holders)]
    try:
        with _counting(spent):
            await time.run(
                *(holder.call_until_refused() for holder in holders),
                *(holder.look_after_leases() for holder in holders),
                *(holder.write_records() for holder in holders),
            )
        balance = (await BudgetAccounts(store).balances({"key_1": 0}))["key_1"]
    finally:
        await store.aclose()
    spent.overspent = max(0, balance.spent - crowd.budget_calls * COST)
    spent.unaccounted = balance.held + abs(balance.spent - spent.calls * COST)
    spent.seconds = time.seconds
    return spent


@contextmanager
def _counting(spent: Spent) -> Iterator[None]:
    def count(_: object, __: object, statement: str, *___: object) -> None:
        if _is_record.get():
            spent.written += 1
        elif any(table in statement for table in TABLES):
            spent.statements += 1

    event.listen(Engine, "before_cursor_execute", count)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", count)


_is_record = ContextVar("_is_record", default=False)


FEW, MANY = 100, 1000
CROWDS = {
    "100 processes, a call each": Crowd(FEW, 4000, 100, calls_each=1),
    "1,000 processes, a call each": Crowd(MANY, 4000, 200, calls_each=1),
    "1,000 processes until refused": Crowd(MANY, 4000, 100),
    "50 processes, 500 calls/s, to 99 %": Crowd(50, 1_000_000, 500, until_spent=0.99),
}
LEAST_SPENT, MOST_STATEMENTS = 0.97, 0.2


def faults(crowd: Crowd, spent: Spent) -> Iterator[str]:
    if spent.overspent:
        yield f"{spent.overspent} micro-credits overspent"
    if spent.unaccounted:
        yield f"{spent.unaccounted} micro-credits are not accounted for"
    if spent.spent_at_refusal is not None and spent.spent_at_refusal < LEAST_SPENT:
        yield f"the first refusal was at {spent.spent_at_refusal:.1%} of the budget"
    if crowd.until_spent < 1 and spent.statements_per_call > MOST_STATEMENTS:
        yield f"{spent.statements_per_call:.2f} statements a call"


def main() -> None:
    """Run the simulations on PostgreSQL, and print a table. The exit code states whether all hold."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.proofs.ledger.budget_holders", description="Proof of the leases."
    )
    parser.add_argument("--only", default="", help="part of the name of a simulation")
    given = parser.parse_args()
    found = list[str]()
    with tempfile.TemporaryDirectory(prefix="umg-budget-holders-") as directory:
        place = Path(directory)
        place.chmod(0o755)  # PostgreSQL runs as another user
        (place / "server").mkdir()
        server = Postgres(place / "server")
        header = ("calls", "refused", "first at", "overspent", "statements", "a call", "of records", "seconds")
        sys.stdout.write(f"{'':36}" + "".join(f"{name:>12}" for name in header) + "\n")
        for number, (title, crowd) in enumerate(CROWDS.items()):
            if given.only in title:
                spent = asyncio.run(spend(crowd, server.create(f"crowd{number}"), place / f"{number}"))
                first = "-" if spent.spent_at_refusal is None else f"{spent.spent_at_refusal:.1%}"
                amounts = (spent.calls, spent.refused, first, spent.overspent, spent.statements)
                rates = (f"{spent.statements_per_call:.3f}", spent.written, f"{spent.seconds:.0f}")
                sys.stdout.write(f"{title:36}" + "".join(f"{value!s:>12}" for value in (*amounts, *rates)) + "\n")
                sys.stdout.flush()
                found += [f"{title}: {fault}" for fault in faults(crowd, spent)]
        server.stop()
    sys.stdout.write("".join(f"FAULT: {fault}\n" for fault in found) or "holds\n")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
