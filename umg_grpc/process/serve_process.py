"""Implementation of `umg serve`: builds the HTTP and gRPC servers of one process from the config, and runs them."""

import asyncio
import math
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

import grpc
import structlog
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from http_facade.app import App, Runner, make_app
from http_facade.exchange.readiness_response import Readiness
from http_facade.exchange.server_settings import Drain, Settings, no_credential
from http_facade.routes import METRICS_ROUTES, PAGE_SHAPES, Shape, routes_without
from umg_grpc.access.bootstrap_key import BOOTSTRAP_KEY_VARIABLE, Bootstrap, configured_secret, ensure_bootstrap
from umg_grpc.base.grpc_proxies import WITHOUT_PROXY
from umg_grpc.config import Address, Channel, Config
from umg_grpc.process import port_checks
from umg_grpc.process.channel_factory import LocalSource
from umg_grpc.process.grpc_server import GrpcFace
from umg_grpc.process.local_model_check import check_local_models
from umg_grpc.process.open_file_limit import max_clients, raise_file_limit
from umg_grpc.process.port_checks import check_free, holder, taken
from umg_grpc.process.serve_options import GRPC_FACE, HTTP_FACE, Options
from umg_grpc.process.service_factory import Service, open_service
from umg_grpc.process.tls_certificates import Certificates
from umg_grpc.service.metric_gauges import (
    CALLS_IN_FLIGHT,
    CALLS_QUEUED,
    CONNECTIONS_LIMIT,
    MEMORY_SHARE,
    OPEN_FILES_LIMIT,
    START_LAG,
    TLS_EXPIRY,
    TLS_RELOAD_SUCCESS,
)
from umg_grpc.service.resilience.load_shedding import LoadShedder
from umg_grpc.service.resilience.memory_watch import MemoryWatch, memory_limit
from umg_grpc.service.service_metrics import Metrics
from umg_grpc.service.telemetry.otlp_export import open_telemetry
from umg_grpc.upstream.local import TEXT_MODELS, WORDLLAMA_MODELS, wordllama_unavailable
from umg_grpc.upstream.local.model_process_supervisor import LocalModel

logger = structlog.get_logger()

LOOPBACK_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  compared, not bound
"""Address to call by the address to bind, for all addresses of a machine."""

DRAIN_DELAY_SECONDS = 5.0
"""Default of `drain_delay` where callers on other machines connect: load balancers poll readiness every few seconds."""
WARM_UP_SECONDS = 3.0
"""Time from the first call on in which the process is not judged by its lag."""
METRICS_DRAIN_SECONDS = 1.0
"""Longest wait at a shutdown for scrapers that still read their responses."""
METRICS_CONNECTIONS = 64
"""Most connections of scrapers, besides those beyond the limit that each listener keeps."""


@dataclass
class Gateway:
    """Running gateway in this process: its addresses, services and certificates."""

    http: Address | None
    grpc: Address
    service: Service | None  # None for an HTTP face without its service
    bootstrap: Bootstrap | None
    metrics: Address | None = None
    """Address of the separate listener of `/metrics`; None if there is none."""
    face: GrpcFace | None = None
    certificates: Certificates | None = None
    drain: Drain = field(default_factory=Drain)

    async def announce_drain(self) -> None:
        """Report to health checks over HTTP and gRPC that this process will end. Calls are still accepted."""
        self.drain.is_announced = True
        if self.face is not None:
            await self.face.announce_drain()


@asynccontextmanager
async def gateway(
    options: Options, config: Config, environment: Mapping[str, str], local: LocalSource | None
) -> AsyncGenerator[Gateway, None]:
    """Yield a running gateway of this process. At the end of the block, reject new calls, and wait `config.drain`
    seconds for the others. Raises OSError if an address cannot be bound, a file of the config cannot be read, or too
    few files can be open; UmgError(INVALID_FIELD) for unusable TLS files.
    """
    files = raise_file_limit()
    limit = 2 * config.body_limit  # a gRPC request contains the body twice: raw and decoded
    async with AsyncExitStack() as stack:
        metrics = Metrics(config.metrics.key_labels)
        load_shedder, connections = _load_shedder(config, metrics, options.workers, stack), _connections(config, files)
        _report_limits(files, connections, load_shedder.memory, metrics)
        metrics.start()
        stack.callback(metrics.close)
        certificates = _certificates(config, metrics, stack)
        state = Gateway(None, options.grpc, None, None, certificates=certificates)
        channel: grpc.aio.Channel
        if GRPC_FACE in options.faces:
            telemetry = await stack.enter_async_context(open_telemetry(environment))
            service = state.service = await stack.enter_async_context(
                open_service(
                    *(config, options.data, local, metrics, load_shedder, telemetry),
                    counts_alone=options.share_ports and config.redis is None,
                    first_secret=configured_secret(options.data, environment.get(BOOTSTRAP_KEY_VARIABLE)),
                )
            )
            face = _bind_grpc(service, options, limit, certificates)
            state.grpc, state.face = Address(options.grpc.host, face.port), face
            channel = service.channel()
        else:
            channel = await stack.enter_async_context(_channel_behind(options.grpc, limit))
            face = None
        runner, scraped, shares = None, None, options.share_ports
        try:
            if HTTP_FACE in options.faces:
                runner = Runner(_app(state, config, channel, metrics, load_shedder, connections))
                await runner.setup()
                tls = certificates.http_context if certificates is not None else None
                state.http = await _bind(runner, options.http, port_checks.HTTP_PURPOSE, share_port=shares, tls=tls)
            if (address := options.metrics or config.metrics.address) is not None:
                scraped = Runner(_metrics_app(config, channel, metrics))
                await scraped.setup()
                stack.push_async_callback(scraped.cleanup)  # after the drain, so that scrapers can observe the drain
                state.metrics = await _bind(scraped, address, port_checks.METRICS_PURPOSE, share_port=shares)
            if state.service is not None and face is not None:  # only now, when no address is taken
                state.service.links.base_url = _public_url(options, config, state.http)
                state.bootstrap = await _learn_first_key(
                    state.service, options, environment.get(BOOTSTRAP_KEY_VARIABLE)
                )
                await face.start()
            for bound in filter(None, (runner, scraped)):
                bound.accept()
            yield state
        finally:
            state.drain.is_announced = True
            await asyncio.gather(
                *([runner.cleanup()] if runner is not None else []),
                *([face.stop(config.drain)] if face is not None else []),
            )


def _channel_behind(address: Address, limit: int) -> grpc.aio.Channel:
    sizes = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", limit)]
    return grpc.aio.insecure_channel(str(address), options=[*sizes, WITHOUT_PROXY])


def _certificates(config: Config, metrics: Metrics, stack: AsyncExitStack) -> Certificates | None:
    if config.tls is None:
        return None
    certificates = Certificates(config.tls)
    metrics.watch(TLS_EXPIRY, lambda: {(): certificates.expiry_time.timestamp()})
    metrics.watch(TLS_RELOAD_SUCCESS, lambda: {(): float(certificates.is_current)})
    certificates.start()
    stack.push_async_callback(certificates.aclose)
    return certificates


def _public_url(options: Options, config: Config, http: Address | None) -> str:
    if config.public_url is not None:
        return config.public_url
    address = http or options.http
    reachable = replace(address, host=LOOPBACK_HOSTS[address.host]) if address.host in LOOPBACK_HOSTS else address
    return f"{'http' if config.tls is None else 'https'}://{reachable}"


def _load_shedder(config: Config, metrics: Metrics, processes: int, stack: AsyncExitStack) -> LoadShedder:
    memory = MemoryWatch(memory_limit(config.overload.memory, processes))
    load_shedder = LoadShedder(config.overload, metrics.refused, warm_up_seconds=WARM_UP_SECONDS, memory=memory)
    metrics.watch(MEMORY_SHARE, lambda: {(): load_shedder.memory.share})
    metrics.watch(CALLS_IN_FLIGHT, lambda: {(): load_shedder.calls})
    metrics.watch(CALLS_QUEUED, lambda: {(): load_shedder.waiting})
    metrics.watch(START_LAG, lambda: load_shedder.lags)
    stack.callback(load_shedder.close)
    load_shedder.memory.start(lambda: load_shedder.calls)
    stack.push_async_callback(load_shedder.memory.aclose)
    return load_shedder


def _report_limits(files: int, connections: int, memory: MemoryWatch, metrics: Metrics) -> None:
    metrics.watch(OPEN_FILES_LIMIT, lambda: {(): files})
    metrics.watch(CONNECTIONS_LIMIT, lambda: {(): connections})
    most = {} if memory.limit == math.inf else {"memory_mib": int(memory.limit) >> 20}
    logger.info("limits of this process", open_files=files, connections=connections, **most)


async def _learn_first_key(service: Service, options: Options, variable: str | None) -> Bootstrap | None:
    """Load the bootstrap key into memory, so that it stays valid while the database is unavailable."""
    bootstrap = None
    if options.share_ports:
        secret = configured_secret(options.data, variable)
    else:
        replace_key, exposed = options.replace_bootstrap_key, bool(options.exposed)
        bootstrap = await ensure_bootstrap(service.store, options.data, variable, replace=replace_key, exposed=exposed)
        secret = bootstrap.secret
    if secret is not None:
        await service.authenticator.learn(secret)
    return bootstrap


def _app(
    state: Gateway,
    config: Config,
    channel: grpc.aio.Channel,
    metrics: Metrics,
    load_shedder: LoadShedder,
    connections: int,
) -> App:
    service = state.service

    async def ready() -> Readiness:
        if state.drain.is_announced:
            return Readiness("draining", ("the gateway is shutting down",))
        if service is None:
            if channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY:
                return Readiness()
            return Readiness("unavailable", (f"the service at {state.grpc} is not connected",))
        if reasons := service.unfit():
            return Readiness("unavailable", (*reasons, *service.problems()))
        if reason := await service.unready():
            return Readiness("starting", (reason, *service.problems()))
        return Readiness(reasons=service.problems())

    settings = Settings(
        ready=ready,
        metrics=lambda: (metrics.exposition(), CONTENT_TYPE_LATEST),
        metrics_key=config.metrics.key,
        body_limit_bytes=config.body_limit,
        cors_origins=config.cors.origins,
        pages=config.pages,
        drain_seconds=config.drain,
        drain=state.drain,
        calls_are_logged=service is not None,
        find_key=service.authenticator.find if service is not None else lambda _: None,
        valid_caller=service.authenticator.valid_caller if service is not None else lambda _: None,
        session_credential=service.authenticator.session_credential if service is not None else no_credential,
        sign_on=service.sign_on if service is not None else None,
        key_fields=service.key_fields if service is not None else lambda _: {},
        note_refused=service.note_refused if service is not None else lambda _: None,
        load_shedder=load_shedder,
        connections=connections,
        head_seconds=config.overload.head,
        upload_seconds=config.overload.upload,
    )
    elsewhere = set() if config.metrics.address is None else {Shape.METRICS}
    return make_app(channel, settings, routes_without(elsewhere if config.pages else elsewhere | PAGE_SHAPES))


def _metrics_app(config: Config, channel: grpc.aio.Channel, metrics: Metrics) -> App:
    settings = Settings(
        ready=Readiness,
        metrics=lambda: (metrics.exposition(), CONTENT_TYPE_LATEST),
        metrics_key=config.metrics.key,
        drain_seconds=METRICS_DRAIN_SECONDS,
        connections=METRICS_CONNECTIONS,
        head_seconds=config.overload.head,
        upload_seconds=config.overload.upload,
    )
    return make_app(channel, settings, METRICS_ROUTES)


def drain_delay(options: Options, config: Config) -> float:
    """Return the seconds between the announcement of a shutdown and the moment when no new calls are accepted."""
    if config.drain_delay is not None:
        return config.drain_delay
    return DRAIN_DELAY_SECONDS if options.exposed else 0.0


def _connections(config: Config, files: int) -> int:
    possible = max_clients(files)
    wanted = config.overload.connections or possible
    if possible < wanted:
        logger.warning("fewer connections than the config allows: raise the limit of open files", maximum=possible)
    return min(wanted, possible)


def _bind_grpc(service: Service, options: Options, limit: int, certificates: Certificates | None) -> GrpcFace:
    credentials = certificates.grpc_credentials() if certificates is not None else None
    if options.grpc.port and not options.share_ports:  # the parent of workers has checked the port that they share
        check_free(options.grpc, port_checks.GRPC_PURPOSE)  # gRPC would report it in log lines of its own
    try:
        return GrpcFace.bind(
            service, str(options.grpc), message_limit=limit, share_port=options.share_ports, credentials=credentials
        )
    except OSError as error:
        option = port_checks.ADDRESS_OPTIONS[port_checks.GRPC_PURPOSE]
        raise OSError(f"{error}{holder(options.grpc)}; another address: {option}") from None


async def _bind(
    runner: Runner, address: Address, purpose: str, *, share_port: bool, tls: Callable[[], ssl.SSLContext] | None = None
) -> Address:
    try:
        return Address(address.host, await runner.bind(address.host, address.port, share_port=share_port, tls=tls))
    except OSError as error:
        raise taken(address, error, purpose) from None


def served_part(config: Config, *, local: bool) -> Config:
    """Return the config without the local models that cannot run on this machine; these are logged. `local`: whether
    the text model can run. Raises UmgError(INVALID_FIELD) for an unknown local model.
    """
    check_local_models(config)
    channels = [_without_unavailable(channel, local=local) for channel in config.channels]
    return replace(config, channels=tuple(channel for channel in channels if channel.models))


def _without_unavailable(channel: Channel, *, local: bool) -> Channel:
    """Return the channel without local models that cannot run on this machine."""
    if "local" not in channel.protocols:
        return channel
    reasons = dict.fromkeys(WORDLLAMA_MODELS, wordllama_unavailable())
    reasons |= dict.fromkeys((model.model for model in TEXT_MODELS), None if local else "no local text model runs here")
    for model in channel.models:
        if reason := reasons[model.upstream]:
            logger.warning("part of the config is left out", why=f"channel {channel.name}: {model.id}: {reason}")
    return replace(channel, models=tuple(model for model in channel.models if not reasons[model.upstream]))


@asynccontextmanager
async def local_model(options: Options, config: Config) -> AsyncGenerator[LocalModel | None, None]:
    """Yield the local text model of the config, which starts to load. Yield None if the config has none, if it cannot
    run on this machine, or if this process serves only HTTP.
    """
    text_model = TEXT_MODELS[0]
    wanted = {model.upstream for channel in config.channels if "local" in channel.protocols for model in channel.models}
    if GRPC_FACE not in options.faces or text_model.model not in wanted:
        yield None
        return
    weights, reason = text_model.weights(), text_model.unavailable()
    if weights is None or reason:
        logger.warning("serving without the local model", reason=reason)
        yield None
        return
    model = LocalModel(text_model, weights)
    await model.start()
    try:
        yield model
    finally:
        await model.close()
