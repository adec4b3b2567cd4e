"""Details of channels as messages of `umg.v1`: settings, health, calls of the last hour, knowledge."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.base.errors import UmgError
from umg_grpc.base.time_units import time_of
from umg_grpc.config import Channel
from umg_grpc.routing import Router, Target
from umg_grpc.routing.known_restrictions import known_restrictions
from umg_grpc.routing.overridden_channels import (
    DISABLED_SETTING,
    Overrides,
    with_overrides,
)
from umg_grpc.service.channels.channel_override_table import ChannelOverrideTable
from umg_grpc.service.channels.channel_source import ChannelStates
from umg_grpc.service.provider_failure_advice import remedy
from umg_grpc.service.resilience.circuit_breaker_snapshots import BreakerState, CircuitState
from umg_grpc.service.resilience.learned_quirks import LIFETIME_SECONDS, LearnedQuirk
from umg_grpc.service.servicers.channel_health_report import CIRCUIT_STATES, failure_message, override_message
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.store import Store
from umg_grpc.store.alert_facts import AlertFacts, ChannelOutage
from umg_grpc.store.channel_activity import CalledChannel, ChannelActivityReader
from umg_grpc.store.channel_failure_file import LastFailure
from umg_grpc.upstream.http.operator_failure_facts import MIN_KEY_CHARACTERS, TAIL_CHARACTERS
from umg_grpc.v1 import pb

Pair = tuple[str, str]
"""Channel and the provider's id of a model."""
STATE_SEVERITIES: Mapping["pb.CircuitState.ValueType", int] = {
    pb.CIRCUIT_STATE_OPEN: 2,
    pb.CIRCUIT_STATE_HALF_OPEN: 1,
    pb.CIRCUIT_STATE_CLOSED: 0,
}
NOT_CALLED = CalledChannel(0, 0, {})


@dataclass(frozen=True)
class StoredFacts:
    """Facts about channels in the database."""

    overrides: Overrides = field(default_factory=dict)
    checks: Mapping[str, int] = field(default_factory=dict)
    """Channel -> time of its last successful check in microseconds since 1970."""
    calls: Mapping[str, CalledChannel] | None = None
    """Calls of the last hour by channel; None while the database is unavailable."""
    outages: Sequence[ChannelOutage] = ()


class ChannelDetailsReport:
    """Reader of the details of channels."""

    def __init__(self, store: Store, table: ChannelOverrideTable) -> None:
        self._table = table
        self._activity = ChannelActivityReader(store)
        self._outages = AlertFacts(store, "")

    async def list(self, states: ChannelStates, only: str = "") -> pb.ListChannelDetailsResponse:
        """Return all channels or one, unhealthy ones first. The knowledge is that of one channel alone."""
        facts = await self._stored(states)
        return await asyncio.to_thread(_response, states, facts, only)

    async def _stored(self, states: ChannelStates) -> StoredFacts:
        try:
            overrides, checks = await self._table.read()
            times = {each.channel: each.check_micros for each in checks}
            return StoredFacts(overrides, times, await self._activity.channels(), await self._outages.outages())
        except (SQLAlchemyError, OSError):  # the memory of this process is shown all the same
            return StoredFacts(states.overrides)

    async def models_without(
        self, states: ChannelStates, channel: str, overrides: Overrides
    ) -> Sequence[pb.ModelWithoutChannel]:
        """Return the models that lose their last channel for an operation if a channel is disabled too."""
        calls, router = await self._activity.models(), states.channels.router
        disabled = {each.channel for each in overrides.values() if each.setting == DISABLED_SETTING} - {channel}
        aliases: dict[str, list[str]] = {}
        for alias, found in router.aliases().items():
            aliases.setdefault(found.model.id, []).append(alias)
        lost = [
            pb.ModelWithoutChannel(model=model, calls=calls.get(model, 0), aliases=aliases.get(model, ()))
            for model in dict.fromkeys((*(each.id for each in router.models()), *calls))
            if _loses_last(_targets(router, model), channel, disabled)
        ]
        return sorted(lost, key=lambda each: -each.calls)


def settings_message(channel: Channel) -> pb.ChannelSettings:
    """Return the settings of a channel with its overrides."""
    return pb.ChannelSettings(disabled=channel.disabled, weight=channel.weight)


def _loses_last(targets: Sequence[Target], channel: str, disabled: Collection[str]) -> bool:
    others = [each for each in targets if each.channel.name != channel and each.channel.name not in disabled]
    lost = {operation for each in targets if each.channel.name == channel for operation in each.operations}
    return any(not any(other.supports(operation) for other in others) for operation in lost)


def _targets(router: Router, model: str) -> Sequence[Target]:
    with suppress(UmgError):
        return router.targets(model)
    return ()


def _response(states: ChannelStates, facts: StoredFacts, only: str) -> pb.ListChannelDetailsResponse:
    config = with_overrides(states.config, facts.overrides)
    names = {channel.name for channel in config.channels}
    response = pb.ListChannelDetailsResponse(
        overrides_without_channel=[
            override_message(each, config.channels)
            for each in facts.overrides.values()
            if each.channel not in names and not only
        ]
    )
    for written, channel in zip(states.config.channels, config.channels, strict=True):
        if only in {"", channel.name}:
            response.channels.append(
                _Details(states, facts, channel, written.weight, with_knowledge=bool(only)).message()
            )
    response.channels.sort(key=_severity)
    return response


def _severity(details: pb.ChannelDetails) -> tuple[bool, int, int]:
    failed = sum(each.attempts for each in details.last_hour.failures)
    return details.settings.disabled, -STATE_SEVERITIES.get(details.state, 0), -failed


class _Details:
    """Details of one channel, as a message."""

    def __init__(
        self, states: ChannelStates, facts: StoredFacts, channel: Channel, written_weight: int, *, with_knowledge: bool
    ) -> None:
        name = channel.name
        self._states, self._facts, self._channel, self._weight = states, facts, channel, written_weight
        self._with_knowledge = with_knowledge
        self._breakers = {each.model: each for each in states.breakers if each.channel == name}
        self._failures = {each.facts.model: each for each in states.failures if each.channel == name}
        self._outages = {each.model: each.since_micros for each in facts.outages if each.channel == name}

    def message(self) -> pb.ChannelDetails:
        """Return the details."""
        channel, facts = self._channel, self._facts
        models = list(self._models())
        message = pb.ChannelDetails(
            channel=channel.name,
            provider=channel.provider,
            protocols=channel.protocols,
            host=urlsplit(channel.base_url).netloc.rpartition("@")[2],
            settings=settings_message(channel),
            config_weight=self._weight,
            config_weight_place=channel.weight_place,
            priority=channel.priority,
            overrides=[
                override_message(each, [channel]) for each in facts.overrides.values() if each.channel == channel.name
            ],
            state=max(
                (each.state for each in models), key=STATE_SEVERITIES.__getitem__, default=pb.CIRCUIT_STATE_CLOSED
            ),
            models=models,
            key_tails=[key[-TAIL_CHARACTERS:] for key in channel.api_keys if len(key) >= MIN_KEY_CHARACTERS],
            model_list=next((each for each in self._states.model_lists if each.channel == channel.name), None),
            discovered_models=sum(each.is_discovered for each in models),
            last_successful_check_time=_time(facts.checks.get(channel.name)),
        )
        if facts.calls is not None and self._states.config.usage.enabled:
            message.last_hour.CopyFrom(_activity(facts.calls.get(channel.name, NOT_CALLED)))
        if self._failures:
            last = max(self._failures.values(), key=lambda each: each.time)
            message.last_failure.CopyFrom(failure_message(last.facts, last.time))
            message.remedy = remedy(last.facts)
        return message

    def _models(self) -> Iterator[pb.ChannelModelDetails]:
        named = {model.upstream for model in self._channel.models}
        for model in self._channel.models:
            message = self._model(model.id, model.upstream)
            message.is_discovered = model.listed is not None
            if self._with_knowledge:
                self._add_knowledge(message)
            yield message
        for upstream in dict.fromkeys((*self._breakers, *self._failures, *self._outages)):
            if upstream not in named and upstream:  # of a pattern
                yield self._model("", upstream)

    def _model(self, model: str, upstream: str) -> pb.ChannelModelDetails:
        since, failure = self._outages.get(upstream), self._failures.get(upstream)
        message = pb.ChannelModelDetails(model=model, upstream_model=upstream, not_closed_since_time=_time(since))
        _set_state(message, self._breakers.get(upstream), since)
        if failure is not None:
            _set_failure(message, failure)
        return message

    def _add_knowledge(self, message: pb.ChannelModelDetails) -> None:
        channel, upstream = self._channel.name, message.upstream_model
        targets = () if "*" in message.model else _targets(self._states.channels.router, message.model)
        for target in targets:
            if target.channel.name == channel:
                message.quirks.extend(pb.ChannelQuirk(**each._asdict()) for each in known_restrictions(target))
        learned = (each for each in self._states.learned if (each.channel, each.model) == (channel, upstream))
        message.learned.extend(map(_learned, learned))


def _set_state(message: pb.ChannelModelDetails, breaker: BreakerState | None, since_micros: int | None) -> None:
    message.state = pb.CIRCUIT_STATE_CLOSED
    if breaker is not None:
        message.state, message.calls_in_flight = CIRCUIT_STATES[breaker.state], breaker.calls
        if breaker.state is CircuitState.OPEN:
            message.open_duration.CopyFrom(_duration(breaker.rest))
    if message.state == pb.CIRCUIT_STATE_CLOSED and since_micros is not None:
        message.state = pb.CIRCUIT_STATE_OPEN


def _set_failure(message: pb.ChannelModelDetails, failure: LastFailure) -> None:
    message.last_failure.CopyFrom(failure_message(failure.facts, failure.time))
    message.remedy = remedy(failure.facts)


def _activity(called: CalledChannel) -> pb.ChannelActivity:
    by_number = sorted(called.failures.items(), key=lambda item: -item[1].attempts)
    return pb.ChannelActivity(
        calls=called.calls,
        failed_calls=called.failed,
        failures=[
            pb.ChannelFailureCount(
                kind=kind,
                attempts=each.attempts,
                last_time=timestamp(time_of(each.last_micros)),
                last_message=each.last_message,
            )
            for kind, each in by_number
        ],
    )


def _learned(learned: LearnedQuirk) -> pb.LearnedRestriction:
    return pb.LearnedRestriction(
        protocol=learned.protocol,
        member=learned.member,
        value=learned.value_class,
        config_line=learned.line(),
        learn_time=_unix_time(learned.learn_time),
        expire_time=_unix_time(learned.learn_time + LIFETIME_SECONDS),
    )


def _time(micros: int | None) -> Timestamp | None:
    return None if micros is None else timestamp(time_of(micros))


def _unix_time(seconds: float) -> Timestamp | None:
    return timestamp(datetime.fromtimestamp(seconds, UTC))


def _duration(seconds: float) -> Duration:
    duration = Duration()
    duration.FromTimedelta(timedelta(seconds=seconds))
    return duration
