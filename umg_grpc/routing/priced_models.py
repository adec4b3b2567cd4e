"""Models of a gateway with the prices at their channels, the sources of these, and routes, as messages of `umg.v1`."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, NamedTuple

import msgspec
from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Config
from umg_grpc.knowledge.price_texts import rate_text
from umg_grpc.knowledge.public_price_rows import rates_of
from umg_grpc.knowledge.shipped_prices import price_row, price_source
from umg_grpc.knowledge.vendor_addresses import vendor_of
from umg_grpc.operations import ModelOperation
from umg_grpc.routing.channel_model_prices import SourcedPrices, price_region_of, sourced_prices, target_prices
from umg_grpc.routing.channel_order import RoutePreferences
from umg_grpc.routing.channel_target import Target, is_own
from umg_grpc.routing.overridden_channels import Overrides
from umg_grpc.routing.route_reasons import route_channels
from umg_grpc.routing.router import OPERATION_VERBS, Router
from umg_grpc.routing.set_model_prices import SetPrice, SetPrices, ineffective_reason, price_place, with_set_prices
from umg_grpc.routing.unpriced_model_report import unpriced_operations
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT

MAX_UNLISTED = 1000
"""Most called models that are in no list of models."""
MAX_KEYS = 3


class PriceView(IntEnum):
    """Part of a model that a caller sees, in ascending order."""

    OF_CALLERS = 0
    """Properties that every caller sees in the list of models."""
    WITH_SOURCES = 1
    WITH_ROUTES = 2


class ModelPosition(msgspec.Struct, array_like=True, order=True):
    """Position in the list, encoded in a page token."""

    is_priced: bool
    fewer_calls: Annotated[int, msgspec.Meta(ge=-MAX_COUNT, le=0)]
    model: str


class ChannelPrice(NamedTuple):
    """Prices of a model at a channel, and the operations for which it has none."""

    target: Target
    found: SourcedPrices
    unpriced: Sequence[ModelOperation]


@dataclass(frozen=True)
class PricedRow:
    """Model with its prices."""

    model: str
    aliases: Sequence[str]
    channels: Sequence[ChannelPrice]
    unpriced: Sequence[ModelOperation]
    """Operations without a price at any channel."""
    calls: int
    is_listed: bool

    @property
    def position(self) -> ModelPosition:
        """Position in the list: models without a price first, then the most called ones."""
        return ModelPosition(not self.unpriced, -self.calls, self.model)

    def fits(self, text: str, view: PriceView) -> bool:
        """Return whether a text, in lower case, is a part of a name that the caller sees."""
        names = [self.model, *self.aliases]
        if view >= PriceView.WITH_SOURCES:
            names += (f"{target.channel.name} {target.model}" for target, _, _ in self.channels)
        return any(text in name.lower() for name in names)


class PricedModels:
    """Models of a router with set prices."""

    def __init__(
        self, config: Config, router: Router, overrides: Overrides, prices: SetPrices, calls: Mapping[str, int]
    ) -> None:
        """Create the list. `config`: without overrides and set prices; `calls`: model -> number of its calls."""
        self._config = with_set_prices(config, prices)
        self._router, self._overrides, self._prices, self._calls = router, overrides, prices, calls
        self._aliases = defaultdict[str, list[str]](list)
        for alias, found in router.aliases().items():
            self._aliases[found.model.id].append(alias)
        self._listed = dict.fromkeys(model.id for model in router.models())

    def names(self) -> list[str]:
        """Return the ids of the listed models, then of the called ones that are in no list."""
        unlisted = [name for name in self._calls if name and name not in self._listed]
        return [*self._listed, *sorted(unlisted, key=lambda name: -self._calls[name])[:MAX_UNLISTED]]

    def targets(self, model: str) -> Sequence[Target]:
        """Return the channels of a model; none for an unknown one. The router is not thread-safe."""
        with suppress(UmgError):
            return self._router.targets(model)
        return ()

    def rows(self, models: Iterable[tuple[str, Sequence[Target]]], *, unpriced_only: bool = False) -> list[PricedRow]:
        """Return the models that a channel serves, with their prices. `models`: ids and their channels;
        `unpriced_only`: only those with an operation without a price.
        """
        found = (self._row(model, targets, unpriced_only=unpriced_only) for model, targets in models if targets)
        return [row for row in found if row is not None]

    def _row(self, model: str, targets: Sequence[Target], *, unpriced_only: bool) -> PricedRow | None:
        priced = [(each, target_prices(self._config, each.channel, model, each.model)) for each in targets]
        unpriced = unpriced_operations([(target.operations, prices) for target, prices in priced])
        if unpriced_only and not unpriced:
            return None
        channels = [
            ChannelPrice(
                target,
                sourced_prices(self._config, target.channel, model, target.model),
                unpriced_operations([(target.operations, prices)]),
            )
            for target, prices in priced
        ]
        return PricedRow(
            model,
            self._aliases.get(model, ()),
            channels,
            unpriced,
            self._calls.get(model, 0),
            is_listed=model in self._listed,
        )

    def message(self, row: PricedRow, key_ids: Sequence[str], view: PriceView, *, is_whole: bool) -> pb.PricedModel:
        """Return a model as a message. `key_ids`: keys that called it; `is_whole`: with the prices under conditions."""
        message = pb.PricedModel(
            model=row.model,
            aliases=row.aliases,
            operations=sorted({operation for target, _, _ in row.channels for operation in target.operations}),
            unpriced=bool(row.unpriced),
            prices=_listed_prices(row),
            calls=row.calls,
            key_count=len(key_ids) if row.unpriced else None,
            key_ids=key_ids[:MAX_KEYS],
        )
        if view >= PriceView.WITH_SOURCES:
            message.channels.extend(self._channel(each, is_whole=is_whole) for each in row.channels)
            message.price_place = price_place(self._config, row.model)
            message.overrides.extend(
                self._override(each, row) for each in self._prices.values() if each.model == row.model
            )
            message.is_unlisted = not row.is_listed
        return message

    def routes(self, row: PricedRow, unhealthy: Collection[tuple[str, str]]) -> list[pb.ModelRoute]:
        """Return the channels in the order of a call. `unhealthy`: channels and upstream ids whose breaker is open."""
        done = {operation for target, _, _ in row.channels for operation in target.operations}
        return [self._route(row.model, each, unhealthy) for each in sorted(done.intersection(OPERATION_VERBS))]

    def overrides_without_model(self) -> list[pb.ModelPriceOverride]:
        """Return the set prices of models that no channel serves."""
        return [self._override(each, None) for each in self._prices.values() if not self.targets(each.model)]

    def _override(self, price: SetPrice, row: PricedRow | None) -> pb.ModelPriceOverride:
        channels = [] if row is None else [target.channel.name for target, _, _ in row.channels]
        time = Timestamp()
        time.FromMicroseconds(price.update_micros)
        return pb.ModelPriceOverride(
            model=price.model,
            channel=price.channel,
            prices=price.prices,
            note=price.note,
            actor_id=price.actor_id,
            actor_name=price.actor_name,
            update_time=time,
            ineffective_reason=ineffective_reason(price, self._config, channels),
        )

    def _channel(self, priced: ChannelPrice, *, is_whole: bool) -> pb.ModelChannelPrice:
        target, found, unpriced = priced
        message = pb.ModelChannelPrice(
            channel=target.channel.name,
            upstream_model=target.model,
            prices=found.prices,
            source=found.source,
            place=found.place,
            unpriced_operations=unpriced,
        )
        vendor, public = vendor_of(target.channel.base_url), self._config.public_prices
        if found.source == pb.PRICE_SOURCE_PUBLIC and (row := price_row(target.model, vendor, public)):
            message.origin, message.as_of = price_source(row)
            if is_whole:
                region = price_region_of(target.channel, target.model)
                message.conditional_prices.extend(rate_text(rate, region) for rate in rates_of(row, region))
        return message

    def _route(self, model: str, operation: ModelOperation, unhealthy: Collection[tuple[str, str]]) -> pb.ModelRoute:
        preferences = RoutePreferences(is_healthy=lambda target: (target.channel.name, target.model) not in unhealthy)
        try:
            channels = [*route_channels(self._router, self._overrides, model, operation, preferences)]
        except UmgError as error:
            return pb.ModelRoute(operation=operation, problem=error.message)
        return pb.ModelRoute(
            operation=operation,
            channels=[
                pb.ModelRouteChannel(
                    channel=target.channel.name, upstream_model=target.model, reasons=reasons, is_called=is_called
                )
                for target, reasons, is_called in channels
            ],
        )


def _listed_prices(row: PricedRow) -> Sequence[pb.Price]:
    """Return the prices that the list of models states, as `caller_visible_models.py` chooses them."""
    priced = [(target, found.prices) for target, found, _ in row.channels if found.prices]
    provided = [prices for target, prices in priced if not is_own(target.channel)]
    return next(iter([*provided, *(prices for _, prices in priced)]), ())
