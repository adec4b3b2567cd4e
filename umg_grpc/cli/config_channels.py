"""Channels of the config of a command, for their administration on a database: without a running gateway."""

import time
from contextlib import AsyncExitStack

from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.cli.stored_changes import read_changes
from umg_grpc.config import Config
from umg_grpc.process.config_loading import load
from umg_grpc.routing import Router
from umg_grpc.routing.overridden_channels import with_changes
from umg_grpc.service.channels.channel_source import ChannelStates
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.resilience.learned_quirk_sharing import LearnedQuirkTable
from umg_grpc.service.resilience.learned_quirks import LearnedQuirks
from umg_grpc.service.stored_model_lists import list_states, with_stored_lists
from umg_grpc.store import Store
from umg_grpc.store.channel_failure_file import read_failures
from umg_grpc.store.provider_model_list_files import ModelListFiles


class ConfigChannels:
    """Source of the channels of a config. It has no circuit breakers: those of gateways are in the database."""

    def __init__(self, store: Store, target: AdminTarget, stack: AsyncExitStack) -> None:
        """Create the source. `stack`: closes the connections to providers."""
        self._store, self._data, self._stack = store, target.data, stack
        self._config = load(target.config, target.data)

    async def states(self) -> ChannelStates:
        config = with_stored_lists(self._config, self._data)
        overrides, prices = await read_changes(self._store)
        try:
            failures = read_failures(self._data)
        except OSError:
            failures = []
        return ChannelStates(
            config,
            Channels(_router(with_changes(config, overrides, prices))),
            failures=failures,
            learned=await LearnedQuirkTable(self._store, LearnedQuirks()).read(),
            model_lists=list(list_states(self._config, ModelListFiles(self._data))),
            overrides=overrides,
            prices=prices,
        )

    async def connected(self) -> Channels:
        from umg_grpc.process.live_channel_check import connected_channels  # here: other commands call no provider

        router = _router(with_stored_lists(self._config, self._data))
        return await connected_channels(self._config, self._stack, router)

    async def apply(self) -> None:
        """Return at once: the gateways read the database."""


def _router(config: Config) -> Router:
    return Router(config, time.time)
