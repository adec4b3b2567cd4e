"""Implementation of `umg channels`: prints, checks and changes channels, on a database or at a gateway."""

import sys
from collections.abc import Sequence
from datetime import timedelta

import typer
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask

from umg_grpc.cli.admin_client import AdminClient
from umg_grpc.cli.admin_connection import opened
from umg_grpc.cli.channel_override_texts import change_text
from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.cli.text_tables import Column, Fit, Form, print_line, print_table
from umg_grpc.cli.time_texts import time_text
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names, to_json

STATE_NAMES = enum_names(pb.CircuitState.DESCRIPTOR)
OUTCOME_NAMES = enum_names(pb.ChannelCheckOutcome.DESCRIPTOR)
DISABLED_STATE = "disabled"
CHANNEL_COLUMNS = (
    Column("channel"),
    Column("state"),
    Column("failed in 1 h", 2, Fit.LISTED),
    Column("calls in 1 h", 3, is_number=True),
    Column("weight", 4, is_number=True),
    Column("priority", 5, is_number=True),
    Column("key", 6, Fit.LISTED),
    Column("last failure", 2, Fit.FOLDED),
    Column("changed", 3, Fit.FOLDED),
)
CHANNEL_MODEL_COLUMNS = (
    Column("model"),
    Column("upstream model", 3),
    Column("state"),
    Column("since", 4),
    Column("listed", 5),
    Column("last failure", 2, Fit.FOLDED),
    Column("learned", 3, Fit.FOLDED),
)
CHANNEL_CHECK_COLUMNS = (
    Column("channel"),
    Column("result"),
    Column("ms", 2, is_number=True),
    Column("model", 2),
    Column("response", fit=Fit.FOLDED),
    Column("request id", 3),
)
MAX_MODELS = 10
"""Most models without a channel that are printed one by one."""


async def list_channels(target: AdminTarget, channel: str, form: Form) -> None:
    """Print all channels or, if `channel` names one, its models, in a form."""
    async with opened(target) as admin:
        request = pb.ListChannelDetailsRequest(channel=channel)
        found = await admin.call(request, pb.ListChannelDetailsResponse)
    if channel:
        print_channel_models(found.channels[0], form)
    else:
        print_channels(found, form)


def print_channels(found: pb.ListChannelDetailsResponse, form: Form) -> None:
    """Print channels in a form; JSON has all their fields."""
    print_table(CHANNEL_COLUMNS, map(_channel_row, found.channels), form, map(to_json, found.channels))
    if form.is_text:
        for override in found.overrides_without_channel:
            print_line(f"{override.channel}: {change_text(override)}")


def print_channel_models(found: pb.ChannelDetails, form: Form) -> None:
    """Print the models of a channel in a form; JSON has all their fields."""
    print_table(CHANNEL_MODEL_COLUMNS, map(_model_row, found.models), form, map(to_json, found.models))


async def check_channel(target: AdminTarget, channel: str, model: str, seconds: float, form: Form) -> None:
    """Check a channel, and print the result. Exit with 1 if the check failed."""
    timeout = Duration()
    timeout.FromTimedelta(timedelta(seconds=seconds))
    async with opened(target) as admin:
        request = pb.CheckChannelRequest(channel=channel, model=model, timeout=timeout)
        check = (await admin.call(request, pb.CheckChannelResponse)).check
    print_channel_check(check, form)
    if check.outcome == pb.CHANNEL_CHECK_OUTCOME_FAILED:
        raise typer.Exit(1)


def print_channel_check(check: pb.ChannelCheck, form: Form) -> None:
    """Print the result of a check in a form."""
    row = (
        check.channel,
        OUTCOME_NAMES.get(check.outcome, ""),
        str(round(check.duration.ToTimedelta() / timedelta(milliseconds=1))),
        check.upstream_model,
        check.message,
        check.upstream_request_id,
    )
    print_table(CHANNEL_CHECK_COLUMNS, [row], form, [to_json(check)])


async def disable_channel(target: AdminTarget, channel: str, note: str, *, is_confirmed: bool) -> None:
    """Disable a channel. If models would be left without one, a terminal confirms it; else exit with 1."""
    settings, mask = pb.ChannelSettings(disabled=True), FieldMask(paths=["disabled"])
    request = pb.UpdateChannelRequest(channel=channel, settings=settings, update_mask=mask, note=note)
    async with opened(target) as admin:
        if not is_confirmed:
            planned = pb.UpdateChannelRequest(channel=channel, settings=settings, update_mask=mask, dry_run=True)
            lost = (await admin.call(planned, pb.UpdateChannelResponse)).models_without_channel
            if lost and not _confirmed(channel, lost):
                raise typer.Exit(1)
        await _update(admin, request)


async def enable_channel(target: AdminTarget, channel: str, note: str) -> None:
    """Enable a channel."""
    mask = FieldMask(paths=["disabled"])
    async with opened(target) as admin:
        await _update(admin, pb.UpdateChannelRequest(channel=channel, update_mask=mask, note=note))


async def set_weight(target: AdminTarget, channel: str, weight: int | None, note: str) -> None:
    """Set the weight of a channel; None uses that of the config again."""
    settings, mask = pb.ChannelSettings(weight=weight), FieldMask(paths=["weight"])
    request = pb.UpdateChannelRequest(channel=channel, settings=settings, update_mask=mask, note=note)
    async with opened(target) as admin:
        await _update(admin, request)


async def _update(admin: AdminClient, request: pb.UpdateChannelRequest) -> None:
    response = await admin.call(request, pb.UpdateChannelResponse)
    state = DISABLED_STATE if response.settings.disabled else "enabled"
    known = f"{state}, weight {response.settings.weight}" if response.HasField("settings") else "not in the config"
    print_line(f"{request.channel}: {known}; gateways apply it within seconds")


def _confirmed(channel: str, lost: Sequence[pb.ModelWithoutChannel]) -> bool:
    print(f"umg: without {channel}, no channel serves:", file=sys.stderr)
    for each in lost[:MAX_MODELS]:
        print(f"  {each.model}: {each.calls} calls in the last hour", file=sys.stderr)
    if len(lost) > MAX_MODELS:
        calls = sum(each.calls for each in lost[MAX_MODELS:])
        print(f"  and {len(lost) - MAX_MODELS} more: {calls} calls in the last hour", file=sys.stderr)
    if sys.stdin.isatty():
        return typer.confirm(f"Disable {channel}?", err=True)
    print("umg: nothing is changed: repeat the command with --yes", file=sys.stderr)
    return False


def _channel_row(each: pb.ChannelDetails) -> tuple[str, ...]:
    return (
        each.channel,
        DISABLED_STATE if each.settings.disabled else STATE_NAMES.get(each.state, ""),
        ", ".join(f"{count.attempts} {count.kind}" for count in each.last_hour.failures),
        str(each.last_hour.calls) if each.HasField("last_hour") else "",
        str(each.settings.weight),
        str(each.priority),
        ", ".join(f"...{tail}" for tail in each.key_tails),
        _failure(each.last_failure, each.remedy) if each.HasField("last_failure") else "",
        "; ".join(map(change_text, each.overrides)),
    )


def _model_row(each: pb.ChannelModelDetails) -> tuple[str, ...]:
    return (
        each.model,
        each.upstream_model,
        STATE_NAMES.get(each.state, ""),
        time_text(each.not_closed_since_time) if each.HasField("not_closed_since_time") else "",
        "yes" if each.is_discovered else "no",
        _failure(each.last_failure, each.remedy) if each.HasField("last_failure") else "",
        "; ".join(f"{learned.member} ({learned.protocol})" for learned in each.learned),
    )


def _failure(failure: pb.ChannelFailure, remedy: str) -> str:
    words = f": {failure.message}" if failure.message else ""
    return f"{time_text(failure.time)} {failure.kind}{words}; {remedy}"
