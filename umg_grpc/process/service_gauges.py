"""Registration of gauges that read their values from a process's services: channels, stores and availability."""

from functools import partial

from umg_grpc.access.authentication import Authenticator
from umg_grpc.access.usage_record_writer import UsageLog
from umg_grpc.process.component_factory import DATABASE_NAME, REDIS_NAME, ProcessContext
from umg_grpc.service.caching.response_cache import ResponseCache
from umg_grpc.service.channels.current_overrides import CurrentOverrides
from umg_grpc.service.conversations.message_threads import Threads
from umg_grpc.service.conversations.reasoning_store import ReasoningStore
from umg_grpc.service.conversations.stored_responses import Conversations
from umg_grpc.service.metric_gauges import (
    CHANNEL_DISABLED,
    CHANNEL_PAUSED_KEYS,
    CHANNEL_QUEUE,
    CLOCK_SKEW,
    DATABASE_UP,
    JOURNAL_UP,
    KNOWN_KEYS,
    REDIS_UP,
    WRITES_WAITING,
)
from umg_grpc.service.operations.generate.conversation_stores import ConversationStores
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.resilience.channel_protection import Resilience
from umg_grpc.service.service_metrics import Metrics, Values
from umg_grpc.store import Store
from umg_grpc.store.availability_checks import Availability


def watch_channels(metrics: Metrics, shared: Resilience, channels: Channels, overrides: CurrentOverrides) -> None:
    """Register the gauges of channels, their queues and their keys."""
    metrics.watch_channels(shared.health.snapshot, overrides.is_disabled)
    metrics.watch(CHANNEL_DISABLED, lambda: {(name,): 1.0 for name in overrides.disabled})
    metrics.watch(CHANNEL_QUEUE, lambda: {(name,): limiter.waiting for name, limiter in shared.limiters.items()})
    metrics.watch(CHANNEL_PAUSED_KEYS, lambda: {(name,): count() for name, count in channels.suspended_keys.items()})


def watch_stores(
    process: ProcessContext, store: Store, authenticator: Authenticator, memory: ConversationStores
) -> None:
    """Register the gauges of the database, of Redis, and of the writes that wait for them."""
    metrics, usage = process.metrics, process.usage
    levels = {DATABASE_NAME: DATABASE_UP, REDIS_NAME: REDIS_UP}
    for each in process.dependencies:
        metrics.watch(levels[each.name], partial(_up, each))
    metrics.watch(CLOCK_SKEW, lambda: {(): store.clock.skew_seconds})
    if usage is not None:
        metrics.watch(JOURNAL_UP, lambda: {(): float(not usage.problem)})
    stores: dict[str, Conversations | Threads | ReasoningStore | UsageLog | ResponseCache | None] = {
        "responses": memory.conversations,
        "threads": memory.threads,
        "reasoning": memory.reasoning,
        "usage": usage,
        "redis": process.cache if process.redis is not None else None,
    }
    metrics.watch(KNOWN_KEYS, lambda: {(): authenticator.known})
    used = {name: each for name, each in stores.items() if each is not None}
    metrics.watch(WRITES_WAITING, lambda: {(name,): each.waiting_writes for name, each in used.items()})


def _up(dependency: Availability) -> Values:
    return {(): float(dependency.is_up)}
