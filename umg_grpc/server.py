"""Puts the service together from the config, and serves it over gRPC. Nothing else builds anything."""

import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Protocol, Self, assert_never

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from umg_grpc.access.authenticate import Authenticator
from umg_grpc.access.keys import Keys
from umg_grpc.access.limits import RequestLimits
from umg_grpc.config import BearerAuth, Channel, Config, HeaderAuth, NoAuth
from umg_grpc.errors import UmgError
from umg_grpc.inprocess import InProcessChannel, InProcessServer, Interceptor
from umg_grpc.routing import Router
from umg_grpc.service.admission import Admission
from umg_grpc.service.answers import Memory
from umg_grpc.service.call import current
from umg_grpc.service.channels import Channels
from umg_grpc.service.conversations import Conversations
from umg_grpc.service.generation import GenerationServicer
from umg_grpc.service.interceptors import Authenticating, Observing
from umg_grpc.service.metrics import Metrics
from umg_grpc.service.models import ModelServicer
from umg_grpc.service.unserved import UNSERVED, add_unserved
from umg_grpc.service.vault import Vault
from umg_grpc.store import Store, open_store
from umg_grpc.store.retained import Bounds
from umg_grpc.tokens import TokenCounter
from umg_grpc.upstream.http import Endpoint, EndpointSource, HttpUpstream, in_turn
from umg_grpc.upstream.local.capability import refuse_beyond_text
from umg_grpc.upstream.text import TextUpstream
from umg_grpc.upstream.transport import Deadlines, Transport
from umg_grpc.v1 import rpc
from umg_grpc.wire import FORMATS

LOCAL_END_SECONDS = 0.5  # from the break of its connections to its end, in which its address still looks good
LOCAL_START_SECONDS = 10.0  # what a call waits for the local model to come (back) up
SERVED = ["umg.v1.GenerationService", "umg.v1.ModelService"]
SERVICES = [*SERVED, *UNSERVED]


class LocalEndpoint(Protocol):
    """One life of the local model's server."""

    @property
    def base_url(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


class LocalSource(Protocol):
    """Where the local model can be called."""

    async def wait_ready(self, seconds: float, *, after: object = None) -> LocalEndpoint:
        """As soon as it can be, and elsewhere than `after`. Raises UmgError(UNAVAILABLE) when it is not in time."""
        ...


class Service:
    """All that answers calls, whichever way they come."""

    def __init__(
        self,
        config: Config,
        store: Store,
        authenticator: Authenticator,
        transport: Transport,
        local: LocalSource | None,
        memory: Memory,
    ) -> None:
        self.store = store
        self.metrics = Metrics()
        self.interceptors: Sequence[Interceptor] = [Observing(self.metrics), Authenticating(authenticator)]
        self._config = config
        self._transport = transport
        self._local = local
        self._channels = Channels(Router(config), self._upstreams(config))
        admission = Admission(self._channels, RequestLimits(), config.body_limit)
        self._generation = GenerationServicer(self._channels, admission, memory)
        self._models = ModelServicer(self._channels)

    def register(self, server: grpc.aio.Server) -> None:
        """Adds every operation of the schema to a server."""
        rpc.add_GenerationServiceServicer_to_server(self._generation, server)
        rpc.add_ModelServiceServicer_to_server(self._models, server)
        add_unserved(server)

    def channel(self) -> InProcessChannel:
        """A channel to this service without a socket."""
        server = InProcessServer(self.interceptors)
        self.register(server)
        return InProcessChannel(server)

    def reload(self, config: Config) -> None:
        """Takes the channels and models of another config, for the calls that begin from now on. What the process was
        started with (addresses, database, limits, log) stays. Raises OSError when a file of the config cannot be read.
        """
        router, upstreams = Router(config), self._upstreams(config)
        self._config = config
        self._channels.router, self._channels.upstreams = router, upstreams

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

    def _upstreams(self, config: Config) -> dict[str, TextUpstream]:
        return {channel.name: _upstream(channel, self._transport, self._local) for channel in config.channels}


@asynccontextmanager
async def open_service(config: Config, data: Path, local: LocalSource | None) -> AsyncGenerator[Service, None]:
    """The service of a config, with its store opened and migrated. `local` is None where no local model runs.

    Raises StoreError for a database that cannot be used, OSError when a file of the config cannot be read.
    """
    async with AsyncExitStack() as stack:
        store = await open_store(config.database, data)
        stack.push_async_callback(store.aclose)
        authenticator = Authenticator(Keys(store))
        await authenticator.start()
        stack.push_async_callback(authenticator.aclose)
        transport = await stack.enter_async_context(Transport.opened())
        memory = await _memory(config, store, stack)
        yield Service(config, store, authenticator, transport, local, memory)


async def _memory(config: Config, store: Store, stack: AsyncExitStack) -> Memory:
    """What is kept between calls, as the config bounds it: no key takes more than half of it."""
    kept = config.responses
    conversations = None
    if kept.enabled:
        bounds = Bounds(owner_bytes=kept.max_bytes // 2, total_bytes=kept.max_bytes)
        conversations = Conversations(store, lifetime=timedelta(seconds=kept.ttl), bounds=bounds)
        conversations.start()
        stack.push_async_callback(conversations.aclose)
    thought = config.reasoning
    if not thought.enabled:
        return Memory(conversations)
    reasoning = Vault(
        store,
        lifetime=timedelta(seconds=thought.ttl),
        memory_bytes=thought.max_bytes,
        bounds=Bounds(owner_bytes=thought.max_bytes // 2, total_bytes=thought.max_bytes),
    )
    reasoning.start()
    stack.push_async_callback(reasoning.aclose)
    return Memory(conversations, reasoning)


class GrpcFace:
    """The service behind a socket."""

    def __init__(self, server: grpc.aio.Server, health_servicer: health.aio.HealthServicer, port: int) -> None:
        self.port = port
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
        return cls(server, health_servicer, port)

    async def stop(self, drain: float) -> None:
        """Accepts nothing new, and gives the calls under way `drain` seconds."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(drain)


def _options(message_limit: int, share_port: bool) -> list[tuple[str, int]]:
    return [
        ("grpc.so_reuseport", int(share_port)),
        ("grpc.max_receive_message_length", message_limit),
        ("grpc.max_send_message_length", -1),  # an answer may be larger than a request
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
    ]


def _upstream(channel: Channel, transport: Transport, local: LocalSource | None) -> TextUpstream:
    """One channel of the config. Raises OSError when its `ca_file` cannot be read."""
    timeout = channel.timeout
    deadlines = Deadlines(timeout.connect, timeout.first_byte, timeout.idle, timeout.total)
    if "local" in channel.protocols:
        if local is None:
            raise ValueError(f"channel {channel.name}: no local model runs")  # the caller leaves such channels out
        return HttpUpstream(transport, [FORMATS["chat"]], _following(local), deadlines, check=refuse_beyond_text)
    if "sandbox" in channel.protocols:
        from umg_grpc.upstream.sandbox import SandboxText  # here: it and what it draws with take 5 MB

        return SandboxText(
            TokenCounter().count_text,
            lambda: current().caller.key_id,
            tokens_per_second=channel.pace,
            first_byte_seconds=timeout.first_byte,
            total_seconds=timeout.total,
        )
    endpoints = [_endpoint(channel, key) for key in channel.api_keys] or [Endpoint(channel.base_url, channel.headers)]
    return HttpUpstream(
        transport,
        [FORMATS[protocol] for protocol in channel.protocols],
        in_turn(endpoints),
        deadlines,
        proxy=channel.proxy,
        tls=tls_context(channel),
    )


def tls_context(channel: Channel) -> ssl.SSLContext | bool:
    """Whom the channel trusts; True is whom the system trusts. Raises OSError when its `ca_file` cannot be used."""
    if channel.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=channel.ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise OSError(f"channel {channel.name}: ca_file {channel.ca_file}: {error.strerror or error}") from None


def _following(local: LocalSource) -> EndpointSource:
    """Where the local model is at each call, once it is up again after a connection to it broke."""

    async def endpoint(broken: Endpoint | None) -> Endpoint:
        known = await local.wait_ready(LOCAL_START_SECONDS)
        if broken is not None and broken.base_url == known.base_url:
            with suppress(UmgError):  # it may have broken off without ending
                known = await local.wait_ready(LOCAL_END_SECONDS, after=known)
        return Endpoint(known.base_url, known.headers)

    return endpoint


def _endpoint(channel: Channel, key: str) -> Endpoint:
    """Where the channel leads with one of its keys, which each format sends in its own way unless the operator said."""
    if not channel.auth_written:
        return Endpoint(channel.base_url, channel.headers, key)
    return Endpoint(channel.base_url, {**channel.headers, **_credentials(channel, key)})


def _credentials(channel: Channel, key: str) -> Mapping[str, str]:
    match channel.auth:
        case BearerAuth():
            return {"Authorization": f"Bearer {key}"}
        case HeaderAuth(header=header):
            return {header: key}
        case NoAuth():
            return {}
        case unhandled:
            assert_never(unhandled)
