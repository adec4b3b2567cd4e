"""Models without a price, as they are reported to operators."""

from collections.abc import Collection, Sequence

from umg_grpc.knowledge.price_calculation import Prices
from umg_grpc.operations import ModelOperation
from umg_grpc.routing.channel_model_prices import CHARGED_OPERATIONS, is_priced
from umg_grpc.routing.channel_order import Pins, allowed
from umg_grpc.routing.router import Router

MAX_SHOWN = 10
PRICE_REMEDY = "set `price` of the models, or `unpriced` to `free` or a default price"


def unpriced_models(router: Router) -> Sequence[str]:
    """Return the listed models with an operation without a price at any channel; ids of patterns are unknown here."""
    return tuple(model.id for model in router.models() if is_unpriced(router, model.id))


def is_unpriced(
    router: Router, model: str, pins: Pins = (), operations: Collection[ModelOperation] | None = None
) -> bool:
    """Return whether a model has an operation without a price at any channel. `pins`: channels that count;
    `operations`: operations that count, None for all.
    """
    targets = [each for each in router.targets(model) if allowed(pins, each.channel.name)]
    return bool(unpriced_operations([(each.operations, each.prices) for each in targets], operations))


def unpriced_operations(
    channels: Collection[tuple[Collection[ModelOperation], Prices]],
    operations: Collection[ModelOperation] | None = None,
) -> list[ModelOperation]:
    """Return the operations without a price at any channel. `channels`: operations and prices of each; `operations`:
    operations that count, None for all.
    """
    done = CHARGED_OPERATIONS.intersection(operation for each, _ in channels for operation in each)
    return sorted(
        operation
        for operation in (done if operations is None else done.intersection(operations))
        if not any(operation in each and is_priced(prices, operation) for each, prices in channels)
    )


def shortened(names: Sequence[str]) -> str:
    """Return names as a text of bounded length: `a, b and 3 more`."""
    shown = ", ".join(names[:MAX_SHOWN])
    return f"{shown} and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else shown
