"""Discovery of models: reads the model lists of providers at the start, and then periodically in the background."""

import asyncio
import os
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
"""Interval after a list could not be read; doubled after each further failure in a row, up to the usual interval."""
MAX_DOUBLINGS = 16
START_SECONDS = 10.0
"""Age up to which a process that starts uses the lists of another one, so that of several workers one reads."""
LEAST_PAUSE_SECONDS = 1.0
LOCK_PAUSE_SECONDS = 0.2
"""Interval at which the end of another process's read is looked for."""
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
        self._failures: dict[str, int] = {}
        """Failed reads in a row."""
        self._due: dict[str, float] = {}
        """Time of the event loop at which the list is read next; absent for now."""
        self._written: dict[str, float | None] = {}
        """Time of the stored list that this process has written."""
        self._marked: dict[str, float | None] = {}
        """Time of the stored failure that this process has written, by account."""
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
        self._due = {name: due for name, due in self._due.items() if name in kept and name not in self._failures}
        self._failures = {name: count for name, count in self._failures.items() if name in addresses}
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
        requests the list has a stored one, else when all were read, but at the latest after the time limit in the
        config. `changed`: called after each refresh in which a list has changed.
        """
        self._changed = changed
        self._refreshes = Background("refreshing the model lists of providers", self._read_due)
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
        """Read the lists of all channels now."""
        await self._read(self._channels)

    async def _read_due(self) -> None:
        """Read the lists of the channels whose time has come."""
        now = asyncio.get_running_loop().time()
        await self._read([channel for channel in self._channels if self._due.get(channel.name, 0) <= now])

    async def _read(self, channels: Sequence[Channel]) -> None:
        """Read the lists of channels at the same time, that of an account once. Each list is used as soon as it is
        read.
        """
        accounts: dict[str, list[tuple[Channel, ModelList]]] = {}
        for channel in channels:
            if (listing := model_list(channel.listing_protocols)) is not None:
                accounts.setdefault(_source(channel, listing), []).append((channel, listing))
        await asyncio.gather(*(self._refresh(source, account) for source, account in accounts.items()))
        self._first.set()
        if self._refreshes is not None:
            now = asyncio.get_running_loop().time()
            dues = [self._due.get(channel.name, now) for channel in self._channels]
            self._refreshes.every = max(min(dues) - now, LEAST_PAUSE_SECONDS) if dues else None

    async def _refresh(self, source: str, account: Sequence[tuple[Channel, ModelList]]) -> None:
        """Read the model list of an account for its channels, unless another process of the machine has just done so.
        Keep the last list if the read fails or returns no model.
        """
        began = self._now()
        channels = [channel for channel, _ in account]
        lock = await self._lock(source)
        try:
            if await self._take_shared(source, channels, began):
                return
            channel, listing = account[0]
            if (provider := self._providers.get(channel.name)) is None:
                return
            try:
                models = await fetch_models(provider, listing, FETCH_SECONDS)
            except UmgError as error:
                reason, facts = error.cause or error.message, error.facts.log_fields() if error.facts else {}
                models = []
            else:
                reason, facts = "the list is empty", {}
            if self._providers.get(channel.name) is not provider:  # a reload replaced the channel
                return
            self._marked[source] = self._files.write_failure(source, "" if models else reason)
            for each in channels:
                if models:
                    await self._take(each, models)
                    await asyncio.to_thread(self._files.write, each.name, each.base_url, models)
                    self._written[each.name] = self._files.written_at(each.name, each.base_url)
                else:
                    self._fail(each.name, reason, facts)
        finally:
            if lock is not None:
                os.close(lock)

    async def _lock(self, source: str) -> int | None:
        """Wait until no other process of the machine reads the lists of an account. Return the descriptor of the lock
        file; None if there is none, or if another process takes too long.
        """
        for _ in range(round(FETCH_SECONDS / LOCK_PAUSE_SECONDS)):
            try:
                if (lock := self._files.try_lock(source)) is not None:
                    return lock
            except OSError:
                return None
            await asyncio.sleep(LOCK_PAUSE_SECONDS)
        return None

    async def _take_shared(self, source: str, channels: Sequence[Channel], began: float) -> bool:
        """Use the result of another process of the machine that has read the lists of an account lately. Return whether
        there is one. `began`: Unix time at which this process wanted to read them.
        """
        failure, first = self._files.failure(source), channels[0].name
        if failure is not None and failure[0] != self._marked.get(source):
            pause = self._pause(first) / 2 if first in self._failures else START_SECONDS
            if failure[0] >= began - pause:
                for channel in channels:
                    self._fail(channel.name, failure[1], {})
                return True
        since = began - (self._config.discovery.interval / 2 if first in self._times else START_SECONDS)
        for channel in channels:
            written = self._files.written_at(channel.name, channel.base_url)
            if written is None or written == self._written.get(channel.name) or written < since:
                return False
        for channel in channels:
            stored = await asyncio.to_thread(self._files.read, channel.name, channel.base_url)
            if stored is not None:
                await self._take(channel, list(stored))
        return True

    async def _take(self, channel: Channel, models: list[pb.Model]) -> None:
        """Use a list that was read."""
        name = channel.name
        if self._failures.pop(name, 0):
            logger.info("the model list of a channel can be read again", channel=name)
        self._times[name] = self._now()
        self._set_due(name, self._config.discovery.interval)
        if list(self._lists.get(name, ())) != models:
            self._lists[name] = models
            await self._changed()

    def _pause(self, name: str) -> float:
        """Return the seconds from a failed read of a channel's list, the last of several in a row, to the next one."""
        pause = RETRY_SECONDS * 2.0 ** min(self._failures[name] - 1, MAX_DOUBLINGS)
        return min(pause, self._config.discovery.interval)

    def _set_due(self, name: str, seconds: float) -> None:
        """Plan the next read of a channel's list after `seconds`, a little earlier at random."""
        self._due[name] = asyncio.get_running_loop().time() + seconds * (1 - JITTER * self._vary())

    def _fail(self, name: str, reason: str, facts: Mapping[str, str | int | None]) -> None:
        """Record that the list of the channel `name` could not be read, and log the `reason` unless the last read
        failed too.
        `facts`: further fields of the log line.
        """
        if name not in self._failures:
            has_list = name in self._lists
            logger.warning(
                "the model list of a channel could not be read; "
                + ("the last one stays" if has_list else "it is retried"),
                channel=name,
                reason=reason,
                **facts,
            )
        self._failures[name] = self._failures.get(name, 0) + 1
        self._set_due(name, self._pause(name))

    def _successes(self) -> Values:
        return {(channel.name,): float(channel.name not in self._failures) for channel in self._channels}

    def _ages(self) -> Values:
        now = self._now()
        return {
            (channel.name,): now - self._times[channel.name]
            for channel in self._channels
            if channel.name in self._times
        }


async def _ignore() -> None:
    """Do nothing: no change is waited for before the start."""


def _source(channel: Channel, listing: ModelList) -> str:
    """Return a text that identifies the list of an account, with its keys: the caller stores a hash of it only."""
    return "\0".join((channel.base_url, listing.path, repr(channel.auth), *channel.api_keys))
