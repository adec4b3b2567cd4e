"""Administration of channels: their details, live checks, and changes of their settings."""

from __future__ import annotations  # the context is needed by type checkers alone, and slow to import

from datetime import timedelta
from typing import TYPE_CHECKING

from google.protobuf.duration_pb2 import Duration

from umg_grpc.access.principals import WHOLE_GATEWAY
from umg_grpc.access.role_permissions import Extent
from umg_grpc.base.errors import UmgError
from umg_grpc.base.time_units import micros_of
from umg_grpc.routing.overridden_channels import (
    DISABLED_SETTING,
    WEIGHT_SETTING,
    ChannelOverride,
    overrides_by_setting,
    with_overrides,
)
from umg_grpc.service.channels.channel_checks import ChannelChecks
from umg_grpc.service.channels.channel_details_report import ChannelDetailsReport, settings_message
from umg_grpc.service.channels.channel_override_table import ChannelOverrideTable, SuccessfulCheck
from umg_grpc.service.pipeline.call_state import current
from umg_grpc.service.servicers.administrative_calls import AdministrativeCalls, RequestCheck
from umg_grpc.service.servicers.channel_health_report import failure_message, override_message
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.store.database_time import utc_of
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import echo

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from umg_grpc.access.access_control import Authority
    from umg_grpc.base.inprocess_channel import Context
    from umg_grpc.config import Channel
    from umg_grpc.routing.overridden_channels import Overrides
    from umg_grpc.service.channels.channel_source import ChannelSource, ChannelStates
    from umg_grpc.service.single_channel_check import CheckResult
    from umg_grpc.store import Store

CHECK_SECONDS = 20.0
CHANNEL_SETTINGS = (DISABLED_SETTING, WEIGHT_SETTING)


class ChannelAdministration:
    """Methods of `umg.v1.ChannelService`. `check` raises UmgError for a request that breaks a rule of the schema."""

    def __init__(self, store: Store, source: ChannelSource, check: RequestCheck) -> None:
        self._calls = AdministrativeCalls("ChannelService", store, check)
        self._acts = ChannelActs(store, source)

    async def ListChannelDetails(
        self, request: pb.ListChannelDetailsRequest, context: Context
    ) -> pb.ListChannelDetailsResponse:
        return await self._calls.run(request, context, self._acts.details)

    async def CheckChannel(self, request: pb.CheckChannelRequest, context: Context) -> pb.CheckChannelResponse:
        return await self._calls.run(request, context, self._acts.check)

    async def UpdateChannel(self, request: pb.UpdateChannelRequest, context: Context) -> pb.UpdateChannelResponse:
        return await self._calls.run(request, context, self._acts.update)


class ChannelActs:
    """Acts on channels, with the rights of a caller."""

    def __init__(self, store: Store, source: ChannelSource) -> None:
        self._source, self._clock = source, store.clock
        self._table = ChannelOverrideTable(store)
        self._report = ChannelDetailsReport(store, self._table)
        self._checks = ChannelChecks()

    async def details(
        self, request: pb.ListChannelDetailsRequest, authority: Authority
    ) -> pb.ListChannelDetailsResponse:
        """Return all channels, or one."""
        if authority.greatest_extent(pb.PERMISSION_CHANNELS_READ) is not Extent.ALL:
            raise authority.denied(pb.PERMISSION_CHANNELS_READ)
        states = await self._source.states()
        if request.channel and states.channel(request.channel) is None:
            raise _unknown(request.channel, states)
        return await self._report.list(states, request.channel)

    async def check(self, request: pb.CheckChannelRequest, authority: Authority) -> pb.CheckChannelResponse:
        """Call a channel once."""
        authority.check_account(pb.PERMISSION_CHANNELS_CHECK, WHOLE_GATEWAY)
        states = await self._source.states()
        if (channel := states.channel(request.channel)) is None:
            raise _unknown(request.channel, states)
        seconds = request.timeout.ToTimedelta().total_seconds() if request.HasField("timeout") else CHECK_SECONDS
        seconds, began = min(seconds, current().seconds_left()), utc_of(self._clock)
        result = await self._checks.check(
            await self._source.connected(), states.breakers, channel, request.model, seconds
        )
        check = _check_message(result, began)
        success = None
        if check.outcome == pb.CHANNEL_CHECK_OUTCOME_SUCCEEDED:
            success = SuccessfulCheck(channel.name, result.model, micros_of(began))
        audited = {"check": OUTCOME_NAMES[check.outcome], "model": result.model, "failure": check.failure.kind}
        await self._table.record_check(channel.name, {name: each for name, each in audited.items() if each}, success)
        await self._source.apply()
        return pb.CheckChannelResponse(check=check)

    async def update(self, request: pb.UpdateChannelRequest, authority: Authority) -> pb.UpdateChannelResponse:
        """Change settings of a channel, or return the consequences."""
        authority.check_account(pb.PERMISSION_CHANNELS_WRITE, WHOLE_GATEWAY)
        states, values = await self._source.states(), _values(request)
        overrides, _ = await self._table.read()
        name, channel = request.channel, states.channel(request.channel)
        if channel is None:
            _check_removal(name, values, overrides, states)
        elif channel.weight_place and values.get(WEIGHT_SETTING) is not None:
            raise _fixed_weight(channel)
        disables = channel is not None and bool(values.get(DISABLED_SETTING))
        lost = await self._report.models_without(states, name, overrides) if disables else ()
        if request.dry_run:
            planned = _planned(name, values, overrides)
        else:
            await self._table.change(name, values, request.note)
            await self._source.apply()
            planned = overrides = (await self._table.read())[0]
        found = (each for each in with_overrides(states.config, planned).channels if each.name == name)
        return pb.UpdateChannelResponse(
            settings=next(map(settings_message, found), None),
            overrides=[
                override_message(each, states.config.channels) for each in overrides.values() if each.channel == name
            ],
            models_without_channel=lost,
        )


OUTCOME_NAMES = {
    pb.CHANNEL_CHECK_OUTCOME_SUCCEEDED: "succeeded",
    pb.CHANNEL_CHECK_OUTCOME_FAILED: "failed",
    pb.CHANNEL_CHECK_OUTCOME_NOT_CALLED: "not_called",
}
"""Outcome of a check -> its name in the audit log and on the command line."""


def _values(request: pb.UpdateChannelRequest) -> dict[str, int | None]:
    """Return the overrides that a request sets, None for the removed ones. Raise UmgError(INVALID_FIELD)."""
    paths, settings = list(request.update_mask.paths), request.settings
    unknown = [path for path in paths if path not in CHANNEL_SETTINGS]
    if unknown or not paths:
        problem = f"`{unknown[0]}` is no field of the settings" if unknown else "name at least one field to change"
        message = f"update_mask: {problem}; name some of {', '.join(CHANNEL_SETTINGS)}"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="update_mask")
    values: dict[str, int | None] = {}
    if DISABLED_SETTING in paths:
        values[DISABLED_SETTING] = 1 if settings.disabled else None
    if WEIGHT_SETTING in paths:
        values[WEIGHT_SETTING] = settings.weight if settings.HasField("weight") else None
    return values


def _planned(name: str, values: Mapping[str, int | None], overrides: Overrides) -> Overrides:
    """Return the overrides as they would be after a change."""
    kept = [each for each in overrides.values() if each.channel != name or each.setting not in values]
    new = [ChannelOverride(name, key, value, "", "", "", 0) for key, value in values.items() if value is not None]
    return overrides_by_setting([*kept, *new])


def _check_removal(name: str, values: Mapping[str, int | None], overrides: Overrides, states: ChannelStates) -> None:
    """Raise UmgError(OBJECT_NOT_FOUND) for a channel that the config does not have, unless overrides are removed."""
    is_known = any(each.channel == name for each in overrides.values())
    if not is_known or any(value is not None for value in values.values()):
        raise _unknown(name, states)


def _unknown(name: str, states: ChannelStates) -> UmgError:
    names: Collection[str] = [channel.name for channel in states.config.channels]
    message = f"the config has no channel {echo(name)}; it has {', '.join(names) or 'none'}"
    return UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=name[:100])


def _fixed_weight(channel: Channel) -> UmgError:
    message = (
        f"{channel.weight_place} states the weight of `{channel.name}`: change it there and reload the config, or"
        " remove it there to change it here"
    )
    return UmgError(pb.ERROR_REASON_WRONG_STATE, message, state="config")


def _check_message(result: CheckResult, began: datetime) -> pb.ChannelCheck:
    outcome = pb.CHANNEL_CHECK_OUTCOME_FAILED
    if result.is_fine:
        outcome = pb.CHANNEL_CHECK_OUTCOME_SUCCEEDED if result.is_called else pb.CHANNEL_CHECK_OUTCOME_NOT_CALLED
    duration = Duration()
    duration.FromTimedelta(timedelta(seconds=result.seconds))
    facts = result.facts
    return pb.ChannelCheck(
        channel=result.channel,
        upstream_model=result.model,
        outcome=outcome,
        duration=duration,
        message=result.text,
        failure=None if facts is None else failure_message(facts, began.timestamp() + result.seconds),
        upstream_request_id=result.request_id or ("" if facts is None else facts.request_id),
        check_time=timestamp(began),
    )
