"""Discovery of models: reads the model lists of providers at the start, and then periodically in the background."""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import structlog

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Channel, Config
from umg_grpc.knowledge.preset_model_lists import vendor_models
from umg_grpc.operations.provider_protocols_by_name import model_list
from umg_grpc.routing.discovered_models import with_discovered
from umg_grpc.service.metric_gauges import MODEL_LIST_AGE, MODEL_LIST_SUCCESS
from umg_grpc.service.service_metrics import Metrics, Values
from umg_grpc.service.stored_model_lists import list_source
from umg_grpc.store.provider_model_list_files import ListFailure, ModelListFiles
from umg_grpc.store.repeated_background_tasks import Background
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.provider_model_list import fetch_models
from umg_grpc.v1 import pb
from umg_grpc.wire.provider_model_lists import ProviderModelList

FETCH_SECONDS = 30.0
INTERVAL_JITTER = 0.1
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
EMPTY_LIST = ListFailure("the list is empty")

logger = structlog.get_logger()


@dataclass(eq=False)
class _ChannelList:
    """Model list of a channel, with the times and failures of its reads."""

    channel: Channel
    models: Sequence[pb.Model] | None
    """Models of the last list; None as long as none is known."""
    is_awaited: bool = False
    """Whether the first models that are known of it are not served yet."""
    failures: int = 0
    """Failed reads in a row."""
    is_failure_logged: bool = False
    """Whether this process has logged a failure since the last success: of several processes, the one that reads."""
    read_at: float | None = None
    """Unix time of the last read that succeeded; None before the first one."""
    due: float = 0
    """Time of the event loop at which the list is read next; 0 for now."""
    written_at: float | None = None
    """Time of the stored list that this process has written."""


class ModelDiscovery:
    """Model lists of the channels for which the config enables discovery, read from `start` to `aclose`."""

    def __init__(
        self, files: ModelListFiles, metrics: Metrics, is_disabled: Callable[[str], bool] = lambda _: False
    ) -> None:
        """Create the discovery without channels, which `configure` sets. `files`: stored lists; `is_disabled`: returns
        whether a channel is disabled, so that its list is not read.
        """
        self._files = files
        self._is_disabled = is_disabled
        self._config = Config(channels=())
        self._providers: Mapping[str, HttpChannel] = {}
        self._lists: dict[str, _ChannelList] = {}
        self._marked: dict[str, float | None] = {}
        """Time of the stored failure that this process has written, by account."""
        self._changed: Callable[[], Awaitable[None]] = _ignore
        self._announcing = asyncio.Lock()
        self._news = self._announced = 0
        """Lists that were read and differ from the last ones, and how many of them `changed` was called for."""
        self._first = asyncio.Event()
        """Set after the first refresh."""
        self._refreshes: Background | None = None
        metrics.watch(MODEL_LIST_SUCCESS, self._successes)
        metrics.watch(MODEL_LIST_AGE, self._ages)

    def preview(self, config: Config) -> Config:
        """Return the config that `configure` would return, without changing the channels. May be called in a thread."""
        lists = {channel.name: self._models(channel) for channel in config.channels if channel.reads_list}
        return with_discovered(config, lists)

    def configure(self, config: Config) -> Config:
        """Set the channels to those of the config. Return the config with the models that are known to be in the
        channels' lists. Until the first read, for which `connect` must be called before, a list stored on disk is used.
        """
        self._config = config
        self._lists = {channel.name: self._configured(channel) for channel in config.channels if channel.reads_list}
        self.refresh()
        return self.extended()

    def connect(self, providers: Mapping[str, HttpChannel]) -> None:
        """Set the connections to the providers, by channel."""
        self._providers = providers

    def extended(self) -> Config:
        """Return the last config with the models that are known now to be in the lists of its channels."""
        return with_discovered(self._config, {name: each.models for name, each in self._lists.items()})

    def _models(self, channel: Channel) -> Sequence[pb.Model] | None:
        known = self._lists.get(channel.name)
        if known is None or known.models is None or known.channel.base_url != channel.base_url:
            return self._files.read(channel.name, channel.base_url)
        return known.models

    def _configured(self, channel: Channel) -> _ChannelList:
        """Return the list of a channel of a new config, to be read now after a failed read or a change of address."""
        models, known = self._models(channel), self._lists.get(channel.name)
        if known is None:
            return _ChannelList(channel, models)
        if known.channel.base_url != channel.base_url:
            return _ChannelList(channel, models, failures=known.failures, is_failure_logged=known.is_failure_logged)
        known.channel, known.models = channel, models
        if known.failures:
            known.due = 0
        return known

    async def start(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Read all lists now, and then periodically in the background. Return at once if all these channels have a
        stored list. Otherwise return when all lists were read, or after the time limit in the config. `changed`: called
        after each refresh in which a list has changed.
        """
        self._changed = changed
        self._refreshes = Background("refreshing the model lists of providers", self._read_due)
        lists = self._lists.values()
        if lists:
            self._refreshes.wake()
        if any(each.models is None for each in lists if each.channel.discovery != "preset"):
            try:
                async with asyncio.timeout(self._config.discovery.wait):
                    await self._first.wait()
            except TimeoutError:
                waiting = [name for name, each in self._lists.items() if each.read_at is None]
                logger.warning("serving while the model lists of providers are not read yet", channels=waiting)

    async def wait_listed(self, seconds: float) -> None:
        """Wait at most `seconds` until each list was read once, unless models are known of each channel."""
        unknown = (each for each in self._lists.values() if each.models is None or each.is_awaited)
        if any(not vendor_models(each.channel.provider) for each in unknown):
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._first.wait()

    def refresh(self) -> None:
        """Read the lists that are due, for example of channels that were disabled."""
        if self._refreshes is not None:
            self._refreshes.wake()

    async def aclose(self) -> None:
        """Stop reading the lists."""
        if self._refreshes is not None:
            await self._refreshes.aclose(CLOSE_SECONDS)
            self._refreshes = None

    async def _read_due(self) -> None:
        now = asyncio.get_running_loop().time()
        await self._read([each for each in self._enabled_lists() if each.due <= now])

    def _enabled_lists(self) -> list[_ChannelList]:
        return [each for name, each in self._lists.items() if not self._is_disabled(name)]

    async def _read(self, lists: Iterable[_ChannelList]) -> None:
        """Read the lists of channels at the same time. Channels of the same account share one read."""
        accounts: dict[str, list[tuple[_ChannelList, ProviderModelList]]] = {}
        for each in lists:
            if (listing := model_list(each.channel.listing_protocols)) is not None:
                accounts.setdefault(list_source(each.channel, listing), []).append((each, listing))
        await asyncio.gather(*(self._refresh(source, account) for source, account in accounts.items()))
        self._first.set()
        if self._refreshes is not None:
            now = asyncio.get_running_loop().time()
            dues = [each.due for each in self._enabled_lists()]
            self._refreshes.every = max(min(dues) - now, LEAST_PAUSE_SECONDS) if dues else None

    async def _refresh(self, source: str, account: Sequence[tuple[_ChannelList, ProviderModelList]]) -> None:
        """Read an account's model list for its channels, unless another process of the machine has just done so."""
        began = time.time()
        lists = [each for each, _ in account]
        lock = await self._lock(source)
        try:
            if await self._take_shared(source, lists, began):
                return
            name, listing = lists[0].channel.name, account[0][1]
            if (provider := self._providers.get(name)) is None:
                return
            try:
                models = await fetch_models(provider, listing, FETCH_SECONDS)
            except UmgError as error:
                models, failure = [], ListFailure(error.cause or error.message, error.facts)
            else:
                failure = EMPTY_LIST
            if self._providers.get(name) is not provider:  # a reload replaced the channel
                return
            self._marked[source] = self._files.write_failure(source, None if models else failure)
            for each in lists:
                if models:
                    await self._take(each, models)
                    name, address = each.channel.name, each.channel.base_url
                    await asyncio.to_thread(self._files.write, name, address, models)
                    each.written_at = self._files.written_at(name, address)
                else:
                    _log_failure(each, failure)
                    self._fail(each)
        finally:
            if lock is not None:
                os.close(lock)

    async def _lock(self, source: str) -> int | None:
        """Wait until no other process of the machine reads the account's lists. Return the lock file; None without."""
        for _ in range(round(FETCH_SECONDS / LOCK_PAUSE_SECONDS)):
            try:
                if (lock := self._files.try_lock(source)) is not None:
                    return lock
            except OSError:
                return None
            await asyncio.sleep(LOCK_PAUSE_SECONDS)
        return None

    async def _take_shared(self, source: str, lists: Sequence[_ChannelList], began: float) -> bool:
        """Use the account's list if another process of the machine has just read it. Return whether one has."""
        failure, first = self._files.failure(source), lists[0]
        if failure is not None and failure[0] != self._marked.get(source):
            pause = self._pause(first) / 2 if first.failures else START_SECONDS
            if failure[0] >= began - pause:
                for each in lists:
                    self._fail(each)  # without a line in the log: the other process has written it
                return True
        since = began - (START_SECONDS if first.read_at is None else self._config.discovery.interval / 2)
        for each in lists:
            written = self._files.written_at(each.channel.name, each.channel.base_url)
            if written is None or written == each.written_at or written < since:
                return False
        for each in lists:
            stored = await asyncio.to_thread(self._files.read, each.channel.name, each.channel.base_url)
            if stored is not None:
                await self._take(each, list(stored))
        return True

    async def _take(self, taken: _ChannelList, models: list[pb.Model]) -> None:
        """Set the models of a channel to a list that was read. If they have changed, announce it."""
        if taken.is_failure_logged:
            logger.info("the model list of a channel can be read again", channel=taken.channel.name)
        taken.failures, taken.is_failure_logged, taken.read_at = 0, False, time.time()
        self._set_due(taken, self._config.discovery.interval)
        if list(taken.models or ()) != models:
            taken.models, taken.is_awaited = models, taken.models is None
            await self._announce()
            taken.is_awaited = False

    async def _announce(self) -> None:
        """Call `changed` after lists were read. Lists that are read while a call of it runs share the next call."""
        self._news += 1
        news = self._news
        async with self._announcing:
            if self._announced < news:
                announced = self._news
                await self._changed()
                self._announced = announced

    def _pause(self, failed: _ChannelList) -> float:
        pause = RETRY_SECONDS * 2.0 ** min(failed.failures - 1, MAX_DOUBLINGS)
        return min(pause, self._config.discovery.interval)

    def _set_due(self, planned: _ChannelList, seconds: float) -> None:
        varied = random.uniform(1 - INTERVAL_JITTER, 1)  # noqa: S311  not for security
        planned.due = asyncio.get_running_loop().time() + seconds * varied

    def _fail(self, failed: _ChannelList) -> None:
        failed.failures += 1
        self._set_due(failed, self._pause(failed))

    def _successes(self) -> Values:
        return {(name,): float(not each.failures) for name, each in self._lists.items()}

    def _ages(self) -> Values:
        now = time.time()
        return {(name,): now - each.read_at for name, each in self._lists.items() if each.read_at is not None}


async def _ignore() -> None:
    """Do nothing on a change, before `start` sets another function."""


def _log_failure(failed: _ChannelList, failure: ListFailure) -> None:
    """Log that a list could not be read, unless the last read failed too."""
    if failed.failures:
        return
    failed.is_failure_logged = True
    logger.warning(
        "the model list of a channel could not be read; "
        + ("it is retried" if failed.models is None else "the last one stays"),
        channel=failed.channel.name,
        reason=failure.reason,
        **(failure.facts.log_fields() if failure.facts is not None else {}),
    )
