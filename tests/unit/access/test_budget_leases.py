"""Leases of processes on budgets: their size, their return, and the leases of lost and of frozen processes."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.support.databases import Database
from tests.support.machines import BUDGET, COST, machines
from umg_grpc.access.budget_reservations import CONFIRM_SECONDS
from umg_grpc.access.caller_identity import Caller
from umg_grpc.base.errors import UmgError
from umg_grpc.store import Store
from umg_grpc.store.budget_accounts import LOST_SECONDS, Balance, BudgetAccounts, LeaseId
from umg_grpc.v1 import pb


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


async def test_after_a_freeze_the_account_is_the_sum_of_the_records(database: Database) -> None:
    async with machines(database) as fleet:
        records = [await fleet.call("other"), await fleet.call("frozen")]
        in_flight = await fleet.reserve("frozen")
        fleet.wait(180)
        await fleet.process("other").step()
        records += [await fleet.call("other"), await fleet.call("other")]
        in_flight.end(0)
        await fleet.process("frozen").step()
        records.append(await fleet.call("frozen"))
        await fleet.write(*records)
        for name in ("frozen", "other"):
            await fleet.process(name).return_own()
        assert await fleet.balance() == Balance(len(records) * COST, 0)


async def test_a_lease_lasts_about_a_minute_at_the_rate_of_the_process(database: Database) -> None:
    async with machines(database, 1_000_000) as fleet:
        for second in range(120):
            for _ in range(5):
                await fleet.call("one")
            fleet.wait(1)
            await fleet.process("one").step()
            if second > 30:
                unspent = (await fleet.balance()).held - 5 * COST * (second + 1)  # no record is written
                assert 60 * 5 * COST < unspent <= 78 * 5 * COST
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


class LateReturns(BudgetAccounts):
    """Accounts to which returned amounts come late."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    async def return_unused(self, amounts: Mapping[LeaseId, int]) -> None:
        self.reached.set()
        await self.go_on.wait()
        await super().return_unused(amounts)


async def test_a_refusal_during_a_return_is_not_repeated_after_it(database: Database) -> None:
    async with machines(database) as fleet:
        fleet.accounts = accounts = LateReturns(fleet.store)
        (await fleet.reserve("one", 6 * BUDGET // 10)).end(COST)
        fleet.wait(3)
        returning = asyncio.create_task(fleet.process("one").step())
        await accounts.reached.wait()
        with pytest.raises(UmgError):
            await fleet.reserve("one", 9 * BUDGET // 10)
        accounts.go_on.set()
        await returning
        (await fleet.reserve("one", BUDGET // 2)).end(0)


async def test_the_budget_period_is_that_of_the_database(database: Database) -> None:
    async with machines(database) as fleet:
        fleet.caller = Caller("key_1", "app", (), None, None, budget_micro_credits=BUDGET, budget_period="day")
        reservation = await fleet.reserve("a machine whose own clock is of another year")
        assert reservation.accounts[0].period == fleet.now.timestamp()


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
