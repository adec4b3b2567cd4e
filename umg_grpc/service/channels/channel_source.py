"""Source of the channels for their administration: those of a running gateway, or of the config of a command."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from umg_grpc.config import Channel, Config
from umg_grpc.routing.overridden_channels import Overrides
from umg_grpc.routing.set_model_prices import SetPrices
from umg_grpc.service.channels.current_overrides import CurrentOverrides
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.resilience.channel_protection import Resilience
from umg_grpc.service.resilience.circuit_breaker_snapshots import BreakerState
from umg_grpc.service.resilience.learned_quirks import LearnedQuirk
from umg_grpc.service.stored_model_lists import list_states
from umg_grpc.store.channel_failure_file import ChannelFailures, LastFailure
from umg_grpc.store.provider_model_list_files import ModelListFiles
from umg_grpc.v1 import pb


@dataclass(frozen=True)
class ChannelStates:
    """Channels at one time, with the facts that are not in the database."""

    config: Config
    """Config with the models that providers list, without overrides."""
    channels: Channels
    breakers: Sequence[BreakerState] = ()
    failures: Sequence[LastFailure] = ()
    learned: Sequence[LearnedQuirk] = ()
    model_lists: Sequence[pb.ProviderModelList] = ()
    overrides: Overrides = field(default_factory=dict)
    """Overrides that this process applies, for the time of an outage of the database."""
    prices: SetPrices = field(default_factory=dict)
    """Set prices that this process applies."""

    def channel(self, name: str) -> Channel | None:
        """Return the channel with a name; None for an unknown one."""
        return next((each for each in self.config.channels if each.name == name), None)


class ChannelSource(Protocol):
    """Interface of a source of channels."""

    async def states(self) -> ChannelStates:
        """Return the channels with their facts."""
        ...

    async def connected(self) -> Channels:
        """Return the channels with connections to their providers."""
        ...

    async def apply(self) -> None:
        """Apply the changes in the database to this process."""
        ...


class RunningChannels:
    """Source of the channels of a running gateway."""

    def __init__(
        self,
        channels: Channels,
        shared: Resilience,
        failures: ChannelFailures,
        overrides: CurrentOverrides,
        config: Callable[[], Config],
        model_lists: ModelListFiles,
    ) -> None:
        """Create the source. `config`: returns the config with the models that providers list."""
        self._channels, self._shared, self._failures = channels, shared, failures
        self._overrides, self._config, self._model_lists = overrides, config, model_lists

    async def states(self) -> ChannelStates:
        breakers, learned = self._shared.health.snapshot(), self._shared.learned.all()

        def read() -> ChannelStates:
            try:
                failures = self._failures.read()
            except OSError:
                failures = []
            config = self._config()
            lists = list(list_states(config, self._model_lists))
            return ChannelStates(
                *(config, self._channels, breakers, failures, learned, lists),
                overrides=self._overrides.overrides,
                prices=self._overrides.prices,
            )

        return await asyncio.to_thread(read)

    async def connected(self) -> Channels:
        return self._channels

    async def apply(self) -> None:
        await self._overrides.load()
