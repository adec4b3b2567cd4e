"""Prices of a model at one channel with their source, and the operations that they are enough to charge."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from umg_grpc.config import Channel, Config
from umg_grpc.config.channel_section import OWN_PROTOCOLS
from umg_grpc.config.price_settings import FREE_PRICE
from umg_grpc.knowledge.price_calculation import FREE_PRICES, Prices, price_list
from umg_grpc.knowledge.shipped_prices import shipped_price_list, shipped_prices
from umg_grpc.knowledge.vendor_addresses import region_of, vendor_of
from umg_grpc.operations import OPERATIONS_BY_VALUE, ModelOperation
from umg_grpc.routing.set_model_prices import EVERY_CHANNEL
from umg_grpc.v1 import pb

CHARGED_OPERATIONS = frozenset(value for value, row in OPERATIONS_BY_VALUE.items() if row.units)


class SourcedPrices(NamedTuple):
    """Prices of a model at a channel with their source."""

    prices: Sequence[pb.Price]
    source: "pb.PriceSource.ValueType"
    place: str = ""
    """File and line of the config that state them, `umg.yaml:41`; "" for prices from elsewhere."""


def sourced_prices(config: Config, channel: Channel, model: str, upstream: str) -> SourcedPrices:
    """Return the prices of a model at a channel; without prices if it has none. `upstream`: the provider's id of the
    model. The first source with prices decides: the config file; the database; the provider's list; 0 for models inside
    the gateway; public prices; `unpriced` of the model, the channel or the config.
    """
    if (own := _own_prices(config, channel, model)) is not None:
        return own
    vendor = vendor_of(channel.base_url)
    if config.shipped_prices and (public := shipped_prices(upstream, vendor, config.public_prices)):
        return SourcedPrices(public, pb.PRICE_SOURCE_PUBLIC)
    info = config.models.get(model)
    of_model = (None, "") if info is None else (info.unpriced, info.unpriced_place)
    written = (of_model, (channel.unpriced, channel.unpriced_place), (config.unpriced, config.unpriced_place))
    prices, place = next((each for each in written if each[0] is not None), ((), ""))
    return SourcedPrices(prices or (), pb.PRICE_SOURCE_DEFAULT if prices else pb.PRICE_SOURCE_NONE, place)


def stated_prices(config: Config, channel: Channel, model: str, upstream: str) -> Sequence[pb.Price]:
    """Return the prices of a model at a channel; empty if it has none. Arguments: see `sourced_prices`."""
    return sourced_prices(config, channel, model, upstream).prices


def target_prices(config: Config, channel: Channel, model: str, upstream: str) -> Prices:
    """Return the prices of a model at a channel, with the rates of public prices. Arguments: see `sourced_prices`."""
    if config.shipped_prices and not has_own_prices(config, channel, model):
        vendor, region = vendor_of(channel.base_url), price_region_of(channel, upstream)
        public = shipped_price_list(upstream, vendor, region, config.public_prices)
        if public is not FREE_PRICES:
            return public
    return price_list(stated_prices(config, channel, model, upstream))


def price_region_of(channel: Channel, upstream: str) -> str:
    """Return the region whose public prices a provider's model has at a channel; "" if there is none."""
    return channel.price_region or region_of(channel.base_url, upstream)


def _own_prices(config: Config, channel: Channel, model: str) -> SourcedPrices | None:
    info = config.models.get(model)
    described = () if info is None else info.described.prices
    if described and info is not None and info.price_place:
        return SourcedPrices(described, pb.PRICE_SOURCE_FILE, info.price_place)
    found = config.set_prices.get((model, channel.name)) or config.set_prices.get((model, EVERY_CHANNEL))
    if found is not None:
        return SourcedPrices(found, pb.PRICE_SOURCE_DATABASE)
    if described:
        return SourcedPrices(described, pb.PRICE_SOURCE_PROVIDER)
    is_own = not set(OWN_PROTOCOLS).isdisjoint(channel.protocols)
    return SourcedPrices((FREE_PRICE,), pb.PRICE_SOURCE_GATEWAY) if is_own else None


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
