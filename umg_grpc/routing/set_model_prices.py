"""Prices of models that administrators set while the gateway runs. A price that the config file states holds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Config
from umg_grpc.knowledge.price_calculation import MEDIA_UNITS, TOKEN_UNITS, Variant, variant_of
from umg_grpc.knowledge.price_texts import MAX_MICRO_CREDITS, MAX_MICRO_CREDITS_OF_TOKENS
from umg_grpc.v1 import pb

MAX_WORD = 64
"""Most characters of a size or a quality."""
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
    """Return the config with the prices. Prices in its file take precedence."""
    return replace(config, set_prices={place: each.prices for place, each in found.items()})


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


def checked_prices(prices: Sequence[pb.Price]) -> tuple[pb.Price, ...]:
    """Return prices in a fixed order, with words in lower case. Raise UmgError(INVALID_FIELD) naming the field."""
    found = dict[tuple[int, str, str], pb.Price]()
    for number, price in enumerate(prices):
        field = f"prices[{number}]"
        if price.unit not in pb.BillableUnit.values() or not price.unit:
            raise _invalid(f"{field}.unit", "expected a unit, e.g. `input_token`")
        for name, word in (("size", price.size), ("quality", price.quality)):
            if word and price.unit not in MEDIA_UNITS:
                raise _invalid(f"{field}.{name}", "leave it out: only images, videos and seconds of videos have one")
            if len(word) > MAX_WORD or not word.isprintable():
                raise _invalid(f"{field}.{name}", f"expected at most {MAX_WORD} printable characters")
        most = MAX_MICRO_CREDITS_OF_TOKENS if price.unit in TOKEN_UNITS else MAX_MICRO_CREDITS
        if not 0 <= price.micro_credits_per_million <= most:
            raise _invalid(f"{field}.micro_credits_per_million", f"expected a number from 0 to {most}")
        item = variant_of(price.unit, price.size, price.quality)
        size, quality = (item.size, item.quality) if isinstance(item, Variant) else ("", "")
        if (key := (price.unit, size, quality)) in found:
            raise _invalid(field, "expected one price for a unit, size and quality; these have another before")
        found[key] = pb.Price(
            unit=price.unit, size=size, quality=quality, micro_credits_per_million=price.micro_credits_per_million
        )
    return tuple(found[key] for key in sorted(found))


def _invalid(field: str, problem: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, f"`{field}`: {problem}", field=field)
