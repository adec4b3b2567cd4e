"""Changes of one price, and of one override, by two processes on PostgreSQL at the same time."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from sqlalchemy.ext.asyncio import AsyncSession

from tests.support.databases import Postgres
from umg_grpc.access.audit_log import CURRENT_ACT, Act, AuditFilter, AuditLog
from umg_grpc.knowledge.price_texts import prices_text, read_price
from umg_grpc.service.channels.channel_override_table import ChannelOverrideTable
from umg_grpc.service.channels.set_price_table import SetPriceTable
from umg_grpc.store import Store, open_store

Change = Callable[[Store, int], Awaitable[object]]


@pytest_asyncio.fixture
async def stores(postgres: Postgres, tmp_path: Path) -> AsyncGenerator[list[Store], None]:
    """Two processes of one database."""
    url = await postgres.create_prepared(tmp_path.name)
    opened = [await open_store(url, tmp_path) for _ in range(2)]
    yield opened
    for store in opened:
        await store.aclose()


@pytest.fixture
def meeting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first two writes of rows begin when both have read that there is no row."""
    both, merge, count = asyncio.Barrier(2), AsyncSession.merge, iter(range(1000))

    async def meet(self: AsyncSession, row: object) -> object:
        if next(count) < 2:
            await both.wait()
        return await merge(self, row)

    monkeypatch.setattr(AsyncSession, "merge", meet)


def set_price(store: Store, number: int) -> Awaitable[object]:
    return SetPriceTable(store).change("own", "", [read_price("input", str(number))], "")


def set_weight(store: Store, number: int) -> Awaitable[object]:
    return ChannelOverrideTable(store).change("a", {"weight": number}, "")


async def change_at_once(stores: list[Store], change: Change, first: int) -> None:
    """Let two people change the same in two processes."""

    async def act(number: int) -> None:
        CURRENT_ACT.set(Act(actor_id=f"user_{number}", actor_name=f"person {number}"))
        await change(stores[number % 2], number)

    await asyncio.gather(act(first), act(first + 1))


async def states_of(store: Store, name: str) -> list[object]:
    """Return the states of a setting by the audit log: of each change, that before it is that after another one."""
    events = await AuditLog(store).page(AuditFilter(), None, 100)
    changes = [(json.loads(each.before_json)[name], json.loads(each.after_json)[name]) for each in events]
    following, states = dict(changes), list[object]([None])
    assert len(following) == len(changes), f"two changes of the same state: {changes}"
    while states[-1] in following:
        states.append(following.pop(states[-1]))
    assert not following, f"a change of a state that never was: {following}"
    return states


@pytest.mark.usefixtures("meeting")
async def test_two_first_prices_at_the_same_time_are_both_recorded_and_one_holds(stores: list[Store]) -> None:
    await change_at_once(stores, set_price, 1)
    await change_at_once(stores, set_price, 3)  # now there is a row
    states = await states_of(stores[0], "price")
    assert (len(states), set(states[1:3]), set(states[3:])) == (5, {"input 1", "input 2"}, {"input 3", "input 4"})
    [held] = (await SetPriceTable(stores[1]).read()).values()
    assert (prices_text(held.prices), held.actor_name) == (states[-1], f"person {str(states[-1])[-1]}")


@pytest.mark.usefixtures("meeting")
async def test_two_first_weights_at_the_same_time_are_both_recorded_and_one_holds(stores: list[Store]) -> None:
    await change_at_once(stores, set_weight, 1)
    await change_at_once(stores, set_weight, 3)
    states = await states_of(stores[0], "weight")
    assert (len(states), set(states[1:3]), set(states[3:])) == (5, {1, 2}, {3, 4})
    [held] = (await ChannelOverrideTable(stores[1]).read())[0].values()
    assert held.value == states[-1]


async def test_a_price_that_is_taken_back_twice_at_the_same_time_is_so_once(stores: list[Store]) -> None:
    await set_price(stores[0], 1)
    took = await asyncio.gather(*(SetPriceTable(store).change("own", "", [], "") for store in stores))
    assert (took, await SetPriceTable(stores[0]).read()) == ([None, None], {})
    assert len(await AuditLog(stores[0]).page(AuditFilter(), None, 100)) == 2
