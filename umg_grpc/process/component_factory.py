"""Factory of the components that all calls share (stores, usage log), built from the config and closed at the end of
the process.
"""

from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from umg_grpc.access.api_keys import Keys
from umg_grpc.access.authentication import Authenticator
from umg_grpc.access.key_limits import KeyLimits
from umg_grpc.access.per_worker_limit_checks import LimitedKeys
from umg_grpc.access.usage_record_writer import UsageLog
from umg_grpc.config import Config
from umg_grpc.service.conversations.message_threads import Threads
from umg_grpc.service.conversations.reasoning_store import ReasoningStore
from umg_grpc.service.conversations.stored_responses import Conversations
from umg_grpc.service.metric_gauges import BLOB_STORE
from umg_grpc.service.metrics import Metrics
from umg_grpc.service.operations.generate.conversation_stores import ConversationStores
from umg_grpc.store import Store
from umg_grpc.store.blob_backend_selection import blob_place
from umg_grpc.store.blob_store import BlobStore
from umg_grpc.store.database_time import utc_of
from umg_grpc.store.expired_row_sweep import Bounds
from umg_grpc.store.process_locks import USAGE_DIRECTORY, count_running
from umg_grpc.store.redis_client import Redis
from umg_grpc.store.redis_presence import Presence
from umg_grpc.wire.core.stream_memory_limits import MAX_RETAINED_BYTES, Budget


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
    """Start the background work of a component, and register the component to be closed by the exit stack. Return the
    component.
    """
    part.start()
    return closed(part, stack)


async def open_authenticator(
    config: Config, store: Store, stack: AsyncExitStack, *, counts_alone: bool, first: str | None
) -> Authenticator:
    """Open the authenticator, which has read the keys once. `counts_alone`: whether limits are rejected, since other
    processes serve the same callers without a Redis; `first`: secret of the bootstrap key, None if it is unknown here.
    """
    authenticator = Authenticator(
        Keys(store),
        now=store.clock.now,
        note=LimitedKeys().note if counts_alone else lambda _: None,
        max_stale=config.keys.max_stale,
        permanent=[first] if first else [],
    )
    await authenticator.start()
    return closed(authenticator, stack)


def open_key_limits(redis: Redis | None, data: Path, stack: AsyncExitStack) -> KeyLimits:
    """Return the limits of keys and models. With Redis each process counts the others, for its share of the limits
    while Redis is unavailable; until Redis has answered it counts those with the same data folder.
    """
    if redis is None:
        return closed(KeyLimits(), stack)
    presence = started(Presence(redis, lambda: count_running(data / USAGE_DIRECTORY)), stack)
    return closed(KeyLimits(redis=redis, processes=lambda: presence.processes), stack)


async def open_memory(config: Config, store: Store, stack: AsyncExitStack) -> ConversationStores:
    """Open the stores of responses, threads and reasoning, whose data outlives a call. The data of one key may use at
    most half of each size limit in the config.
    """
    storage = config.responses
    conversations = threads = None
    if storage.enabled:
        bounds = Bounds(owner_bytes=storage.max_bytes // 2, total_bytes=storage.max_bytes)
        conversations = started(Conversations(store, lifetime=timedelta(seconds=storage.ttl), bounds=bounds), stack)
        threads = started(Threads(store, bounds=bounds, max_bytes=config.body_limit), stack)
    reasoning_config = config.reasoning
    # an answer larger than the storage limit is not aggregated at all
    budget = Budget(min(MAX_RETAINED_BYTES, storage.max_bytes // 2) if storage.enabled else MAX_RETAINED_BYTES)
    if not reasoning_config.enabled:
        return ConversationStores(conversations, threads, budget=budget)
    reasoning = ReasoningStore(
        store,
        lifetime=timedelta(seconds=reasoning_config.ttl),
        memory_bytes=reasoning_config.max_bytes,
        bounds=Bounds(owner_bytes=reasoning_config.max_bytes // 2, total_bytes=reasoning_config.max_bytes),
    )
    return ConversationStores(conversations, threads, started(reasoning, stack), budget)


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
    """Open the store of result files, which the exit stack closes; None if the operator disabled it. Raise StoreError
    for a bucket that cannot be used.
    """
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
