"""Puts the service together from the config, and serves it over gRPC. Nothing else builds anything."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple, Self

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from umg_grpc.access.authenticate import Authenticator
from umg_grpc.access.keys import Keys
from umg_grpc.access.limits import RequestLimits
from umg_grpc.assembly import Assembly, LocalSource
from umg_grpc.config import Config
from umg_grpc.errors import UmgError
from umg_grpc.inprocess import InProcessChannel, InProcessServer, Interceptor
from umg_grpc.routing import EMBED, RERANK
from umg_grpc.service.admission import Admission
from umg_grpc.service.answers import Memory
from umg_grpc.service.conversations import Conversations
from umg_grpc.service.embeddings import EmbeddingServicer
from umg_grpc.service.gate import Gate, Gating
from umg_grpc.service.generation import GenerationServicer
from umg_grpc.service.interceptors import Authenticating, Observing
from umg_grpc.service.kept import Kept
from umg_grpc.service.metrics import CHANNEL_KEYS_RESTING, CHANNEL_QUEUE, Metrics
from umg_grpc.service.models import ModelServicer
from umg_grpc.service.reranking import RerankServicer
from umg_grpc.service.resilience import Resilience
from umg_grpc.service.response_cache import ResponseCache
from umg_grpc.service.threads import Threads
from umg_grpc.service.unary import Unary
from umg_grpc.service.unserved import UNSERVED, add_unserved
from umg_grpc.service.vault import Vault
from umg_grpc.store import Store, open_store
from umg_grpc.store.redis import Redis
from umg_grpc.store.retained import Bounds
from umg_grpc.upstream.local.wordllama import WordLlamaEngine
from umg_grpc.upstream.transport import Transport
from umg_grpc.v1 import rpc
from umg_grpc.wire import EMBEDDING_FORMATS, RERANK_FORMATS

SERVED = ["umg.v1.EmbeddingService", "umg.v1.GenerationService", "umg.v1.ModelService", "umg.v1.RerankService"]
SERVICES = [*SERVED, *UNSERVED]


LAST_WORDS_SECONDS = 0.2  # in which calls that outlast a drain are told so


class Outside(NamedTuple):
    """What the service has in common with the process around it."""

    metrics: Metrics
    gate: Gate
    redis: Redis | None
    cache: ResponseCache


class Service:
    """All that answers calls, whichever way they come."""

    def __init__(
        self,
        config: Config,
        store: Store,
        authenticator: Authenticator,
        assembly: Assembly,
        memory: Memory,
        local: LocalSource | None,
        outside: Outside,
    ) -> None:
        self.store = store
        self.metrics = outside.metrics
        self._observing = Observing(self.metrics)
        self.interceptors: Sequence[Interceptor] = [
            self._observing,
            Gating(outside.gate),
            Authenticating(authenticator),
        ]
        self._config = config
        self._assembly = assembly
        self._local = local
        self._channels = channels = assembly.channels(config)
        self._shared = shared = Resilience(config, self.metrics)
        limits, most = RequestLimits(redis=outside.redis), config.body_limit
        kept = Kept(outside.cache, self.metrics, channels)
        self._generation = GenerationServicer(channels, Admission(channels, limits, most), memory, shared, kept)
        self._embedding = EmbeddingServicer(
            Unary(channels, limits, most, EMBED, EMBEDDING_FORMATS, lambda now: now.embedding, shared, kept),
            config.limits.embedding_inputs,
        )
        self._rerank = RerankServicer(
            Unary(channels, limits, most, RERANK, RERANK_FORMATS, lambda now: now.rerank, shared, kept),
            config.limits.rerank_documents,
        )
        self._models = ModelServicer(channels)
        self._watch()

    def _watch(self) -> None:
        """Shows in the metrics what the process is at."""
        metrics, shared, channels = self.metrics, self._shared, self._channels
        metrics.watch_channels(shared.health.standings)
        metrics.watch(CHANNEL_QUEUE, lambda: {(name,): slots.waiting for name, slots in shared.slots.items()})
        metrics.watch(
            CHANNEL_KEYS_RESTING, lambda: {(name,): resting() for name, resting in channels.resting_keys.items()}
        )

    def register(self, server: grpc.aio.Server) -> None:
        """Adds every operation of the schema to a server."""
        rpc.add_GenerationServiceServicer_to_server(self._generation, server)
        rpc.add_EmbeddingServiceServicer_to_server(self._embedding, server)
        rpc.add_RerankServiceServicer_to_server(self._rerank, server)
        rpc.add_ModelServiceServicer_to_server(self._models, server)
        add_unserved(server)

    def channel(self) -> InProcessChannel:
        """A channel to this service without a socket."""
        # without the gate, which our own face asks before it reads a body
        server = InProcessServer([each for each in self.interceptors if not isinstance(each, Gating)])
        self.register(server)
        return InProcessChannel(server)

    def reload(self, config: Config) -> None:
        """Takes the channels and models of another config, for the calls that begin from now on. What the process was
        started with (addresses, database, limits, log) stays. Raises OSError when a file of the config cannot be read.
        """
        self._channels.replace(self._assembly.channels(config))
        self._shared.take(config)
        self._config = config

    def cut_off(self) -> None:
        """Ends the calls over gRPC that a drain does not wait for, and tells each why."""
        self._observing.cut_off()

    async def ready(self) -> bool:
        """Whether some channel could be called now: only the local model takes a while to come up."""
        channels = self._config.channels
        if any("local" not in channel.protocols for channel in channels) or self._local is None:
            return bool(channels)
        try:
            await self._local.wait_ready(0)
        except UmgError:
            return False
        return True


@asynccontextmanager
async def open_service(
    config: Config, data: Path, local: LocalSource | None, metrics: Metrics | None = None, gate: Gate | None = None
) -> AsyncGenerator[Service, None]:
    """The service of a config, with its store opened and migrated. `local` is None where no local model runs;
    `metrics` and `gate` are those of the process, if it has some.

    Raises StoreError for a database that cannot be used, OSError when a file of the config cannot be read.
    """
    async with AsyncExitStack() as stack:
        store = await open_store(config.database, data)
        stack.push_async_callback(store.aclose)
        authenticator = Authenticator(Keys(store))
        await authenticator.start()
        stack.push_async_callback(authenticator.aclose)
        transport = await stack.enter_async_context(Transport.opened())
        engine = WordLlamaEngine()
        stack.push_async_callback(engine.aclose)
        memory = await _memory(config, store, stack)
        redis = await stack.enter_async_context(Redis.opened(config.redis)) if config.redis is not None else None
        cache = ResponseCache(config.cache_bytes, redis)
        stack.push_async_callback(cache.aclose)
        outside = Outside(metrics or Metrics(), gate or Gate(config.overload), redis, cache)
        yield Service(config, store, authenticator, Assembly(transport, engine, local), memory, local, outside)


async def _memory(config: Config, store: Store, stack: AsyncExitStack) -> Memory:
    """What is kept between calls, as the config bounds it: no key takes more than half of it."""
    kept = config.responses
    conversations = threads = None
    if kept.enabled:
        bounds = Bounds(owner_bytes=kept.max_bytes // 2, total_bytes=kept.max_bytes)
        conversations = Conversations(store, lifetime=timedelta(seconds=kept.ttl), bounds=bounds)
        conversations.start()
        stack.push_async_callback(conversations.aclose)
        threads = Threads(store, bounds=bounds, most_bytes=config.body_limit)
        threads.start()
        stack.push_async_callback(threads.aclose)
    thought = config.reasoning
    if not thought.enabled:
        return Memory(conversations, threads)
    reasoning = Vault(
        store,
        lifetime=timedelta(seconds=thought.ttl),
        memory_bytes=thought.max_bytes,
        bounds=Bounds(owner_bytes=thought.max_bytes // 2, total_bytes=thought.max_bytes),
    )
    reasoning.start()
    stack.push_async_callback(reasoning.aclose)
    return Memory(conversations, threads, reasoning)


class GrpcFace:
    """The service behind a socket."""

    def __init__(
        self, server: grpc.aio.Server, health_servicer: health.aio.HealthServicer, port: int, service: Service
    ) -> None:
        self.port = port
        self._service = service
        self._server = server
        self._health = health_servicer

    @classmethod
    async def start(cls, service: Service, address: str, *, message_limit: int, share_port: bool = False) -> Self:
        """Listens. `share_port` lets several processes listen on one port; without it the second fails instead of
        taking half the calls. Raises OSError when the address cannot be had.
        """
        server = grpc.aio.server(interceptors=service.interceptors, options=_options(message_limit, share_port))
        service.register(server)
        health_servicer = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
        names = [*SERVED, health.SERVICE_NAME]
        reflection.enable_server_reflection([*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
        try:
            port = server.add_insecure_port(address)
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address} for gRPC: {error}") from None
        await server.start()
        for name in ["", *names]:
            await health_servicer.set(name, health_pb2.HealthCheckResponse.SERVING)
        return cls(server, health_servicer, port, service)

    async def stop(self, drain: float) -> None:
        """Accepts nothing new, and gives the calls under way `drain` seconds."""
        await self._health.enter_graceful_shutdown()
        last = asyncio.get_running_loop().call_later(max(0.0, drain - LAST_WORDS_SECONDS), self._service.cut_off)
        await self._server.stop(drain)
        last.cancel()


STREAMS = 8192
"""Most calls under way on one connection: more than the gate lets in, which refuses where a client would only wait."""


def _options(message_limit: int, share_port: bool) -> list[tuple[str, int]]:
    return [
        ("grpc.so_reuseport", int(share_port)),
        ("grpc.max_receive_message_length", message_limit),
        ("grpc.max_send_message_length", -1),  # an answer may be larger than a request
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),  # who asks more often is cut off
        ("grpc.max_concurrent_streams", STREAMS),
        ("grpc.server_handshake_timeout_ms", 10_000),
    ]
