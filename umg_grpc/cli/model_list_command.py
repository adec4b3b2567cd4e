"""Command `umg models`: lists the models and their channels."""

import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

from umg_grpc.base.micro_credits import MICRO_CREDITS
from umg_grpc.base.time_units import age_text
from umg_grpc.cli.admin_connection import opened
from umg_grpc.cli.breaker_metrics import HEALTHY_STATE, Pair, States, state_of, state_text
from umg_grpc.cli.channel_override_texts import change_text
from umg_grpc.cli.common_flags import AdminTarget
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
from umg_grpc.routing.overridden_channels import (
    DISABLED_SETTING,
)
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.servicers.channel_health_report import CIRCUIT_STATES, ChannelReport
from umg_grpc.service.stored_model_lists import list_states, stored_router
from umg_grpc.store.channel_failure_file import LastFailure, read_failures
from umg_grpc.store.provider_model_list_files import ModelListFiles
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import to_json

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

STATES_BY_VALUE = {value: state for state, value in CIRCUIT_STATES.items()}
MODEL_COLUMNS = (
    Column("model"),
    Column("owned by", 5),
    Column("family", 5),
    Column("channels in order", 3, Fit.LISTED),
    Column("price", 4, Fit.LISTED),
    Column("state", 2, Fit.LISTED),
)


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


def _state_and_kind(states: States, failures: Mapping[Pair, pb.ChannelFailure], pair: Pair) -> str:
    state = state_of(states, pair)
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
