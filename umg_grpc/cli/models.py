"""`umg models`: the models of a config, and which channel the next call for one is sent to, and why."""

import sys
from collections.abc import Mapping
from pathlib import Path

import typer

from umg_grpc.access.authenticate import caller_of
from umg_grpc.access.caller import Caller
from umg_grpc.cli.keys import find
from umg_grpc.cli.tables import print_table
from umg_grpc.config import Config
from umg_grpc.errors import UmgError
from umg_grpc.routing import PROTOCOLS, VERBS, Operation, Router, Target, Wish

States = Mapping[tuple[str, str], str]
"""How a running gateway finds each channel with each model of its upstream; empty where none answers."""
WELL = "well"


def list_models(config: Config, states: States) -> None:
    """Prints every model, then every alias."""
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
    """Prints the channels in the order in which the next call for the model asks them, and why. `face`: the caller's
    format; `key`: the id, name or prefix of its key, if it has one. What such a call is refused for is said on standard
    error and ends the command with 1.
    """
    caller = caller_of(await find(config, data, key)) if key else None
    try:
        _explain(Router(config), model, face, caller, states)
    except UmgError as error:
        print(f"umg: {error.message}", file=sys.stderr)
        raise typer.Exit(1) from None


def _explain(router: Router, named: str, face: str, caller: Caller | None, states: States) -> None:
    found = router.resolve(named)
    model = found.model.id
    if caller is not None:
        caller.check_model(model, found.alias)

    def is_well(target: Target) -> bool:
        return states.get((target.channel.name, target.model), WELL) == WELL

    if named != model:
        print(f"{named} is served as {model}")
    pins = caller.channels if caller is not None else ()
    refusals, operations = [], [operation for operation in found.model.described.operations if operation in VERBS]
    for operation in operations:
        wish = Wish(face if face in PROTOCOLS[operation] else "", pins, well=is_well)
        try:
            rows = _rows(router, model, operation, wish, states)
        except UmgError as error:
            refusals.append(error)
        else:
            print(f"to {VERBS[operation]}:")
            print_table(("channel", "model there", "state", "why it has this place"), rows)
    if len(refusals) == len(operations):
        raise refusals[0]


def _rows(
    router: Router, model: str, operation: Operation, wish: Wish, states: States
) -> list[tuple[str, str, str, str]]:
    """The channels in their order, then those that are not asked. Raises UmgError where none is."""
    explained = [(target, ", ".join(reasons)) for target, reasons in router.explain(model, operation, wish)]
    asked = {target.channel.name for target, _ in explained}
    for target in router.targets(model):
        if target.channel.name not in asked:
            able = operation in target.operations
            why = "not one of the key's channels" if able else f"it cannot {VERBS[operation]}"
            explained.append((target, f"not asked: {why}"))
    return [(target.channel.name, target.model, _state(states, target), why) for target, why in explained]


def _state(states: States, target: Target) -> str:
    """The state of a channel; a gateway says nothing of one that it has not called."""
    return states.get((target.channel.name, target.model), WELL if states else "-")
