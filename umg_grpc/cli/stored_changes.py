"""Changes of administrators in the database: overrides of channels and set prices, for commands on a config."""

from pathlib import Path
from typing import TYPE_CHECKING

from umg_grpc.cli.admin_client import CommandError
from umg_grpc.config import Config
from umg_grpc.routing.overridden_channels import NO_OVERRIDES, Overrides
from umg_grpc.routing.set_model_prices import NO_SET_PRICES, SetPrices

if TYPE_CHECKING:
    from umg_grpc.store import Store


async def stored_changes(config: Config, data: Path) -> tuple[Overrides, SetPrices]:
    """Return the overrides of channels and the set prices in the database; none without one."""
    # imported here: the database is slow to import, and the other commands on models do not use it
    from umg_grpc.cli.database_connection import opened_database

    try:
        async with opened_database(config.database, data) as store:
            return await read_changes(store)
    except CommandError:
        return NO_OVERRIDES, NO_SET_PRICES


async def read_changes(store: "Store") -> tuple[Overrides, SetPrices]:
    """Return the overrides of channels and the set prices in an open database."""
    from umg_grpc.service.channels.channel_override_table import ChannelOverrideTable
    from umg_grpc.service.channels.set_price_table import SetPriceTable

    return (await ChannelOverrideTable(store).read())[0], await SetPriceTable(store).read()
