"""Factory of the components that all calls share (stores, limits, usage log), closed at the end of the process."""

import secrets
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.authentication import Authenticator
from umg_grpc.access.callback_signatures import CallbackSignatures
from umg_grpc.access.conversation_summary_seals import SummarySeals
from umg_grpc.access.issuer_roles import IssuerRoles
from umg_grpc.access.key_last_use import KeyUses
from umg_grpc.access.key_limits import KeyLimits
from umg_grpc.access.multi_worker_limit_rejection import LimitedKeys
from umg_grpc.access.sessions import UserSessions
from umg_grpc.access.signed_file_links import FileLinks
from umg_grpc.access.signing_secret import link_secret
from umg_grpc.access.token_authentication import TokenAuthenticator
from umg_grpc.access.token_callers import TokenCallerRows
from umg_grpc.access.usage_record_writer import UsageLog
from umg_grpc.access.users import Users
from umg_grpc.config import Config
from umg_grpc.service.caching.response_cache import ResponseCache
from umg_grpc.service.conversations.message_threads import Threads
from umg_grpc.service.conversations.reasoning_store import ReasoningStore
from umg_grpc.service.conversations.stored_responses import Conversations
from umg_grpc.service.metric_gauges import BLOB_STORE
from umg_grpc.service.operations.generate.conversation_stores import ConversationStores
from umg_grpc.service.resilience.load_shedding import LoadShedder
from umg_grpc.service.service_metrics import Metrics
from umg_grpc.service.sign_on.issuer_requests import IssuerRequests
from umg_grpc.service.sign_on.people_sign_on import PeopleSignOn
from umg_grpc.service.sign_on.sign_in_attempts import AttemptCodec
from umg_grpc.service.telemetry.telemetry_interface import Telemetry
from umg_grpc.service.video_tasks.task_background_worker import TASKS_DIRECTORY
from umg_grpc.store import Store
from umg_grpc.store.availability_checks import Availability
from umg_grpc.store.blob_backend_selection import blob_place
from umg_grpc.store.blob_store import BlobStore
from umg_grpc.store.channel_failure_file import ChannelFailures
from umg_grpc.store.database_time import utc_of
from umg_grpc.store.expired_row_sweep import Bounds
from umg_grpc.store.process_locks import USAGE_DIRECTORY, ProcessLocks, count_running
from umg_grpc.store.provider_model_list_files import ModelListFiles
from umg_grpc.store.redis_client import Redis
from umg_grpc.store.redis_process_count import Presence
from umg_grpc.upstream.caller_url_fetch import Fetcher
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.response_memory_budget import ResponseBudget
from umg_grpc.wire.core.stream_memory_limits import MAX_RETAINED_BYTES, StreamMemory

DATABASE_NAME, REDIS_NAME = "database", "redis"


class ProcessContext(NamedTuple):
    """Objects of the process that services share, for example metrics, Redis, limits, failures and usage records."""

    metrics: Metrics
    load_shedder: LoadShedder
    redis: Redis | None
    cache: ResponseCache
    limits: KeyLimits
    dependencies: Sequence[Availability]
    failures: ChannelFailures
    usage: UsageLog | None
    key_uses: KeyUses
    telemetry: Telemetry | None
    fetcher: Fetcher
    response_budget: ResponseBudget
    blobs: BlobStore | None
    links: FileLinks
    signatures: CallbackSignatures
    task_locks: ProcessLocks
    task_process: str
    """Name of this process as the holder of leases on tasks."""
    model_lists: ModelListFiles
    counts_alone: bool
    """Whether other processes serve the same callers without a common Redis."""


class Closing(Protocol):
    """Component with a coroutine method `aclose`, which has to be awaited before the process ends."""

    async def aclose(self) -> None: ...


class BackgroundPart(Closing, Protocol):
    """Component that works in the background from `start` to `aclose`."""

    def start(self) -> None: ...


ClosingT = TypeVar("ClosingT", bound=Closing)
BackgroundT = TypeVar("BackgroundT", bound=BackgroundPart)


def closed(part: ClosingT, stack: AsyncExitStack) -> ClosingT:
    """Register a component to be closed by the exit stack. Return the component."""
    stack.push_async_callback(part.aclose)
    return part


def started(part: BackgroundT, stack: AsyncExitStack) -> BackgroundT:
    """Start a component's background work, and register it to be closed by the exit stack. Return the component."""
    part.start()
    return closed(part, stack)


def open_token_authenticator(config: Config, store: Store, client: Client, stack: AsyncExitStack) -> TokenAuthenticator:
    """Open the authenticator of the tokens of issuers, to which `client` sends requests."""
    fetch, rows = IssuerRequests(client, config.proxies), TokenCallerRows(store)
    return closed(TokenAuthenticator(config.sign_on, fetch, rows, IssuerRoles(store), store.clock.now), stack)


async def open_authenticator(
    config: Config,
    store: Store,
    tokens: TokenAuthenticator,
    stack: AsyncExitStack,
    *,
    counts_alone: bool,
    first: str | None,
) -> Authenticator:
    """Open the authenticator, which has read the keys once. `tokens`: authenticator of issuers' tokens; `counts_alone`:
    limits are rejected, since other processes serve the same callers without a Redis; `first`: secret of the bootstrap
    key, None if it is unknown here.
    """
    authenticator = Authenticator(
        ApiKeys(store),
        now=store.clock.now,
        note=LimitedKeys().note if counts_alone else lambda _: None,
        max_stale=config.keys.max_stale,
        permanent=[first] if first else [],
        tokens=tokens,
        sessions=UserSessions(store, config.sign_on.sessions),
    )
    await authenticator.start()
    return closed(authenticator, stack)


def people_sign_on(
    config: Config, store: Store, data: Path, client: Client, tokens: TokenAuthenticator, base_url: Callable[[], str]
) -> PeopleSignOn:
    """Return the sign-on of people. `tokens`: verifies those of issuers; `base_url`: returns the URL of the gateway for
    browsers. Raise OSError for an unusable data directory.
    """
    return PeopleSignOn(
        tokens.issuers.values(),
        IssuerRequests(client, config.proxies),
        UserSessions(store, config.sign_on.sessions),
        Users(store),
        IssuerRoles(store),
        AttemptCodec(link_secret(config.secret, data), config.accepted_secrets),
        base_url,
    )


def open_key_limits(redis: Redis | None, data: Path, stack: AsyncExitStack) -> KeyLimits:
    """Return the limits of keys and models. With Redis, each process counts the processes, to have its share of the
    limits while Redis is unavailable. Until Redis has answered, these are the processes with the same data folder.
    """
    if redis is None:
        return closed(KeyLimits(), stack)
    presence = started(Presence(redis, lambda: count_running(data / USAGE_DIRECTORY)), stack)
    return closed(KeyLimits(redis=redis, processes=lambda: presence.processes), stack)


async def open_memory(config: Config, store: Store, data: Path, stack: AsyncExitStack) -> ConversationStores:
    """Open the stores of responses, threads and reasoning, whose data outlives a call, and the seals of summaries. The
    data of one key may use at most half of each size limit in the config. Raise OSError for an unusable data directory.
    """
    storage = config.responses
    seals = SummarySeals(link_secret(config.secret, data), config.accepted_secrets)
    conversations = threads = None
    if storage.enabled:
        bounds = Bounds(owner_bytes=storage.max_bytes // 2, total_bytes=storage.max_bytes)
        conversations = started(Conversations(store, lifetime=timedelta(seconds=storage.ttl), bounds=bounds), stack)
        threads = started(Threads(store, bounds=bounds, max_bytes=config.body_limit), stack)
    reasoning_config = config.reasoning
    # a response larger than the storage limit is not aggregated at all
    budget = StreamMemory(min(MAX_RETAINED_BYTES, storage.max_bytes // 2) if storage.enabled else MAX_RETAINED_BYTES)
    if not reasoning_config.enabled:
        return ConversationStores(conversations, threads, budget=budget, seals=seals)
    reasoning = ReasoningStore(
        store,
        lifetime=timedelta(seconds=reasoning_config.ttl),
        memory_bytes=reasoning_config.max_bytes,
        bounds=Bounds(owner_bytes=reasoning_config.max_bytes // 2, total_bytes=reasoning_config.max_bytes),
    )
    return ConversationStores(conversations, threads, started(reasoning, stack), budget, seals)


def open_usage_log(
    config: Config, store: Store, data: Path, metrics: Metrics, stack: AsyncExitStack
) -> UsageLog | None:
    """Open the usage log, which the exit stack closes; None if the operator disabled it."""
    if not config.usage.enabled:
        return None
    log = UsageLog(
        *(store, data, config.usage, partial(utc_of, store.clock)),
        count_lost=metrics.count_lost_records,
        count_deleted_early=metrics.count_records_deleted_early,
    )
    return started(log, stack)


def open_blob_store(
    config: Config, store: Store, data: Path, metrics: Metrics, stack: AsyncExitStack
) -> BlobStore | None:
    """Open the store of result files; None if the operator disabled it. Raise StoreError for an unusable bucket."""
    storage = config.blobs
    if not storage.enabled:
        return None
    place = blob_place(storage.url, storage.endpoint, data)
    blobs = started(
        BlobStore(
            place, ttl=storage.ttl, max_bytes=storage.max_bytes, clock=store.clock, count=metrics.count_blob_bytes
        ),
        stack,
    )
    metrics.watch(BLOB_STORE, lambda: {(): float(blobs.size_bytes)})
    return blobs


async def open_process_context(
    config: Config,
    store: Store,
    data: Path,
    stack: AsyncExitStack,
    metrics: Metrics,
    load_shedder: LoadShedder,
    telemetry: Telemetry | None,
    *,
    counts_alone: bool,
) -> ProcessContext:
    """Open the objects of the process that the services share, which the exit stack closes. Raise StoreError for a
    bucket that cannot be used, OSError for an unusable data directory.
    """
    redis = await stack.enter_async_context(Redis.opened(config.redis)) if config.redis is not None else None
    cache = closed(ResponseCache(config.cache_bytes, redis, store.clock.now), stack)
    dependencies = [started(Availability(DATABASE_NAME, store.check), stack)]
    if redis is not None:
        dependencies.append(started(Availability(REDIS_NAME, redis.check), stack))
    limits = open_key_limits(redis, data, stack)
    failures = started(ChannelFailures(data), stack)
    usage = open_usage_log(config, store, data, metrics, stack)
    key_uses = started(KeyUses(ApiKeys(store), skew=lambda: store.clock.skew_seconds), stack)
    fetcher = await stack.enter_async_context(Fetcher.opened(config.egress, count=metrics.count_egress))
    secret = link_secret(config.secret, data)
    task_process = secrets.token_hex(8)
    return ProcessContext(
        *(metrics, load_shedder, redis, cache, limits, dependencies, failures, usage, key_uses, telemetry),
        fetcher=fetcher,
        response_budget=ResponseBudget(),
        blobs=open_blob_store(config, store, data, metrics, stack),
        links=FileLinks(secret, config.blobs.ttl, partial(utc_of, store.clock), config.accepted_secrets),
        signatures=CallbackSignatures(secret, config.accepted_secrets),
        task_locks=ProcessLocks(data / TASKS_DIRECTORY, task_process),
        task_process=task_process,
        model_lists=ModelListFiles(data),
        counts_alone=counts_alone,
    )
