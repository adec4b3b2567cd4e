"""`umg serve`: the whole gateway in one process, or one of its faces."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import grpc
import structlog
from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from http_facade.app import Runner, make_app, make_runner
from http_facade.settings import Settings
from umg_grpc.access.bootstrap import VARIABLE, Bootstrap, ensure_bootstrap
from umg_grpc.assembly import LocalSource
from umg_grpc.cli.files import most_clients, raise_file_limit
from umg_grpc.config import Channel, Config
from umg_grpc.errors import UmgError
from umg_grpc.server import GrpcFace, Service, open_service
from umg_grpc.service.gate import Gate
from umg_grpc.service.metrics import GATE_CALLS, GATE_QUEUE, Metrics
from umg_grpc.upstream.local import EMBEDDING_MODEL, RERANK_MODEL, TEXT_MODELS, embedding_unavailable
from umg_grpc.upstream.local.supervisor import LocalModel
from umg_grpc.v1 import pb

logger = structlog.get_logger()

HTTP, GRPC = "http", "grpc"
FACES = (HTTP, GRPC)


@dataclass(frozen=True)
class Address:
    """Where to listen, or whom to call."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `HOST:PORT`; an IPv6 host stands in brackets. Raises ValueError."""
        host, separator, port = text.rpartition(":")
        if not separator or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise ValueError(f"{text!r} is no HOST:PORT, such as 127.0.0.1:8080 or [::1]:0")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Options:
    """The command line of `umg serve`."""

    config: Path | None
    http: Address
    grpc: Address
    data: Path
    faces: tuple[str, ...] = FACES
    workers: int = 1
    share_ports: bool = False  # one of several workers


@dataclass
class Gateway:
    """A gateway that listens."""

    http: Address | None
    grpc: Address
    service: Service | None  # None for a facade apart from its service
    bootstrap: Bootstrap | None


@asynccontextmanager
async def gateway(
    options: Options, config: Config, environment: Mapping[str, str], local: LocalSource | None
) -> AsyncGenerator[Gateway, None]:
    """The gateway, listening. At the end it accepts nothing new and gives what is under way `config.drain` seconds.

    Raises OSError when an address cannot be had, a file of the config cannot be read or too few can be open.
    """
    files = raise_file_limit()
    limit = 2 * config.body_limit  # a request carries its body twice: as it came, and decoded
    async with AsyncExitStack() as stack:
        metrics = Metrics()
        gate = Gate(config.overload, metrics.refused)
        gate.start()
        stack.callback(gate.close)
        metrics.watch(GATE_CALLS, lambda: {(): gate.calls})
        metrics.watch(GATE_QUEUE, lambda: {(): gate.waiting})
        metrics.start()
        stack.callback(metrics.close)
        state = Gateway(None, options.grpc, None, None)
        channel: grpc.aio.Channel
        if GRPC in options.faces:
            service = state.service = await stack.enter_async_context(
                open_service(config, options.data, local, metrics, gate)
            )
            state.bootstrap = await ensure_bootstrap(service.store, options.data, environment.get(VARIABLE))
            face = await GrpcFace.start(service, str(options.grpc), message_limit=limit, share_port=options.share_ports)
            state.grpc = Address(options.grpc.host, face.port)
            channel = service.channel()
        else:
            sizes = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", limit)]
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(str(options.grpc), options=sizes))
            face = None
        runner = None
        try:
            if HTTP in options.faces:
                runner = make_runner(_app(state.service, config, channel, metrics, gate, files))
                state.http = await _listen(runner, options)
            yield state
        finally:
            await asyncio.gather(
                *([runner.cleanup()] if runner is not None else []),
                *([face.stop(config.drain)] if face is not None else []),
            )


def _app(
    service: Service | None, config: Config, channel: grpc.aio.Channel, metrics: Metrics, gate: Gate, files: int
) -> web.Application:
    async def ready() -> bool:
        if service is None:
            return channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY
        return await service.ready()

    settings = Settings(
        ready=ready,
        metrics=lambda: (metrics.exposition(), CONTENT_TYPE_LATEST),
        body_limit_bytes=config.body_limit,
        cors_origins=config.cors.origins,
        drain_seconds=config.drain,
        calls_are_logged=service is not None,
        gate=gate,
        connections=_connections(config, files),
        head_seconds=config.overload.head,
        upload_seconds=config.overload.upload,
    )
    return make_app(channel, settings)


def _connections(config: Config, files: int) -> int:
    """How many clients may be connected: as the config says, if so many `files` may be open."""
    wanted, possible = config.overload.connections, most_clients(files)
    if possible < wanted:
        logger.warning("fewer connections than the config allows: raise the limit of open files", most=possible)
    return min(wanted, possible)


async def _listen(runner: Runner, options: Options) -> Address:
    await runner.setup()
    host = options.http.host
    try:
        return Address(host, await runner.listen(host, options.http.port, share_port=options.share_ports))
    except OSError as error:
        raise OSError(f"cannot listen on {options.http} for HTTP: {error.strerror or error}") from None


def check_local_models(config: Config) -> None:
    """Raises UmgError(INVALID_FIELD) for a local model that there is not."""
    known = [*(model.model for model in TEXT_MODELS), EMBEDDING_MODEL, RERANK_MODEL]
    for channel in config.channels:
        for wanted in channel.models if "local" in channel.protocols else ():
            if wanted.upstream not in known:
                message = f"channel {channel.name}: there is no local model {wanted.upstream}, only {', '.join(known)}"
                raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="channels")


def served_part(config: Config, *, local: bool) -> Config:
    """The config less what this process cannot serve, which the log has: later protocols, and the local models that
    cannot run here; `local`: whether the text model does. Raises UmgError(INVALID_FIELD) for a local model that there
    is not.
    """
    check_local_models(config)
    for notice in config.notices:
        logger.warning("part of the config is left out", why=notice)
    channels = [_runnable(channel, local=local) for channel in config.channels]
    return replace(config, channels=tuple(channel for channel in channels if channel.models))


def _runnable(channel: Channel, *, local: bool) -> Channel:
    """The channel less the local models that cannot run here."""
    if "local" not in channel.protocols:
        return channel
    reasons = dict.fromkeys((EMBEDDING_MODEL, RERANK_MODEL), embedding_unavailable())
    reasons |= dict.fromkeys((model.model for model in TEXT_MODELS), None if local else "no local text model runs here")
    for model in channel.models:
        if reason := reasons[model.upstream]:
            logger.warning("part of the config is left out", why=f"channel {channel.name}: {model.id}: {reason}")
    return replace(channel, models=tuple(model for model in channel.models if not reasons[model.upstream]))


@asynccontextmanager
async def local_model(options: Options, config: Config) -> AsyncGenerator[LocalModel | None, None]:
    """The local model that the config asks for, being loaded; None where it asks for none, this machine cannot, or only
    the HTTP face is served here.
    """
    text_model = TEXT_MODELS[0]
    wanted = {model.upstream for channel in config.channels if "local" in channel.protocols for model in channel.models}
    if GRPC not in options.faces or text_model.model not in wanted:
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
