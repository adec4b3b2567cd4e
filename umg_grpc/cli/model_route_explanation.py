"""Command `umg models --explain`: prints the channels that the next call of a model would try, and the reasons."""

import sys
import time
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import typer

from umg_grpc.access.caller_identity import Caller
from umg_grpc.access.limit_errors import model_unpriced
from umg_grpc.base.errors import UmgError
from umg_grpc.cli.admin_client import CommandError
from umg_grpc.cli.breaker_metrics import HEALTHY_STATE, States, state_of
from umg_grpc.cli.model_restriction_report import print_restrictions
from umg_grpc.cli.stored_changes import stored_changes
from umg_grpc.cli.text_tables import Column, Fit, Form, print_line, print_table
from umg_grpc.config import Config
from umg_grpc.routing import (
    OPERATION_PROTOCOLS,
    OPERATION_VERBS,
    ModelOperation,
    Resolved,
    RoutePreferences,
    Router,
    Target,
    is_priced,
)
from umg_grpc.routing.overridden_channels import Overrides, with_changes
from umg_grpc.routing.route_reasons import route_channels
from umg_grpc.service.pipeline.key_model_access import not_found
from umg_grpc.service.resilience.learned_quirks import LIFETIME_SECONDS
from umg_grpc.service.stored_model_lists import stored_router, with_stored_lists
from umg_grpc.v1 import pb

if TYPE_CHECKING:
    from umg_grpc.service.resilience.learned_quirk_sharing import LearnedQuirkTable

OPERATOR_CALLER = Caller("", "operator", (), None, None)
UNUSED_NOTE = "not asked"
ROUTE_COLUMNS = (Column("channel"), Column("upstream model", 3), Column("state", 2), Column("reasons", fit=Fit.FOLDED))
OPERATION_COLUMN = Column("operation")
Row: TypeAlias = tuple[str, str, str, str]
"""Channel, provider's model id, state, reasons."""


async def explain(config: Config, data: Path, model: str, face: str, key: str, states: States, form: Form) -> None:
    """Print the channels in the order in which the next call of a model would try them, with the reasons. Also print
    the restrictions of the model at each channel, with their sources. `face`: wire format of the call, "" for any;
    `key`: id, name or prefix of the caller's key, "" if there is none. If the gateway would reject the call, the error
    is printed to standard error, and the exit code is 1.
    """
    try:
        caller = await _find_caller(config, data, key) if key else None
        listed = with_stored_lists(config, data)
        router = Router(listed, time.time)
        _resolve(router, model, caller)  # before the database is read, for a mistyped name
        overrides, prices = await stored_changes(config, data)
        if overrides or prices:
            router = Router(with_changes(listed, overrides, prices), time.time)
        _explain(router, overrides, model, face, caller, states, form)
        if not form.is_text:
            return
        served = router.targets(_resolve(router, model, caller).model.id)
        for target in served:
            print_restrictions(target, config.public_prices, form)
        await _print_learned(config, data, {target.model for target in served})
    except (UmgError, CommandError) as error:
        print(f"umg: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


async def forget(config: Config, data: Path, model: str) -> None:
    """Delete and print the restrictions that a gateway has learned of a model. `model`: its id, or the provider's."""
    router = stored_router(config, data)
    ids = {model}
    with suppress(UmgError):
        ids |= {target.model for target in router.targets(router.resolve(model).model.id)}
    async with _learned(config, data) as table:
        removed = [each for name in sorted(ids) for each in await table.forget(name)]
    for each in removed:
        print_line(f"forgotten: {each.model} at {each.channel} ({each.protocol}), {each.member}: {each.line()}")
    if not removed:
        print_line(f"nothing was learned from refusals of {model}")


@asynccontextmanager
async def _learned(config: Config, data: Path) -> "AsyncGenerator[LearnedQuirkTable, None]":
    """Yield the table of restrictions that the gateway has learned. Raise CommandError if there is no database."""
    # imported here for the reason in `_find_caller`
    from umg_grpc.cli.database_connection import opened_database
    from umg_grpc.service.resilience.learned_quirk_sharing import LearnedQuirkTable
    from umg_grpc.service.resilience.learned_quirks import LearnedQuirks

    async with opened_database(config.database, data) as store:
        yield LearnedQuirkTable(store, LearnedQuirks())


async def _print_learned(config: Config, data: Path, models: Collection[str]) -> None:
    try:
        async with _learned(config, data) as table:
            found = [each for each in await table.read() if each.model in models]
    except CommandError:
        return
    for each in found:
        hours = (each.learn_time + LIFETIME_SECONDS - time.time()) / 3600
        print_line(
            f"learned from a refusal: {each.model} at {each.channel} ({each.protocol}), {each.member}: {each.line()}; "
            f"for {hours:.0f} h, or until `umg models --forget {each.model}`"
        )


async def _find_caller(config: Config, data: Path, reference: str) -> Caller:
    """Return the caller whose key has this id, name or prefix. Raise UmgError or CommandError."""
    # imported here: the database is slow to import, and the other commands on models do not use it
    from umg_grpc.access.api_keys import ApiKeys
    from umg_grpc.access.cached_api_keys import caller_of
    from umg_grpc.cli.database_connection import opened_database

    async with opened_database(config.database, data) as store:
        return caller_of(await ApiKeys(store).get(reference))


def _explain(
    router: Router, overrides: Overrides, name: str, face: str, caller: Caller | None, states: States, form: Form
) -> None:
    found = _resolve(router, name, caller)
    model = found.model.id
    if caller is not None:
        caller.check_model(model, found.alias)

    def is_healthy(target: Target) -> bool:
        return states.get((target.channel.name, target.model), HEALTHY_STATE) == HEALTHY_STATE

    if name != model and form.is_text:
        print_line(f"{name} is served as {model}")
    pins, tables = caller.channel_rules if caller is not None else (), dict[str, list[Row]]()
    refusals, operations = (
        [],
        [operation for operation in found.model.described.operations if operation in OPERATION_VERBS],
    )
    if caller is not None and caller.model_operations is not None:
        operations = [operation for operation in operations if operation in caller.model_operations]
        if not operations:
            allowed = ", ".join(sorted(caller.permitted_operations))
            message = f"this API key may use no operation of `{name}`; it may use {allowed}"
            raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, model=name)
    for operation in operations:
        preferences = RoutePreferences(
            face if face in OPERATION_PROTOCOLS[operation] else "", pins, is_healthy=is_healthy
        )
        try:
            rows = _rows(router, overrides, model, operation, preferences, states)
            if caller is not None and caller.has_hard_budget:
                rows = _affordable(rows, router, found, operation)
        except UmgError as error:
            refusals.append(error)
        else:
            tables[OPERATION_VERBS[operation]] = rows
    if len(refusals) == len(operations):
        raise refusals[0]
    print_routes(tables, form)


def print_routes(tables: Mapping[str, Sequence[Row]], form: Form) -> None:
    """Print the channels of each operation in a form; in a text each operation has a table."""
    if not form.is_text:
        print_table((OPERATION_COLUMN, *ROUTE_COLUMNS), [(verb, *row) for verb in tables for row in tables[verb]], form)
        return
    for verb, rows in tables.items():
        print(f"to {verb}:")
        print_table(ROUTE_COLUMNS, rows, form)


def _resolve(router: Router, name: str, caller: Caller | None) -> Resolved:
    """Return the model that has the name as its id, as an alias or as a provider's id."""
    try:
        return router.resolve(name)
    except UmgError:
        served = (model.id for model in router.models() if any(each.model == name for each in router.targets(model.id)))
        if (model := next(served, None)) is not None:
            return router.resolve(model)
        raise not_found(caller or OPERATOR_CALLER, name, router) from None


def _rows(
    router: Router,
    overrides: Overrides,
    model: str,
    operation: ModelOperation,
    preferences: RoutePreferences,
    states: States,
) -> list[Row]:
    """Return rows (channel, provider's model id, state, reasons), in the order of use, then unused channels."""
    return [
        (
            target.channel.name,
            target.model,
            state_of(states, (target.channel.name, target.model)),
            ", ".join(reasons) if is_called else f"{UNUSED_NOTE}: {', '.join(reasons)}",
        )
        for target, reasons, is_called in route_channels(router, overrides, model, operation, preferences)
    ]


def _affordable(rows: list[Row], router: Router, found: Resolved, operation: ModelOperation) -> list[Row]:
    """Return the rows for a key with a budget: only channels that have a price of the model are used."""
    model = found.model.id
    priced = {target.channel.name for target in router.targets(model) if is_priced(target.prices, operation)}
    used = [row for row in rows if not row[-1].startswith(UNUSED_NOTE)]
    if not any(row[0] in priced for row in used):
        raise model_unpriced(found.alias or model)
    first = [row for row in used if row[0] in priced]
    skipped = [
        (*row[:3], f"{UNUSED_NOTE}: it has no price, and the key has a budget") for row in used if row not in first
    ]
    return [*first, *skipped, *(row for row in rows if row not in used)]
