"""The channels of a config, put together: for each what it is to every operation that it serves."""

import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol, assert_never

from umg_grpc.config import BearerAuth, Channel, Config, HeaderAuth, NoAuth
from umg_grpc.errors import UmgError
from umg_grpc.routing import Router
from umg_grpc.service.call import current
from umg_grpc.service.channels import Channels
from umg_grpc.tokens import TokenCounter
from umg_grpc.upstream.http_channel import Endpoint, EndpointSource, HttpChannel, InTurn
from umg_grpc.upstream.http_text import HttpText
from umg_grpc.upstream.http_unary import HttpEmbedding, HttpUnary
from umg_grpc.upstream.local.capability import refuse_beyond_text
from umg_grpc.upstream.local.wordllama import LocalEmbedding, LocalRerank, WordLlamaEngine
from umg_grpc.upstream.transport import Deadlines, Transport
from umg_grpc.wire import EMBEDDING_FORMATS, FORMATS, RERANK_FORMATS

LOCAL_END_SECONDS = 0.5  # from the break of its connections to its end, in which its address still looks good
LOCAL_START_SECONDS = 10.0  # what a call waits for the local model to come (back) up


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


class Assembly:
    """Makes the channels of each config that the process is given."""

    def __init__(self, transport: Transport, engine: WordLlamaEngine, local: LocalSource | None) -> None:
        """`local` is None where no local text model runs."""
        self._transport = transport
        self._engine = engine
        self._local = local

    def channels(self, config: Config) -> Channels:
        """The channels, and the router over them. Raises OSError when a file of the config cannot be read."""
        made = Channels(Router(config))
        for channel in config.channels:
            if "local" in channel.protocols:
                self._add_local(made, channel, config)
            elif "sandbox" in channel.protocols:
                self._add_sandbox(made, channel, config)
            else:
                self._add_http(made, channel)
        return made

    def _add_local(self, made: Channels, channel: Channel, config: Config) -> None:
        if self._local is not None:
            http = HttpChannel(self._transport, _following(self._local), _deadlines(channel))
            made.text[channel.name] = HttpText(http, [FORMATS["chat"]], check=refuse_beyond_text)
        made.embedding[channel.name] = LocalEmbedding(
            self._engine, lengths=_lengths(channel, config), total_seconds=channel.timeout.total
        )
        made.rerank[channel.name] = LocalRerank(self._engine, total_seconds=channel.timeout.total)

    def _add_sandbox(self, made: Channels, channel: Channel, config: Config) -> None:
        # here: it and what it draws with take 5 MB
        from umg_grpc.upstream.sandbox import SandboxEmbedding, SandboxRerank, SandboxText

        first, total = channel.timeout.first_byte, channel.timeout.total
        made.text[channel.name] = SandboxText(
            TokenCounter().count_text,
            lambda: current().caller.key_id,
            tokens_per_second=channel.pace,
            first_byte_seconds=first,
            total_seconds=total,
        )
        made.embedding[channel.name] = SandboxEmbedding(
            self._engine, lengths=_lengths(channel, config), first_byte_seconds=first, total_seconds=total
        )
        made.rerank[channel.name] = SandboxRerank(self._engine, first_byte_seconds=first, total_seconds=total)

    def _add_http(self, made: Channels, channel: Channel) -> None:
        endpoints = [_endpoint(channel, key) for key in channel.api_keys]
        source = InTurn(endpoints or [Endpoint(channel.base_url, channel.headers)])
        tls = tls_context(channel)
        http = HttpChannel(self._transport, source, _deadlines(channel), proxy=channel.proxy, tls=tls)
        made.resting_keys[channel.name] = lambda: http.resting_keys
        if text := [FORMATS[protocol] for protocol in channel.protocols if protocol in FORMATS]:
            made.text[channel.name] = HttpText(http, text)
        if embedding := [
            codec
            for protocol in channel.protocols
            for codec in EMBEDDING_FORMATS.values()
            if codec.protocol == protocol
        ]:
            made.embedding[channel.name] = HttpEmbedding(http, embedding, most_items=channel.max_inputs)
        if "rerank" in channel.protocols:
            # the vendor's two versions, told apart as its clients do
            version = "rerank_v2" if channel.base_url.endswith("/v2") else "rerank"
            made.rerank[channel.name] = HttpUnary(http, [RERANK_FORMATS[version]])


def tls_context(channel: Channel) -> ssl.SSLContext | bool:
    """Whom the channel trusts; True is whom the system trusts. Raises OSError when its `ca_file` cannot be used."""
    if channel.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=channel.ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise OSError(f"channel {channel.name}: ca_file {channel.ca_file}: {error.strerror or error}") from None


def _lengths(channel: Channel, config: Config) -> dict[str, int]:
    """Of vectors for which none is asked, by the upstream's name of the model, where the operator says."""
    said = {model.upstream: config.models.get(model.id) for model in channel.models}
    return {
        model: length
        for model, info in said.items()
        if info and (length := info.described.embedding.default_dimensions)
    }


def _deadlines(channel: Channel) -> Deadlines:
    timeout = channel.timeout
    return Deadlines(timeout.connect, timeout.first_byte, timeout.idle, timeout.total)


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
