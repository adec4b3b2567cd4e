"""List of the config's channels with their health. The circuit breakers are those of this process; the last failures
and the model lists are those of all processes.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from google.protobuf.duration_pb2 import Duration

from umg_grpc.base.provider_failure import ProviderFailure
from umg_grpc.base.time_units import time_of
from umg_grpc.config import Channel
from umg_grpc.routing import PublicModel, Router
from umg_grpc.routing.overridden_channels import ChannelOverride, ineffective_reason
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.resilience.circuit_breaker_snapshots import BreakerState, CircuitState
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.store.channel_failure_file import LastFailure
from umg_grpc.v1 import pb

CIRCUIT_STATES = MappingProxyType(
    {
        CircuitState.CLOSED: pb.CIRCUIT_STATE_CLOSED,
        CircuitState.OPEN: pb.CIRCUIT_STATE_OPEN,
        CircuitState.HALF_OPEN: pb.CIRCUIT_STATE_HALF_OPEN,
    }
)


class ChannelReport:
    """Source of the list of channels with their health."""

    def __init__(
        self,
        channels: Channels,
        breakers: Callable[[], Sequence[BreakerState]],
        failures: Callable[[], Sequence[LastFailure]],
        model_lists: Callable[[], Iterable[pb.ProviderModelList]],
        overrides: Callable[[], Sequence[pb.ChannelOverride]] = list,
    ) -> None:
        """Create the list. `breakers`: states in this process. `failures` and `model_lists` read files, and block.
        `overrides`: settings of channels that were changed.
        """
        self._overrides = overrides
        self._channels = channels
        self._breakers = breakers
        self._failures = failures
        self._model_lists = model_lists

    async def list(self) -> pb.ListChannelsResponse:
        """Return all channels with their health, without last failures if their file is unreadable."""
        try:
            failures = {failure.key: failure for failure in await asyncio.to_thread(self._failures)}
        except OSError:
            failures = {}
        breakers = {(each.channel, each.model): each for each in self._breakers()}
        router = self._channels.router
        models = [_model(router, model) for model in router.models()]
        models += [_model(router, found.model, alias) for alias, found in router.aliases().items()]
        configured = [(each.channel, each.upstream_model) for model in models for each in model.channels]
        pairs = dict.fromkeys([*configured, *breakers, *failures])
        return pb.ListChannelsResponse(
            channels=[_health(*pair, breakers.get(pair), failures.get(pair)) for pair in pairs],
            models=models,
            model_lists=await asyncio.to_thread(list, self._model_lists()),
            overrides=self._overrides(),
        )


def _model(router: Router, model: PublicModel, alias: str = "") -> pb.ModelChannels:
    return pb.ModelChannels(
        model=alias or model.id,
        alias_of=model.id if alias else "",
        owned_by=model.described.owned_by,
        family=model.family,
        prices=model.described.prices,
        channels=[
            pb.ChannelModel(channel=target.channel.name, upstream_model=target.model)
            for target in router.targets(model.id)
        ],
    )


def _health(channel: str, model: str, breaker: BreakerState | None, failure: LastFailure | None) -> pb.ChannelHealth:
    message = pb.ChannelHealth(channel=channel, upstream_model=model, state=pb.CIRCUIT_STATE_CLOSED)
    if breaker is not None:
        message.state, message.calls_in_flight = CIRCUIT_STATES[breaker.state], breaker.calls
        if breaker.state is CircuitState.OPEN:
            duration = Duration()
            duration.FromTimedelta(timedelta(seconds=breaker.rest))
            message.open_duration.CopyFrom(duration)
    if failure is not None:
        message.last_failure.CopyFrom(failure_message(failure.facts, failure.time))
    return message


def failure_message(facts: ProviderFailure, time: float) -> pb.ChannelFailure:
    """Return a failure as a message. `time`: Unix time."""
    return pb.ChannelFailure(
        time=timestamp(datetime.fromtimestamp(time, UTC)),
        kind=facts.kind.value,
        upstream_status_code=facts.status or None,
        code=facts.code,
        message=facts.message,
        upstream_request_id=facts.request_id,
        host=facts.host,
        path=facts.path,
        content_type=facts.content_type,
        key_tail=facts.key_tail,
    )


def override_message(override: ChannelOverride, channels: Collection[Channel]) -> pb.ChannelOverride:
    """Return an override as a message. `channels`: those of the config."""
    return pb.ChannelOverride(
        channel=override.channel,
        setting=override.setting,
        value=override.value,
        note=override.note,
        actor_id=override.actor_id,
        actor_name=override.actor_name,
        update_time=timestamp(time_of(override.update_micros)),
        ineffective_reason=ineffective_reason(override, channels),
    )
