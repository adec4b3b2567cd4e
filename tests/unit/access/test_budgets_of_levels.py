"""Budgets of keys, projects and organisations together: a call is admitted if all permit it, and charged to all."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.support.databases import Database
from tests.support.machines import COST, Machines, machines
from umg_grpc.access.account_levels import AccountLevel
from umg_grpc.access.budget_reservations import Reservation
from umg_grpc.access.budget_settings import Budget
from umg_grpc.access.caller_identity import Caller
from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline.usage_recording import GRPC_FACE
from umg_grpc.store.budget_accounts import NO_BALANCE, Balance
from umg_grpc.store.usage_record_table import UsageRecord
from umg_grpc.v1 import pb


@pytest.fixture
async def fleet(prepared_database: Database) -> AsyncGenerator[Machines, None]:
    async with machines(prepared_database) as made:
        yield made


def key_of(number: int = 1, *, own: int | None = None, project: tuple[Budget, ...] = (), organization: tuple[Budget, ...] = ()) -> Caller:  # fmt: skip
    levels = AccountLevel("proj_1", "project", "search", budgets=project), AccountLevel("org_1", "organization", "acme", budgets=organization)  # fmt: skip
    return Caller(f"key_{number}", "app", (), None, None, budget_micro_credits=own, levels=levels)


async def reserve(fleet: Machines, caller: Caller, amount: int = COST, *, most: int | None = None) -> Reservation:
    reservation = await fleet.process("a").reserve(caller, amount, most)
    assert reservation is not None
    return reservation


async def refusal(fleet: Machines, caller: Caller, amount: int = COST) -> UmgError:
    with pytest.raises(UmgError) as caught:
        await fleet.process("a").reserve(caller, amount)
    assert caught.value.reason == pb.ERROR_REASON_QUOTA_EXHAUSTED
    return caught.value


async def charge(fleet: Machines, caller: Caller, reservation: Reservation, cost: int, number: int = 1) -> None:
    """Write the record of a call with a reservation, and end it."""
    own = {account: period for account, period, _ in reservation.accounts}
    record = UsageRecord(
        record_id=f"record {number}",
        request_id="",
        key_id=caller.key_id,
        operation="generate",
        method="",
        face=GRPC_FACE,
        start_micros=0,
        micro_credits=cost,
        budget_period=own.get(caller.key_id),
        budget_holder="a",
        budgets=[account for account in own.items() if account[0] != caller.key_id],
    )
    await fleet.write(record)
    reservation.end(cost)


async def balances(fleet: Machines, *accounts: str) -> list[Balance]:
    found = await fleet.accounts.balances(dict.fromkeys(accounts, 0))
    return [found.get(account, NO_BALANCE) for account in accounts]


@pytest.mark.parametrize(
    ("budgets", "owner"),
    [
        ({"own": 25}, "this API key"),
        ({"own": 1000, "project": (Budget("", 25),)}, "the project `search`"),
        ({"project": (Budget("", 1000),), "organization": (Budget("", 25),)}, "the organisation `acme`"),
        ({"project": (Budget("month", 1000), Budget("day", 25))}, "the project `search`"),
    ],
)
async def test_the_smallest_budget_refuses_and_is_named(
    fleet: Machines, budgets: dict[str, object], owner: str
) -> None:
    caller = key_of(**budgets)  # type: ignore[arg-type]
    held = [await reserve(fleet, caller), await reserve(fleet, caller)]
    error = await refusal(fleet, caller)
    assert error.message.startswith(f"{owner} has a budget of 0.000025 credits")
    held[0].end(0)
    await reserve(fleet, caller)


async def test_a_refused_call_holds_nothing_of_the_other_budgets(fleet: Machines) -> None:
    caller = key_of(own=2 * COST, project=(Budget("", COST),))
    first = await reserve(fleet, caller)
    for _ in range(5):
        await refusal(fleet, caller)
    first.end(0)
    alone = key_of(own=2 * COST)
    both = [await reserve(fleet, alone), await reserve(fleet, alone)]
    assert [reservation.micro_credits for reservation in both] == [COST, COST]


async def test_parallel_calls_of_many_keys_share_the_budget_of_their_project(fleet: Machines) -> None:
    callers = [key_of(number, own=1000 * COST, project=(Budget("", 10 * COST),)) for number in range(7)]
    results = await asyncio.gather(
        *(fleet.process(name).reserve(callers[number % 7], COST) for number in range(50) for name in "ab"),
        return_exceptions=True,
    )
    admitted = [result for result in results if isinstance(result, Reservation)]
    assert len(admitted) == 10
    refused = [result for result in results if isinstance(result, UmgError)]
    assert {error.reason for error in refused} == {pb.ERROR_REASON_QUOTA_EXHAUSTED}
    assert len(refused) == 90


async def test_a_call_reserves_the_same_amount_in_each_budget(fleet: Machines) -> None:
    caller = key_of(own=10**6, project=(Budget("", 3 * COST),))
    reservation = await reserve(fleet, caller, COST, most=10**5)
    assert COST <= reservation.micro_credits <= 3 * COST
    assert {amount for _, amount in reservation.holds} == {reservation.micro_credits}
    assert reservation.is_bound


async def test_a_call_is_charged_to_every_budget_once(fleet: Machines) -> None:
    caller = key_of(own=1000, project=(Budget("", 1000), Budget("", 500, soft=True)), organization=(Budget("", 1000),))
    reservation = await reserve(fleet, caller)
    await charge(fleet, caller, reservation, 7)
    await fleet.process("a").return_own()
    assert await balances(fleet, "key_1", "proj_1/total", "org_1/total") == [Balance(7, 0)] * 3


async def test_a_soft_budget_is_charged_and_refuses_nothing(fleet: Machines) -> None:
    caller = key_of(project=(Budget("", COST, soft=True),))
    for number in range(3):
        reservation = await reserve(fleet, caller)
        assert (reservation.is_bound, reservation.holds[0][1]) == (False, 0)
        await charge(fleet, caller, reservation, COST, number)
    assert await balances(fleet, "proj_1/total") == [Balance(3 * COST, 0)]


async def test_a_key_below_accounts_without_budgets_reserves_nothing(fleet: Machines) -> None:
    assert await fleet.process("a").reserve(key_of(), COST) is None


async def test_another_attempt_takes_over_the_amounts_of_each_budget(fleet: Machines) -> None:
    caller = key_of(own=5 * COST, project=(Budget("", 5 * COST),))
    first, second = await reserve(fleet, caller), await reserve(fleet, caller)
    second.absorb(first)
    assert {amount for _, amount in second.holds} == {2 * COST}
    second.reduce(COST)
    assert {amount for _, amount in second.holds} == {COST}
    second.end(0)
    assert [reservation.micro_credits for reservation in [await reserve(fleet, caller, 5 * COST)]] == [5 * COST]
