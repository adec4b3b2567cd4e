"""Prices of a model at one channel, and the operations that they are enough to charge."""

from collections.abc import Iterable, Sequence

from umg_grpc.config import Channel, Config
from umg_grpc.config.channel_section import OWN_PROTOCOLS
from umg_grpc.config.price_settings import FREE_PRICE
from umg_grpc.knowledge.price_calculation import FREE_PRICES, Prices, price_list
from umg_grpc.knowledge.shipped_prices import shipped_price_list, shipped_prices
from umg_grpc.knowledge.vendor_addresses import region_of, vendor_of
from umg_grpc.operations import OPERATIONS_BY_VALUE, ModelOperation
from umg_grpc.v1 import pb

CHARGED_OPERATIONS = frozenset(value for value, row in OPERATIONS_BY_VALUE.items() if row.units)


def stated_prices(config: Config, channel: Channel, model: str, upstream: str) -> Sequence[pb.Price]:
    """Return the prices of a model at a channel; empty if it has none. `upstream`: the provider's id of the model. The
    first source with prices decides: the config or the provider's list; 0 for models inside the gateway; public prices;
    `unpriced` of the model, the channel or the config.
    """
    info = config.models.get(model)
    if (own_prices := _own_prices(config, channel, model)) is not None:
        return own_prices
    vendor = vendor_of(channel.base_url)
    if config.shipped_prices and (public := shipped_prices(upstream, vendor, config.public_prices)):
        return public
    of_model = info.unpriced if info is not None else None
    written = (of_model, channel.unpriced, config.unpriced)
    return next((prices for prices in written if prices is not None), ())


def target_prices(config: Config, channel: Channel, model: str, upstream: str) -> Prices:
    """Return the prices of a model at a channel, with the rates of public prices. Arguments: see `stated_prices`."""
    if config.shipped_prices and not has_own_prices(config, channel, model):
        vendor, region = vendor_of(channel.base_url), price_region_of(channel, upstream)
        public = shipped_price_list(upstream, vendor, region, config.public_prices)
        if public is not FREE_PRICES:
            return public
    return price_list(stated_prices(config, channel, model, upstream))


def price_region_of(channel: Channel, upstream: str) -> str:
    """Return the region whose public prices a provider's model has at a channel; "" if there is none."""
    return channel.price_region or region_of(channel.base_url, upstream)


def _own_prices(config: Config, channel: Channel, model: str) -> Sequence[pb.Price] | None:
    info = config.models.get(model)
    if info is not None and info.described.prices:
        return info.described.prices
    return None if set(OWN_PROTOCOLS).isdisjoint(channel.protocols) else (FREE_PRICE,)


def has_own_prices(config: Config, channel: Channel, model: str) -> bool:
    """Return whether a model has prices that take precedence over public prices."""
    return _own_prices(config, channel, model) is not None


def is_priced(prices: Prices, operation: ModelOperation) -> bool:
    """Return whether these prices include one for the operation; a stated price of 0 counts."""
    units = OPERATIONS_BY_VALUE[operation].units
    return not units or not units.isdisjoint(prices.micro_credits)


def has_costs(prices: Prices) -> bool:
    """Return whether one of the prices is not 0."""
    return any(prices.micro_credits.values())


def distinct(prices: Iterable[Prices]) -> tuple[Prices, ...]:
    """Return the price lists without repetitions, in their order."""
    found = list[Prices]()
    for each in prices:
        if each not in found:
            found.append(each)
    return tuple(found)
