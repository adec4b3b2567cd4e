import asyncio

import pytest

from tests.support.databases import Database
from umg_grpc.service.channels.channel_override_table import ChannelOverrideTable
from umg_grpc.service.channels.current_overrides import CurrentOverrides
from umg_grpc.service.channels.set_price_table import SetPriceTable
from umg_grpc.store import open_store
from umg_grpc.v1 import pb


async def test_a_change_is_applied_although_the_load_that_read_it_was_cancelled(prepared_database: Database) -> None:
    applied, entered = list[int](), asyncio.Event()

    async def change() -> None:
        if not entered.is_set():
            entered.set()
            await asyncio.Event().wait()  # until the caller leaves
        applied.append(current.version)

    store = await open_store(prepared_database.url, prepared_database.data_dir)
    try:
        prices = SetPriceTable(store)
        current = CurrentOverrides(ChannelOverrideTable(store), prices, change, lambda _: None)
        await prices.change("own", "", [pb.Price(unit=pb.BILLABLE_UNIT_IMAGE)], "")
        first = asyncio.create_task(current.load())
        await entered.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first

        await current.load()
        await current.load()
        assert applied == [1]
    finally:
        await store.aclose()
