"""Construction of the gateway's gRPC services and all their objects from the config, and their lifetime."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import grpc

from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.authentication import Authenticator
from umg_grpc.access.multi_worker_limit_rejection import check_models
from umg_grpc.base.errors import UmgError
from umg_grpc.base.inprocess_channel import InProcessChannel, InProcessServer
from umg_grpc.base.refused_request import RefusedRequest
from umg_grpc.config import Config
from umg_grpc.config.config_comparison import Changes, changes
from umg_grpc.config.config_hash import config_hash
from umg_grpc.operations import ADMINISTRATIVE_SERVICES, OPERATION_ROWS
from umg_grpc.process.administration_factory import AdministrativeServicers
from umg_grpc.process.alert_factory import alert_parts
from umg_grpc.process.channel_factory import ChannelFactory, LocalSource
from umg_grpc.process.component_factory import (
    ProcessContext,
    closed,
    open_authenticator,
    open_memory,
    open_process_context,
    open_token_authenticator,
    people_sign_on,
    started,
)
from umg_grpc.process.config_state import ConfigState
from umg_grpc.process.guard_factory import GuardFactory
from umg_grpc.process.operation_factory import OperationServicers, video_tasks
from umg_grpc.process.service_gauges import watch_channels, watch_stores
from umg_grpc.routing import Router
from umg_grpc.service.caching.provider_stored_prompts import StoredPrompts
from umg_grpc.service.caching.response_cache_lookup import CacheLookup
from umg_grpc.service.caching.stored_prompt_sharing import StoredPromptTable
from umg_grpc.service.channels.channel_override_table import ChannelOverrideTable, SuccessfulCheck
from umg_grpc.service.channels.channel_source import RunningChannels
from umg_grpc.service.channels.current_overrides import CurrentOverrides
from umg_grpc.service.channels.set_price_table import SetPriceTable
from umg_grpc.service.metric_gauges import CONFIG_INFO
from umg_grpc.service.model_discovery import ModelDiscovery
from umg_grpc.service.operations.generate.conversation_stores import ConversationStores
from umg_grpc.service.pipeline.attempt_observers import attempt_observers
from umg_grpc.service.pipeline.base_pipeline import PipelineContext
from umg_grpc.service.pipeline.call_interceptor import CallInterceptor
from umg_grpc.service.pipeline.call_log import CallLog
from umg_grpc.service.pipeline.early_response_headers import SlowStarts
from umg_grpc.service.pipeline.refused_call_records import record_http_refusal
from umg_grpc.service.resilience.channel_protection import Resilience
from umg_grpc.service.resilience.learned_quirk_sharing import LearnedQuirkTable
from umg_grpc.service.resilience.learned_quirks import LearnedQuirks
from umg_grpc.service.resilience.load_shedding import LoadShedder
from umg_grpc.service.service_metrics import Metrics
from umg_grpc.service.servicers.channel_health_report import ChannelReport, override_message
from umg_grpc.service.servicers.files import FileServicer
from umg_grpc.service.servicers.models import ModelServicer
from umg_grpc.service.sign_on.people_sign_on import PeopleSignOn
from umg_grpc.service.stored_model_lists import list_states
from umg_grpc.service.telemetry.telemetry_interface import Telemetry
from umg_grpc.service.unpriced_models import UnpricedModels
from umg_grpc.store import Store, open_store
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.local.wordllama import WordLlamaEngine
from umg_grpc.v1 import pb, rpc

SERVICE_NAMES = sorted(
    {
        *(f"umg.v1.{name}" for name in (*ADMINISTRATIVE_SERVICES, "FileService", "ModelService")),
        *(r.full_service for r in OPERATION_ROWS),
    }
)
JOURNAL_NAME = "journal"


class PreparedConfig(NamedTuple):
    """Parts of a new config that take long to build, so that they are built in a thread before a reload."""

    config: Config
    """The config with the models that its providers list."""
    router: Router
    config_hash: str
    """Hash of the config, without the models that its providers list."""
    version: int
    """Version of the overrides and set prices that the router has."""


class Service:
    """All gRPC services of the gateway with their interceptors, for calls over a socket and in process."""

    def __init__(
        self,
        config: Config,
        store: Store,
        authenticator: Authenticator,
        channel_factory: ChannelFactory,
        memory: ConversationStores,
        local: LocalSource | None,
        process: ProcessContext,
        client: Client,
        sign_on: PeopleSignOn,
    ) -> None:
        self.store = store
        self.sign_on = sign_on
        self.metrics = process.metrics
        self.authenticator = authenticator
        self._call_log = CallLog(self.metrics, process.usage, process.telemetry, process.key_uses)
        self._slow_starts = SlowStarts(config.stream_headers_after)
        self.interceptor = CallInterceptor(self._call_log, authenticator, process.load_shedder, self._slow_starts)
        self.config_state = ConfigState(config, os.environ, store.clock.now)
        self._config = self._started_config = config
        self._counts_alone = process.counts_alone
        self.fetcher = process.fetcher
        self.blobs, self.links = process.blobs, process.links
        self._channel_factory = channel_factory
        self._local = local
        self.overrides = CurrentOverrides(
            ChannelOverrideTable(store), SetPriceTable(store), self._take_overrides, self._take_check
        )
        self._discovery = ModelDiscovery(process.model_lists, self.metrics, self.overrides.is_disabled)
        router = self._router_of(self._discovery.configure(config))
        self._channels = channels = channel_factory.channels(config, router)
        self._discovery.connect(channels.providers)
        self._config_hash = config_hash(config)
        self._routing = asyncio.Lock()  # one router is built at a time, of the newest lists
        self._shared = shared = Resilience(config, process.failures, now=store.clock.now)
        observers = attempt_observers(self.metrics, shared, has_spans=process.telemetry is not None)
        cache = CacheLookup(process.cache, self.metrics, channels)
        self.unpriced = UnpricedModels(channels, self.metrics)
        context = PipelineContext(
            *(channels, process.limits, config.body_limit, shared, observers, cache, process.usage),
            note_unpriced=self.unpriced.note,
        )
        self.stored_prompts = StoredPrompts(process.usage, self.metrics.count_storage, store.clock.now)
        self.prompt_table = StoredPromptTable(store, self.stored_prompts)
        self.tasks = video_tasks(config, store, channels, process)
        self._operations = OperationServicers(
            *(config, context, process, memory, self.stored_prompts, self.tasks),
        )
        self._models = ModelServicer(channels, process.failures.read_unknown_models)

        report = ChannelReport(
            *(channels, shared.health.snapshot, process.failures.read),
            lambda: list_states(self._config, process.model_lists),
            self._override_messages,
        )
        running = RunningChannels(
            *(channels, shared, process.failures, self.overrides),
            *(self._discovery.extended, process.model_lists),
        )
        self.alerts = alert_parts(
            *(config, store, process.task_process, client, shared, lambda: channels.router),
            is_disabled=self.overrides.is_disabled,
        )
        self._files = FileServicer(process.links, process.blobs)
        self._administration = AdministrativeServicers(
            *(
                store,
                report,
                running,
                self.alerts.servicer,
                self.tasks.context,
                config.sign_on.sessions,
                self.config_state,
            ),
            refuses_limits=process.counts_alone,
        )
        self._dependencies = process.dependencies
        self._usage = process.usage
        self.metrics.watch(CONFIG_INFO, lambda: {(self._config_hash,): 1})
        watch_channels(self.metrics, shared, channels, self.overrides)
        watch_stores(process, store, authenticator, memory)

    def register(self, server: grpc.aio.Server) -> None:
        """Add all gRPC services to a `grpc.aio` server."""
        self._operations.register(server)
        rpc.add_ModelServiceServicer_to_server(self._models, server)
        self._administration.register(server)
        rpc.add_FileServiceServicer_to_server(self._files, server)

    def channel(self) -> InProcessChannel:
        """Return a channel for calls of these services in the same process."""
        interceptor = CallInterceptor(self._call_log, self.authenticator, slow_starts=self._slow_starts)
        server = InProcessServer([interceptor])
        self.register(server)
        return InProcessChannel(server)

    @property
    def learned_quirks(self) -> LearnedQuirks:
        """Restrictions of providers' models that refusals have shown."""
        return self._shared.learned

    @property
    def router(self) -> Router:
        """Router of the current config, which includes the models discovered at providers so far."""
        return self._channels.router

    def key_fields(self, authorization: str) -> Mapping[str, str]:
        """Return the log fields for the API key in `authorization` metadata; empty for a key that is not in memory."""
        scheme, _, secret = authorization.partition(" ")
        found = self.authenticator.reference(secret.strip()) if scheme.lower() == "bearer" else None
        return {} if found is None else {"key": found.key_id, "key_prefix": found.prefix}

    def note_refused(self, request: RefusedRequest) -> None:
        """Record a request that the HTTP server refused, unless the operator disabled usage records."""
        if self._usage is not None:
            key_id = self.key_fields(request.authorization).get("key", "")
            record_http_refusal(self._usage.refused, request, key_id)

    def check(self, config: Config) -> None:
        """Raise UmgError(INVALID_FIELD) for a config with limits that this process would count alone."""
        if self._counts_alone:
            check_models(config.models)

    def prepare(self, config: Config) -> "PreparedConfig":
        """Build the parts of a config that take long, about a millisecond for each model. Call this in a thread."""
        extended, version = self._discovery.preview(config), self.overrides.version
        return PreparedConfig(extended, self._router_of(extended), config_hash(config), version)

    def reload(self, config: Config, prepared: "PreparedConfig | None" = None) -> Changes:
        """Apply the channels, models and other reloadable settings of a new config to calls that start later.
        `prepared`: result of `prepare`. Return the changed settings, some of which need a restart. Raise OSError if a
        file that the config names cannot be read.
        """
        prepared = prepared or self.prepare(config)
        channels = self._channel_factory.channels(config, prepared.router)
        extended = self._discovery.configure(config)
        self._discovery.connect(channels.providers)
        is_same = extended is prepared.config or extended == prepared.config  # else a list was read meanwhile
        if not is_same or prepared.version != self.overrides.version:
            channels.router = self._router_of(extended)
        self._channels.replace(channels)
        self._shared.take(config)
        self.fetcher.configure(config.egress)
        self.alerts.configure(config)
        found = changes(self._started_config, self._config, config)
        self._config, self._config_hash = config, prepared.config_hash
        self.config_state.loaded(config)
        return found

    async def start(self) -> None:
        """Start the background tasks: video tasks, model discovery. Wait a bounded time for the first model lists."""
        self.tasks.start()
        self.alerts.start()
        await self._discovery.start(self._take_router)

    async def wait_listed(self, seconds: float) -> None:
        """Wait at most `seconds` for the first model lists. Do not wait if models of all channels are known already."""
        await self._discovery.wait_listed(seconds)

    async def aclose(self) -> None:
        """Finish the submissions of video tasks in flight, then stop the background tasks of the services."""
        await self._discovery.aclose()
        await self.alerts.aclose()
        await self._operations.aclose()
        await self.tasks.aclose()

    def _router_of(self, config: Config) -> Router:
        """Build the router of a config with the overrides of its channels, and the set prices."""
        return self._channel_factory.router(self.overrides.in_force(config))

    async def _take_router(self) -> None:
        """Build and use a router of the newest lists, overrides and prices."""
        async with self._routing:
            config = self._config
            router = await asyncio.to_thread(self._router_of, self._discovery.extended())
            if self._config is config:  # else a reload has built one of the newest
                self._channels.router = router

    def _override_messages(self) -> list[pb.ChannelOverride]:
        return [override_message(each, self._config.channels) for each in self.overrides.overrides.values()]

    async def _take_overrides(self) -> None:
        await self._take_router()
        self._discovery.refresh()

    def _take_check(self, check: SuccessfulCheck) -> None:
        self._shared.check_succeeded(check.channel, check.model)
        self.alerts.outages.wake()

    def cut_off(self) -> None:
        """Cancel the calls over gRPC that still run at the end of the drain time, with the error of a shutdown."""
        self.interceptor.cut_off()

    def problems(self) -> tuple[str, ...]:
        """Return a text for each dependency that does not answer. Calls with keys in memory are still served then."""
        return tuple(each.problem for each in self._dependencies if not each.is_up)

    def unfit(self) -> tuple[str, ...]:
        """Return a text for operators for each reason why other replicas should get this process's calls. Its clock
        differs from that of the database, or its journal cannot take usage records.
        """
        journal = self._usage.problem if self._usage is not None else ""
        found = (self.store.clock.problem, f"{JOURNAL_NAME}: {journal}" if journal else "")
        return tuple(reason for reason in found if reason)

    async def unready(self) -> str:
        """Return why no channel can be called yet, for example since the local model is starting; "" if one can."""
        channels = self._config.channels
        if not channels:
            return "the config has no channel that can be served here"
        if any("local" not in channel.protocols for channel in channels) or self._local is None:
            return ""
        try:
            await self._local.wait_ready(0)
        except UmgError:
            return "the local model is starting"
        return ""


@asynccontextmanager
async def open_service(
    config: Config,
    data: Path,
    local: LocalSource | None,
    metrics: Metrics | None = None,
    load_shedder: LoadShedder | None = None,
    telemetry: Telemetry | None = None,
    *,
    counts_alone: bool = False,
    first_secret: str | None = None,
) -> AsyncGenerator[Service, None]:
    """Open the database and build the services of a config. Yield the services, which are closed at the end of the
    block. `metrics`, `load_shedder`, `telemetry`: objects of the process, if any; `counts_alone`: other processes serve
    the same callers without a Redis, so that limits are rejected; `first_secret`: of the bootstrap key, None if it is
    unknown here. Raise StoreError for an unusable database, OSError for an unusable data directory or file.
    """
    async with AsyncExitStack() as stack:
        store = await open_store(config.database, data)
        stack.push_async_callback(store.aclose)
        client = await stack.enter_async_context(Client.opened())
        tokens = open_token_authenticator(config, store, client, stack)
        authenticator = await open_authenticator(
            config, store, tokens, stack, counts_alone=counts_alone, first=first_secret
        )
        engine = closed(WordLlamaEngine(), stack)
        memory = await open_memory(config, store, data, stack)
        load_shedder, metrics = load_shedder or LoadShedder(config.overload), metrics or Metrics()
        process = await open_process_context(
            *(config, store, data, stack, metrics, load_shedder, telemetry), counts_alone=counts_alone
        )
        factory = ChannelFactory(
            *(client, engine, local, process.response_budget, process.fetcher, store.clock.now),
            process.metrics.count_credential_read,
            GuardFactory(client, process.metrics.count_guard, stack),
        )
        sign_on = people_sign_on(config, store, data, client, tokens, lambda: process.links.base_url)
        service = Service(config, store, authenticator, factory, memory, local, process, client, sign_on)
        stack.push_async_callback(service.aclose)
        await started(LearnedQuirkTable(store, service.learned_quirks), stack).load()
        started(service.prompt_table, stack)
        await started(service.overrides, stack).load()
        await service.start()
        service.unpriced.log()
        await service.unpriced.name_keys(ApiKeys(store), data)
        yield service
