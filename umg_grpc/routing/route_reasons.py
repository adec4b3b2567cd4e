"""Channels of a model in the order of the next call, with reasons for operators, also for channels without calls."""

from collections.abc import Iterator
from typing import NamedTuple

from umg_grpc.operations import ModelOperation
from umg_grpc.routing.channel_order import RoutePreferences
from umg_grpc.routing.channel_target import Target
from umg_grpc.routing.overridden_channels import DISABLED_SETTING, WEIGHT_SETTING, Overrides
from umg_grpc.routing.router import OPERATION_VERBS, Router


class RouteChannel(NamedTuple):
    """Channel of a model, with the reasons for its position, or for not being called."""

    target: Target
    reasons: tuple[str, ...]
    is_called: bool


def route_channels(
    router: Router, overrides: Overrides, model: str, operation: ModelOperation, preferences: RoutePreferences
) -> Iterator[RouteChannel]:
    """Yield the channels in the order of the next call, then the unused ones. Raise UmgError as
    `Router.channels` does.
    """
    used = set[str]()
    for target, reasons in router.explain(model, operation, preferences):
        weight = None if target.channel.weight_place else overrides.get((target.channel.name, WEIGHT_SETTING))
        yield RouteChannel(target, reasons if weight is None else (*reasons, weight.text), is_called=True)
        used.add(target.channel.name)
    for target in router.targets(model):
        if target.channel.name not in used:
            able = operation in target.operations
            why = "not one of the key's channels" if able else f"it cannot {OPERATION_VERBS[operation]}"
            if target.channel.disabled:
                found = overrides.get((target.channel.name, DISABLED_SETTING))
                why = DISABLED_SETTING if found is None else found.text
            yield RouteChannel(target, (why,), is_called=False)
