"""Discovery of models: reads the model lists of providers at the start, and then periodically in the background."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

import structlog

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Channel, Config
from umg_grpc.knowledge.vendor_models import vendor_models
from umg_grpc.operations.protocols import model_list
from umg_grpc.routing.discovered_models import with_discovered
from umg_grpc.service.metric_gauges import MODEL_LIST_AGE, MODEL_LIST_SUCCESS
from umg_grpc.service.metrics import Metrics, Values
from umg_grpc.store.model_list_files import ModelListFiles
from umg_grpc.store.repeated_work import Background
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.provider_model_list import fetch_models
from umg_grpc.v1 import pb
from umg_grpc.wire.provider_model_lists import ModelList

FETCH_SECONDS = 30.0
"""Time limit for reading the list of one provider."""
JITTER = 0.1
"""Fraction by which the interval between two reads varies at random, so that replicas do not read at the same time."""
RETRY_SECONDS = 60.0
"""Maximum interval after a refresh in which a list could not be read."""
CLOSE_SECONDS = 1.0

logger = structlog.get_logger()


class ModelDiscovery:
    """Model lists of the channels for which the config enables discovery, read from `start` to `aclose`."""

    def __init__(
        self,
        files: ModelListFiles,
        metrics: Metrics,
        now: Callable[[], float] = time.time,
        vary: Callable[[], float] = random.random,
    ) -> None:
        """Create the discovery without channels, which `configure` sets.
        `files`: stored lists. `now`: returns Unix seconds. `vary`: returns a random number from 0 to 1, for the jitter.
        """
        self._files = files
        self._now = now
        self._vary = vary
        self._config = Config(channels=())
        self._providers: Mapping[str, HttpChannel] = {}
        self._lists: dict[str, Sequence[pb.Model]] = {}
        self._addresses: dict[str, str] = {}  # base URL of each list
        self._times: dict[str, float] = {}
        self._failed: set[str] = set()
        self._changed: Callable[[], Awaitable[None]] = _ignore
        self._first = asyncio.Event()
        """Set after the first refresh."""
        self._refreshes: Background | None = None
        metrics.watch(MODEL_LIST_SUCCESS, self._successes)
        metrics.watch(MODEL_LIST_AGE, self._ages)

    @property
    def _channels(self) -> list[Channel]:
        return [channel for channel in self._config.channels if channel.reads_list]

    def preview(self, config: Config) -> Config:
        """Return the config that `configure` would return for a config, without effect. May be called in a thread."""
        channels = [channel for channel in config.channels if channel.reads_list]
        lists = dict[str, Sequence[pb.Model]]()
        for channel in channels:
            known = self._lists.get(channel.name) if self._addresses.get(channel.name) == channel.base_url else None
            if (found := known or self._files.read(channel.name, channel.base_url)) is not None:
                lists[channel.name] = found
        return with_discovered(config, lists)

    def configure(self, config: Config, providers: Mapping[str, HttpChannel]) -> Config:
        """Set the channels to those of the config. Return the config with the models that are known to be in their
        lists.
        `providers`: channel -> connection to its provider. A list stored on disk is used until the first read.
        """
        self._config, self._providers = config, providers
        addresses = {channel.name: channel.base_url for channel in self._channels}
        kept = {name for name in self._lists if addresses.get(name) == self._addresses.get(name)}
        self._lists = {name: models for name, models in self._lists.items() if name in kept}
        self._times = {name: moment for name, moment in self._times.items() if name in kept}
        self._failed &= addresses.keys()
        self._addresses = addresses
        for channel in self._channels:
            if (
                channel.name not in self._lists
                and (stored := self._files.read(channel.name, channel.base_url)) is not None
            ):
                self._lists[channel.name] = stored
        if self._refreshes is not None:
            self._refreshes.wake()
        return self.extended()

    def extended(self) -> Config:
        """Return the last config with the models that are known now to be in the lists of its channels."""
        return with_discovered(self._config, self._lists)

    async def start(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Read all lists now, and then periodically in the background. Return at once if each channel whose config
        asks for the list has a stored one, else when all were read, but at the latest after the time limit in the
        config. `changed`: called after each refresh in which a list has changed.
        """
        self._changed = changed
        self._refreshes = Background("refreshing the model lists of providers", self._step)
        if self._channels:
            self._refreshes.wake()
        if any(channel.name not in self._lists for channel in self._channels if channel.discovery != "preset"):
            try:
                async with asyncio.timeout(self._config.discovery.wait):
                    await self._first.wait()
            except TimeoutError:
                waiting = [channel.name for channel in self._channels if channel.name not in self._times]
                logger.warning("serving while the model lists of providers are not read yet", channels=waiting)

    async def wait_listed(self, seconds: float) -> None:
        """Wait until each list was read once, at most `seconds`, unless models are known of each channel. Called after
        `start`.
        """
        if any(channel.name not in self._lists and not vendor_models(channel.provider) for channel in self._channels):
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._first.wait()

    async def aclose(self) -> None:
        """Stop reading the lists."""
        if self._refreshes is not None:
            await self._refreshes.aclose(CLOSE_SECONDS)
            self._refreshes = None

    async def _step(self) -> None:
        """Read the lists of all channels at the same time. Each list is used as soon as it is read."""
        pending = [
            (channel, listing) for channel in self._channels if (listing := model_list(channel.listing_protocols))
        ]
        await asyncio.gather(*(self._refresh(channel, listing) for channel, listing in pending))
        self._first.set()
        if self._refreshes is not None:
            interval = float(self._config.discovery.interval)
            interval = min(interval, RETRY_SECONDS) if self._failed else interval
            self._refreshes.every = interval * (1 - JITTER * self._vary()) if pending else None

    async def _refresh(self, channel: Channel, listing: ModelList) -> None:
        """Read the model list of one channel by the request `listing`. Keep the last list if the read fails or returns
        no model.
        """
        name = channel.name
        if (provider := self._providers.get(name)) is None:
            return
        try:
            models = await fetch_models(provider, listing, FETCH_SECONDS)
        except UmgError as error:
            self._fail(name, error.cause or error.message, error.facts.log_fields() if error.facts else {})
            return
        if self._providers.get(name) is not provider:  # a reload replaced the channel
            return
        if not models:
            self._fail(name, "the list is empty", {})
            return
        if name in self._failed:
            logger.info("the model list of a channel can be read again", channel=name)
            self._failed.discard(name)
        self._times[name] = self._now()
        if list(self._lists.get(name, ())) != models:
            self._lists[name] = models
            await self._changed()
            await asyncio.to_thread(self._files.write, name, channel.base_url, models)

    def _fail(self, name: str, reason: str, facts: Mapping[str, str | int | None]) -> None:
        """Record that the list of the channel `name` could not be read, and log the `reason` unless the last read
        failed too.
        `facts`: further fields of the log line.
        """
        if name not in self._failed:
            has_list = name in self._lists
            logger.warning(
                "the model list of a channel could not be read; "
                + ("the last one stays" if has_list else "it is retried"),
                channel=name,
                reason=reason,
                **facts,
            )
        self._failed.add(name)

    def _successes(self) -> Values:
        return {(channel.name,): float(channel.name not in self._failed) for channel in self._channels}

    def _ages(self) -> Values:
        now = self._now()
        return {
            (channel.name,): now - self._times[channel.name]
            for channel in self._channels
            if channel.name in self._times
        }


async def _ignore() -> None:
    """Do nothing: no change is waited for before the start."""
