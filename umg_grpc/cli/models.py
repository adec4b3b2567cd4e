"""Command `umg models`: the models of a config, and the order of the channels for the next call of a model."""

import sys
from collections.abc import Mapping
from pathlib import Path

import typer

from umg_grpc.access.authentication import caller_of
from umg_grpc.access.caller import Caller
from umg_grpc.cli.keys import find
from umg_grpc.cli.tables import print_table
from umg_grpc.config import Config
from umg_grpc.errors import UmgError
from umg_grpc.routing import PROTOCOLS, VERBS, Operation, RoutePreferences, Router, Target
from umg_grpc.v1 import pb

States = Mapping[tuple[str, str], str]
"""State of each (channel, upstream model id) in a running gateway; empty if no gateway answers."""
HEALTHY = "well"


def list_models(config: Config, states: States) -> None:
    """Print all models, then all aliases."""
    router = Router(config)
    named = [(model.id, model) for model in router.models()]
    named += [(f"{alias} = {config.aliases[alias]}", found.model) for alias, found in router.aliases().items()]
    rows = []
    for name, model in named:
        targets = router.targets(model.id)
        order = ", ".join(f"{target.channel.name} ({target.model})" for target in targets)
        state = ", ".join(_state(states, target) for target in targets)
        rows.append((name, model.described.owned_by, model.family, order, state))
    print_table(("model", "owned by", "family", "channels in order", "state"), rows)


async def explain(config: Config, data: Path, model: str, face: str, key: str, states: States) -> None:
    """Print the channels in the order in which the next call of the model tries them, with reasons.

    `face`: format of the caller, or ""; `key`: id, name or prefix of the caller's key, or "". If the gateway would
    reject the call, print the error to standard error and exit with 1.
    """
    caller = caller_of(await find(config, data, key)) if key else None
    try:
        _explain(Router(config), model, face, caller, states)
    except UmgError as error:
        print(f"umg: {error.message}", file=sys.stderr)
        raise typer.Exit(1) from None


def _explain(router: Router, name: str, face: str, caller: Caller | None, states: States) -> None:
    found = router.resolve(name)
    model = found.model.id
    if caller is not None:
        caller.check_model(model, found.alias)

    def is_healthy(target: Target) -> bool:
        return states.get((target.channel.name, target.model), HEALTHY) == HEALTHY

    if name != model:
        print(f"{name} is served as {model}")
    pins = caller.channels if caller is not None else ()
    refusals, operations = [], [operation for operation in found.model.described.operations if operation in VERBS]
    if caller is not None and caller.model_operations is not None:
        operations = [operation for operation in operations if operation in caller.model_operations]
        if not operations:
            message = (
                f"this API key may use no operation of `{name}`; it may use {', '.join(sorted(caller.operations))}"
            )
            raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, model=name)
    for operation in operations:
        preferences = RoutePreferences(face if face in PROTOCOLS[operation] else "", pins, is_healthy=is_healthy)
        try:
            rows = _rows(router, model, operation, preferences, states)
        except UmgError as error:
            refusals.append(error)
        else:
            print(f"to {VERBS[operation]}:")
            print_table(("channel", "model there", "state", "why it has this place"), rows)
    if len(refusals) == len(operations):
        raise refusals[0]


def _rows(
    router: Router, model: str, operation: Operation, preferences: RoutePreferences, states: States
) -> list[tuple[str, str, str, str]]:
    """Return rows of the channels in their order, then of the unused ones. Raises UmgError if none is used."""
    explained = [(target, ", ".join(reasons)) for target, reasons in router.explain(model, operation, preferences)]
    used = {target.channel.name for target, _ in explained}
    for target in router.targets(model):
        if target.channel.name not in used:
            able = operation in target.operations
            why = "not one of the key's channels" if able else f"it cannot {VERBS[operation]}"
            explained.append((target, f"not asked: {why}"))
    return [(target.channel.name, target.model, _state(states, target), why) for target, why in explained]


def _state(states: States, target: Target) -> str:
    """Return the state of a channel. A channel that the gateway has not called yet is healthy."""
    return states.get((target.channel.name, target.model), HEALTHY if states else "-")
