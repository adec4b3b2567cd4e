"""Command `umg models`: lists the models and their channels, and explains which channels the next call would try."""

import sys
import time
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import typer

from umg_grpc.access.caller_identity import Caller
from umg_grpc.access.limit_errors import model_unpriced
from umg_grpc.base.errors import UmgError
from umg_grpc.base.micro_credits import MICRO_CREDITS
from umg_grpc.base.time_units import age_text
from umg_grpc.cli.admin_client import CommandError
from umg_grpc.cli.admin_connection import opened
from umg_grpc.cli.breaker_metrics import STATE_NAMES, Pair, state_text
from umg_grpc.cli.channel_override_texts import change_text
from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.cli.model_restriction_report import print_restrictions
from umg_grpc.cli.text_tables import Column, Fit, Form, print_line, print_table
from umg_grpc.config import Config
from umg_grpc.knowledge.price_calculation import (
    AUDIO_SECOND,
    CHARACTER_UNIT,
    IMAGE_UNIT,
    INPUT_TOKEN,
    OUTPUT_TOKEN,
    PRICED_UNITS,
    REQUEST_UNIT,
    SEARCH_UNIT,
    VIDEO_SECOND,
    VIDEO_UNIT,
    Unit,
)
from umg_grpc.process.model_list_report import failed_lists
from umg_grpc.process.retired_model_report import retired_models
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
from umg_grpc.routing.overridden_channels import (
    DISABLED_SETTING,
    NO_OVERRIDES,
    WEIGHT_SETTING,
    Overrides,
    with_overrides,
)
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.pipeline.key_model_access import not_found
from umg_grpc.service.resilience.circuit_breaker_snapshots import CircuitState
from umg_grpc.service.resilience.learned_quirks import LIFETIME_SECONDS
from umg_grpc.service.servicers.channel_health_report import CIRCUIT_STATES, ChannelReport
from umg_grpc.service.stored_model_lists import list_states, stored_router, with_stored_lists
from umg_grpc.store.channel_failure_file import LastFailure, read_failures
from umg_grpc.store.provider_model_list_files import ModelListFiles
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import to_json

if TYPE_CHECKING:
    from umg_grpc.service.resilience.learned_quirk_sharing import LearnedQuirkTable

UNIT_TEXTS: Mapping[Unit, str] = MappingProxyType(
    {
        REQUEST_UNIT: "a call",
        SEARCH_UNIT: "a search",
        IMAGE_UNIT: "an image",
        VIDEO_SECOND: "a second",
        VIDEO_UNIT: "a video",
        CHARACTER_UNIT: "a character",
        AUDIO_SECOND: "a second of audio",
    }
)
"""Units whose prices are printed as those of one, as they are printed."""

States = Mapping[Pair, str]
"""State of each channel at a model in a running gateway; empty if no gateway answers."""
STATES_BY_VALUE = {value: state for state, value in CIRCUIT_STATES.items()}
OPERATOR_CALLER = Caller("", "operator", (), None, None)
HEALTHY_STATE = STATE_NAMES[CircuitState.CLOSED]
UNUSED_NOTE = "not asked"
MODEL_COLUMNS = (
    Column("model"),
    Column("owned by", 5),
    Column("family", 5),
    Column("channels in order", 3, Fit.LISTED),
    Column("price", 4, Fit.LISTED),
    Column("state", 2, Fit.LISTED),
)
ROUTE_COLUMNS = (Column("channel"), Column("upstream model", 3), Column("state", 2), Column("reasons", fit=Fit.FOLDED))
OPERATION_COLUMN = Column("operation")
Row: TypeAlias = tuple[str, str, str, str]
"""Channel, provider's model id, state, reasons."""


async def list_models(config: Config, states: States, data: Path, form: Form) -> None:
    """Print the models and aliases of a config, with their channels. `states`: circuit breaker states in a running
    gateway; `data`: has the last failures of its channels and the discovered models.
    """
    channels, files = Channels(stored_router(config, data)), ModelListFiles(data)
    report = ChannelReport(channels, list, lambda: _failures(data), lambda: list_states(config, files))
    found = await report.list()
    print_models(found, states, form)
    if form.is_text:
        for line in retired_models(config, datetime.now(UTC).date()):
            print_line(line)


async def list_remote(target: AdminTarget, form: Form) -> None:
    """Print a running gateway's models, with their channels, and the states in the process that answers."""
    async with opened(target) as admin:
        found = await admin.call(pb.ListChannelsRequest(), pb.ListChannelsResponse)
    seconds = {_pair(each): each.open_duration.ToTimedelta().total_seconds() for each in found.channels}
    states = {_pair(each): state_text(STATES_BY_VALUE.get(each.state), seconds[_pair(each)]) for each in found.channels}
    print_models(found, states, form)


def print_models(found: pb.ListChannelsResponse, states: States, form: Form) -> None:
    """Print models with their channels in a form, and below a text the last failures of the channels."""
    failures = {_pair(each): each.last_failure for each in found.channels if each.HasField("last_failure")}
    effective = [each for each in found.overrides if not each.ineffective_reason]
    disabled = {each.channel for each in effective if each.setting == DISABLED_SETTING}
    states = {**states, **{pair: DISABLED_SETTING for pair in map(_pair, found.channels) if pair[0] in disabled}}
    rows = []
    for model in found.models:
        name = f"{model.model} = {model.alias_of}" if model.alias_of else model.model
        order = ", ".join(f"{channel} ({upstream})" for channel, upstream in map(_pair, model.channels))
        state = ", ".join(_state_and_kind(states, failures, _pair(each)) for each in model.channels)
        rows.append((name, model.owned_by, model.family, order, _price(model), state))
    records = ({**to_json(model), "state": row[-1]} for model, row in zip(found.models, rows, strict=True))
    print_table(MODEL_COLUMNS, rows, form, records)
    if not form.is_text:
        return
    for override in found.overrides:
        print_line(f"{override.channel}: {change_text(override)}")
    if failures:
        print("last failures of the channels, of the last 24 hours:")
    newest_first = sorted(failures.items(), key=lambda item: item[1].time.ToNanoseconds(), reverse=True)
    for (channel, model_there), failure in newest_first:
        print_line(f"  {_describe(channel, model_there, failure)}")
    if lines := failed_lists(found.model_lists):
        print("model lists of providers that could not be read (`discover: false` of a channel reads none):")
    for line in lines:
        print(f"  {line}")


def _price(model: pb.ModelChannels) -> str:
    """Return the prices of a model in credits as text, `none` without prices, `free` if all are 0."""
    prices = {price.unit: price.micro_credits_per_million for price in model.prices}
    if prices and not any(price.micro_credits_per_million for price in model.prices):
        return "free"
    texts = [_price_of_one(model, unit, name) for unit, name in UNIT_TEXTS.items() if unit in prices]
    if not prices.keys() <= UNIT_TEXTS.keys():
        texts.insert(0, " / ".join(_credits(prices.get(unit, 0)) for unit in (INPUT_TOKEN, OUTPUT_TOKEN)))
    return ", ".join(texts) or "none"


def _price_of_one(model: pb.ModelChannels, unit: Unit, name: str) -> str:
    prices = sorted({price.micro_credits_per_million for price in model.prices if price.unit == unit})
    ends = dict.fromkeys((prices[0], prices[-1]))
    return f"{'-'.join(_credits(price, PRICED_UNITS) for price in ends)} {name}"


def _credits(micro_credits: int, units: int = 1) -> str:
    return f"{Decimal(micro_credits) / units / MICRO_CREDITS:f}"


def _pair(each: pb.ChannelHealth | pb.ChannelModel) -> Pair:
    return each.channel, each.upstream_model


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
        if overrides := await _overrides(config, data):
            router = Router(with_overrides(listed, overrides), time.time)
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


async def _overrides(config: Config, data: Path) -> Overrides:
    """Return the overrides of channels in the database; none without one."""
    # imported here for the reason in `_find_caller`
    from umg_grpc.cli.database_connection import opened_database
    from umg_grpc.service.channels.channel_override_table import ChannelOverrideTable

    try:
        async with opened_database(config.database, data) as store:
            return (await ChannelOverrideTable(store).read())[0]
    except CommandError:
        return NO_OVERRIDES


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
    explained = list[tuple[Target, str]]()
    for target, reasons in router.explain(model, operation, preferences):
        weight = None if target.channel.weight_place else overrides.get((target.channel.name, WEIGHT_SETTING))
        explained.append((target, ", ".join((*reasons, weight.text) if weight is not None else reasons)))
    used = {target.channel.name for target, _ in explained}
    for target in router.targets(model):
        if target.channel.name not in used:
            able = operation in target.operations
            why = "not one of the key's channels" if able else f"it cannot {OPERATION_VERBS[operation]}"
            if target.channel.disabled:
                why = overrides[target.channel.name, DISABLED_SETTING].text
            explained.append((target, f"{UNUSED_NOTE}: {why}"))
    return [
        (target.channel.name, target.model, _state(states, (target.channel.name, target.model)), why)
        for target, why in explained
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


def _state(states: States, pair: Pair) -> str:
    return states.get(pair, HEALTHY_STATE if states else "-")


def _state_and_kind(states: States, failures: Mapping[Pair, pb.ChannelFailure], pair: Pair) -> str:
    state = _state(states, pair)
    failure = failures.get(pair) if states and state != HEALTHY_STATE else None
    return state if failure is None else f"{state} ({failure.kind})"


def _failures(data: Path) -> list[LastFailure]:
    try:
        return read_failures(data)
    except OSError as error:
        print(f"umg: the last failures of the channels cannot be read: {error}", file=sys.stderr)
        return []


def _describe(channel: str, model: str, failure: pb.ChannelFailure) -> str:
    age = age_text(time.time() - failure.time.ToNanoseconds() / 1e9)
    text = f"{channel}: {failure.kind}, {age} ago: {_details(model, failure)}"
    return "".join(character if character.isprintable() else " " for character in text)


def _details(model: str, failure: pb.ChannelFailure) -> str:
    known = {
        "status": str(failure.upstream_status_code or ""),
        "code": failure.code,
        "request id": failure.upstream_request_id,
        "model": model,
        "address": failure.host + failure.path,
        "content type": failure.content_type,
        "key": f"...{failure.key_tail}" if failure.key_tail else "",
        "message": failure.message,
    }
    return ", ".join(f"{name} {value}" for name, value in known.items() if value)
