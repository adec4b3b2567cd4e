"""Prices of models that administrators set while the gateway runs. A price that the config file states holds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from umg_grpc.config import Config
from umg_grpc.v1 import pb

EVERY_CHANNEL = ""
"""Channel of a price that holds at all channels without a price of their own."""


@dataclass(frozen=True)
class SetPrice:
    """Prices of a model at a channel, or at all, that an administrator has set."""

    model: str
    """Public id."""
    channel: str
    prices: tuple[pb.Price, ...]
    note: str
    """Reason that the administrator gave; "" for none."""
    actor_id: str
    actor_name: str
    update_micros: int
    """Time of the change in microseconds since 1970."""


SetPrices: TypeAlias = Mapping[tuple[str, str], SetPrice]
"""Price by model and channel."""
NO_SET_PRICES: SetPrices = {}


def prices_by_place(prices: Iterable[SetPrice]) -> SetPrices:
    """Return the prices by model and channel."""
    return {(each.model, each.channel): each for each in prices}


def with_set_prices(config: Config, found: SetPrices) -> Config:
    """Return the config with the prices that have an effect in it."""
    effective = {place: each.prices for place, each in found.items() if not price_place(config, each.model)}
    return replace(config, set_prices=MappingProxyType(effective)) if effective else config


def price_place(config: Config, model: str) -> str:
    """Return file and line of the config that state the price of a model; "" if none does."""
    info = config.models.get(model)
    return "" if info is None else info.price_place


def ineffective_reason(price: SetPrice, config: Config, channels: Sequence[str]) -> str:
    """Return why a price has no effect; "" for one that has. `channels`: names of the channels of the model."""
    if place := price_place(config, price.model):
        return f"{place} states the price"
    if not channels:
        return "no channel serves the model"
    if price.channel != EVERY_CHANNEL and price.channel not in channels:
        return f"the channel {price.channel} does not serve the model"
    return ""
