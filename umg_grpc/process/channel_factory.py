"""Factory of channels: builds, from the config, the clients by which each channel calls its provider."""

import ssl
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Protocol, assert_never

from umg_grpc.base.errors import UmgError
from umg_grpc.base.host_list_entries import place_of
from umg_grpc.base.proxy_rules import ProxyRules
from umg_grpc.config import (
    AccessKeyAuth,
    AwsAuth,
    AzureAuth,
    BearerAuth,
    Channel,
    CommandAuth,
    Config,
    GoogleAuth,
    HeaderAuth,
    JwtAuth,
    NoAuth,
    QueryAuth,
    ServiceAccountAuth,
)
from umg_grpc.config.channel_credentials import signature_scope
from umg_grpc.config.channel_proxies import proxy_url
from umg_grpc.config.config_values import DIRECT_ROUTE
from umg_grpc.config.model_settings import vector_lengths
from umg_grpc.knowledge.vendor_member_dialects import dialects_at
from umg_grpc.operations import UNARY_OPERATIONS
from umg_grpc.process.channel_file_checks import check_extra, own_account_file, service_account, tls_context
from umg_grpc.process.cloud_signers import CloudSigners
from umg_grpc.process.guard_factory import GuardFactory
from umg_grpc.routing import Router
from umg_grpc.service.pipeline.call_state import current
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.upstream.caller_url_fetch import Fetcher, ProviderRoute
from umg_grpc.upstream.http.image_generation import HttpImages
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.provider_endpoints import EndpointSource, ProviderEndpoint, RotatingEndpoints
from umg_grpc.upstream.http.signing import Signer
from umg_grpc.upstream.http.signing.access_key import AccessKeySigner
from umg_grpc.upstream.http.signing.aws import AwsSigner
from umg_grpc.upstream.http.signing.token_command import CommandSigner
from umg_grpc.upstream.http.text_generation import HttpText
from umg_grpc.upstream.http.unary_upstreams import unary_upstream
from umg_grpc.upstream.http.video_generation import HttpVideo
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.local.unsupported_content import reject_unsupported_content
from umg_grpc.upstream.local.wordllama import WordLlamaEngine, local_operations
from umg_grpc.upstream.response_memory_budget import ResponseBudget
from umg_grpc.wire import TEXT_UPSTREAMS
from umg_grpc.wire.cloud_call_encoding import text_format_at, unary_format_at
from umg_grpc.wire.images.providers import IMAGE_PROTOCOLS, image_protocol
from umg_grpc.wire.unary_format_interface import codecs_of
from umg_grpc.wire.video import VIDEO_PROTOCOLS, video_protocol

LOCAL_END_SECONDS = 0.5  # from the break of its connections to its exit, while its address still seems valid
LOCAL_START_SECONDS = 10.0  # time that a call waits for the local model to start or restart


class LocalEndpoint(Protocol):
    """Interface of an address at which the local text model's server can be called."""

    @property
    def base_url(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


class LocalSource(Protocol):
    """Source of the address at which the local text model's server currently runs."""

    async def wait_ready(self, seconds: float, *, after: object = None) -> LocalEndpoint:
        """Wait until the local text model can be called, and return its address. `after`: earlier result to which a
        connection failed; another address is awaited. Raise UmgError(UNAVAILABLE) after `seconds`.
        """
        ...


class ChannelFactory:
    """Factory of the channels of a config: each has a client for each operation (texts, images and others)."""

    def __init__(
        self,
        client: Client,
        engine: WordLlamaEngine,
        local: LocalSource | None,
        budget: ResponseBudget,
        fetcher: Fetcher,
        now: Callable[[], float] = time.time,
        count_credentials: Callable[[str, str], None] | None = None,
        guard_factory: GuardFactory | None = None,
    ) -> None:
        """Create a factory. `engine`: local embedding and rerank models; `local`: local text model; `budget`: memory
        for large responses; `fetcher`: client for URLs of callers; `now`: returns Unix seconds, for the times of video
        tasks; `count_credentials`: counts a read of a cloud's credentials, by channel and outcome; `guard_factory`:
        makes the guards of the config, None if there is none.
        """
        self._client = client
        self._engine = engine
        self._local = local
        self._budget = budget
        self._fetcher = fetcher
        self._now = now
        self._guard_factory = guard_factory
        self._cloud_signers = CloudSigners(count_credentials, time.time)

    def router(self, config: Config) -> Router:
        """Build the router of a config, which has the clock of the factory."""
        return Router(config, self._now)

    def channels(self, config: Config, router: Router | None = None) -> Channels:
        """Build all channels of a config, and the router that selects among them. `router`: the one of this config, if
        it is built already. Raise OSError if a file that the config names cannot be read.
        """
        channels = Channels(router or self.router(config))
        if self._guard_factory is not None:
            channels.guards = self._guard_factory.guards(config.guards)
        for channel in config.channels:
            if "local" in channel.protocols:
                self._add_local(channels, channel, config)
            elif channel.is_simulated:
                self._add_sandbox(channels, channel, config)
            else:
                self._add_http(channels, channel, config.proxies)
        return channels

    def _add_local(self, channels: Channels, channel: Channel, config: Config) -> None:
        if self._local is not None:
            http = HttpChannel(self._client, _local_endpoint(self._local), _deadlines(channel))
            channels.text[channel.name] = HttpText(http, [TEXT_UPSTREAMS["chat"]], check=reject_unsupported_content)
        lengths = vector_lengths(channel, config)
        for operation, upstream in local_operations(self._engine, lengths, channel.timeout.total):
            channels.unary.add(operation, channel.name, upstream)

    def _add_sandbox(self, channels: Channels, channel: Channel, config: Config) -> None:
        # imported only if used: it takes 5 MB with its image library
        from umg_sandbox import SandboxImages, SandboxText, SandboxVideo, simulated_operations

        first, total = channel.timeout.first_byte, channel.timeout.total
        channels.text[channel.name] = SandboxText(
            lambda: current().caller.key_id,
            tokens_per_second=channel.pace,
            first_byte_seconds=first,
            total_seconds=total,
        )
        lengths = vector_lengths(channel, config)
        for operation, upstream in simulated_operations(self._engine, lengths, first, total):
            channels.unary.add(operation, channel.name, upstream)
        images = channel.timeout.images
        channels.images[channel.name] = SandboxImages(
            self._budget, first_byte_seconds=min(first, images), total_seconds=images
        )
        channels.videos[channel.name] = SandboxVideo(total_seconds=total, now=self._now)

    def _add_http(self, channels: Channels, channel: Channel, proxies: ProxyRules) -> None:
        tls = tls_context(channel)
        source = RotatingEndpoints(self._endpoints(channel, tls, proxies))

        def connection(url: str, deadlines: Deadlines) -> HttpChannel:
            there = source if url == channel.base_url else source.at(url)
            return HttpChannel(self._client, there, deadlines, proxy=proxy_url(channel, proxies, url), tls=tls)

        made = {url: connection(url, _deadlines(channel)) for url in channel.addresses}
        http = made[channel.base_url]
        channels.providers[channel.name] = http
        video = _first_in(VIDEO_PROTOCOLS, channel)
        address = channel.address(video or "")
        route = _route(channel, address, tls, proxy_url(channel, proxies, address))
        channels.routes[channel.name] = route
        channels.suspended_keys[channel.name] = lambda: http.suspended_keys
        if text := [
            text_format_at(channel.address(protocol), TEXT_UPSTREAMS[protocol])
            for protocol in channel.protocols
            if protocol in TEXT_UPSTREAMS
        ]:
            elsewhere = {protocol: made[url] for protocol, url in channel.base_urls.items()}
            channels.text[channel.name] = HttpText(http, text, elsewhere=elsewhere)
        for operation in UNARY_OPERATIONS.values():
            served = [protocol for protocol in channel.protocols if protocol in operation.protocols]
            address = channel.address(served[0]) if served else ""
            same = [protocol for protocol in served if channel.address(protocol) == address]
            if codecs := [
                unary_format_at(address, codec) for codec in codecs_of(operation.provider_formats, same, address)
            ]:
                upstream = unary_upstream(operation, made[address], codecs, channel.max_inputs, dialects_at(address))
                channels.unary.add(operation, channel.name, upstream)
        if (image := _first_in(IMAGE_PROTOCOLS, channel)) is not None:
            address = channel.address(image)
            slow = connection(address, image_deadlines(channel))
            channels.images[channel.name] = HttpImages(
                slow, image_protocol(image, address), self._fetcher, self._budget
            )
        if video is not None:
            address = channel.address(video)
            protocol = video_protocol(video, address)
            channels.videos[channel.name] = HttpVideo(made[address], protocol, self._fetcher, route, now=self._now)

    def _endpoints(self, channel: Channel, tls: ssl.SSLContext | None, proxies: ProxyRules) -> list[ProviderEndpoint]:
        """Return an endpoint (address and credentials) for each key of the channel, or one without a key."""
        match channel.auth:
            case ServiceAccountAuth(file=file, scope=scope):
                return [self._of_account(channel, file, scope, tls, proxies)]
            case CommandAuth(command=command, ttl=ttl, timeout=timeout, header=header):
                program = CommandSigner(command, ttl=ttl, timeout_seconds=timeout, header=header, channel=channel.name)
                return [_signed(channel, "", program)]
            case GoogleAuth(scopes=scopes) as auth if (account_file := own_account_file(auth)) is not None:
                return [self._of_account(channel, account_file, " ".join(scopes), tls, proxies)]
            case AwsAuth() | GoogleAuth() | AzureAuth() as auth:
                check_extra(channel, auth)
                return [_signed(channel, "", self._cloud_signers.signer(channel, auth))]
            case JwtAuth():
                return [_token_endpoint(channel, key) for key in channel.api_keys]
            case AccessKeyAuth() as auth:
                return [_signed(channel, key, _access_key_signer(channel, auth, key)) for key in channel.api_keys]
            case BearerAuth() | HeaderAuth() | QueryAuth() | NoAuth() as auth:
                if not channel.api_keys:
                    return [ProviderEndpoint(channel.base_url, channel.headers, query=channel.query)]
                return [_endpoint(channel, auth, key) for key in channel.api_keys]
            case unhandled:
                assert_never(unhandled)

    def _of_account(
        self, channel: Channel, file: str, scope: str, tls: ssl.SSLContext | None, proxies: ProxyRules
    ) -> ProviderEndpoint:
        from umg_grpc.upstream.http.signing.service_account import ServiceAccountSigner  # here: it takes 8 MB

        account = service_account(channel, file)
        proxy = proxy_url(channel, proxies, account.token_uri)
        signer = ServiceAccountSigner(account, self._client, scope=scope, proxy=proxy, tls=tls)
        return _signed(channel, account.key_id, signer)


def _first_in(protocols: Collection[str], channel: Channel) -> str | None:
    return next((name for name in channel.protocols if name in protocols), None)


def _route(channel: Channel, base_url: str, tls: ssl.SSLContext | None, proxy: str | None) -> ProviderRoute:
    """Return the way to files at the URLs that a channel's provider returns. A proxy of the environment is used for the
    provider's own servers only: it would resolve other host names itself, without the check of their addresses.
    """
    both = tls_context(channel)
    if both is not None:
        both.load_default_certs()  # files may be on public hosts
    is_direct = channel.proxy == DIRECT_ROUTE
    own = None if is_direct else channel.proxy
    return ProviderRoute(place_of(base_url), proxy, own, is_direct, tls, both)


def _deadlines(channel: Channel) -> Deadlines:
    timeout = channel.timeout
    return Deadlines(timeout.connect, timeout.first_byte, timeout.idle, timeout.total)


def image_deadlines(channel: Channel) -> Deadlines:
    """Return the time limits for image calls: they have a timeout of their own, because they take longest."""
    timeout = channel.timeout
    return Deadlines(timeout.connect, timeout.images, timeout.images, timeout.images)


def _local_endpoint(local: LocalSource) -> EndpointSource:

    async def endpoint(broken: ProviderEndpoint | None) -> ProviderEndpoint:
        known = await local.wait_ready(LOCAL_START_SECONDS)
        if broken is not None and broken.base_url == known.base_url:
            with suppress(UmgError):  # the connection may have broken without an exit of the process
                known = await local.wait_ready(LOCAL_END_SECONDS, after=known)
        return ProviderEndpoint(known.base_url, known.headers)

    return endpoint


def _endpoint(channel: Channel, auth: BearerAuth | HeaderAuth | QueryAuth | NoAuth, key: str) -> ProviderEndpoint:
    """Return the channel's address with an API key, which each request sends in the way that `auth` names."""
    base_url, headers, query = channel.base_url, channel.headers, channel.query
    if not channel.has_explicit_auth:
        return ProviderEndpoint(base_url, headers, key, query=query)
    match auth:
        case BearerAuth():
            return ProviderEndpoint(
                base_url, {**headers, "Authorization": f"Bearer {key}"}, key_in_headers=key, query=query
            )
        case HeaderAuth(header=header):
            return ProviderEndpoint(base_url, {**headers, header: key}, key_in_headers=key, query=query)
        case QueryAuth(parameter=parameter):
            return ProviderEndpoint(base_url, headers, key_in_headers=key, query={**query, parameter: key})
        case NoAuth():
            return ProviderEndpoint(base_url, headers, query=query)
        case unhandled:
            assert_never(unhandled)


def _signed(channel: Channel, key: str, signer: Signer) -> ProviderEndpoint:
    return ProviderEndpoint(channel.base_url, channel.headers, key_in_headers=key, signer=signer, query=channel.query)


def _token_endpoint(channel: Channel, key: str) -> ProviderEndpoint:
    """Return the channel's address with an API key or, for an access key (`ID:SECRET`), a signer that makes tokens."""
    if ":" not in key:
        return _endpoint(channel, BearerAuth(), key)
    from umg_grpc.upstream.http.signing.jwt_by_secret import ShortTokenSigner  # here: it takes 8 MB

    video = _first_in(VIDEO_PROTOCOLS, channel)
    paths = VIDEO_PROTOCOLS[video].token_paths if video is not None else ""
    prefix = channel.address(video) + paths if video is not None and paths else ""
    return _signed(channel, key, ShortTokenSigner(*_pair(key), prefix=prefix))


def _access_key_signer(channel: Channel, auth: AccessKeyAuth, key: str) -> Signer:
    region, service = signature_scope(auth, channel.base_url) or ("", "")  # the config has checked it
    if auth.scheme == "volcengine":
        return AccessKeySigner(*_pair(key), region=region, service=service)
    access_key, secret, session_token = (*key.split(":", 2), "")[:3]
    return AwsSigner(access_key, secret, session_token, region=region, service=service)


def _pair(key: str) -> tuple[str, str]:
    access_key, _, secret = key.partition(":")
    return access_key, secret
