"""HTTP client for URLs from callers and from providers' responses. It prevents access to internal hosts (server-side
request forgery). Each host name is resolved once, all its addresses are checked, and the connection is made to these
addresses. Redirects are followed here, each checked in the same way. No credentials, cookies or headers of callers are
used.
"""

import asyncio
import math
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from ipaddress import IPv6Address, ip_address
from types import MappingProxyType
from typing import NamedTuple, Self, TypeAlias
from urllib.parse import urljoin

from aiohappyeyeballs import AddrInfoType

from umg_grpc.base.egress_rules import CheckedUrl, EgressRules, UrlRefusedError, check_addresses, check_url, refused
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.host_list_entries import IpAddress, NetworkPlace
from umg_grpc.upstream.caller_url_dns import Lookups
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.connection import ProviderExchange
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.http1.dns_cache import Addresses
from umg_grpc.upstream.http1.request import OutgoingRequest
from umg_grpc.v1 import pb

MAX_REDIRECTS = 3
REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
CONNECT_SECONDS = 5.0
IDLE_SECONDS = 5.0  # time for which an idle connection is pooled: few URLs are on one host
CHECKED_BYTES = 64
"""Size of the beginning of a file that is checked: the magic numbers of all media types are in it."""
MAX_DOWNLOAD_SECONDS = 3600.0
MIN_SECONDS = 0.001
WHOLE_STATUSES, SELECTED_STATUSES = frozenset({200}), frozenset({200, 206, 304, 416})
"""HTTP statuses that are expected for a request of a whole file, and for a request of a range of it."""
NO_HEADERS: Mapping[str, str] = MappingProxyType({})

FETCHED_OUTCOME, REFUSED_OUTCOME, FAILED_OUTCOME = "fetched", "refused", "failed"
"""Outcomes that are counted."""

Lookup: TypeAlias = Callable[[str, int], Awaitable[Addresses]]
"""Look-up of a name and a port, which raises OSError."""


class FetchedFile(NamedTuple):
    """File that was downloaded completely."""

    body: bytes
    content_type: str
    """Media type as the server declared it, in lower case without parameters; "" without one."""


@dataclass(frozen=True)
class Download:
    """Response to a download whose bytes are still to be read."""

    exchange: ProviderExchange
    field: str | None
    """Path of the request field with the URL, for errors; None for a URL in a provider's response."""

    @property
    def status(self) -> int:
        return self.exchange.response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self.exchange.response.headers

    @property
    def content_type(self) -> str:
        """Media type that the server declares, in lower case without parameters; "" if it declares none."""
        return self.exchange.response.content_type

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(self.exchange.chunks()) as chunks:
                async for chunk in chunks:
                    yield chunk
        except UmgError as error:
            raise _translated(self.field, error) from None


@dataclass(frozen=True, eq=False)
class ProviderRoute:
    """Rules for the URLs that a channel's provider returns: the provider's own servers, and the way to them."""

    own_place: NetworkPlace | None = None
    """Host and port of the provider's API, which are exempt from the rules for URLs; None if there is none."""
    own_proxy: str | None = None
    """URL of the HTTP proxy to the provider's own place, whose address is not checked; None for a direct call."""
    proxy: str | None = None
    """URL of the channel's HTTP proxy for all other places. It resolves names, so that addresses are not checked."""
    is_direct: bool = False
    """Whether the channel's config forbids a proxy, also that of the rules."""
    own_tls: ssl.SSLContext | None = None
    """TLS context for the provider's own place; None for the system's authorities."""
    tls: ssl.SSLContext | None = None
    """TLS context for all other places."""

    def is_own(self, target: CheckedUrl) -> bool:
        """Return whether a URL is on the provider's own server, by host or address, and port."""
        place, address = self.own_place, target.address
        if place is None:
            return False
        by_address = address is not None and place.has_address(address, target.port)
        return by_address or place.has_host(target.host, target.port)


DIRECT_ROUTE = ProviderRoute()
"""Way to the URLs of callers, and of providers whose channel is not served any more."""


class PostResponse(NamedTuple):
    """Status and headers of the response to a guarded POST."""

    status: int
    headers: Mapping[str, str]


class Fetcher:
    """HTTP client for URLs of callers, which refuses URLs of internal hosts. `field` of its methods is the path of the
    request field with the URL; None for a URL in a provider's response. A forbidden URL or a failed download raises
    UmgError. It is INVALID_FIELD if there is a `field`, since no other channel can serve the request, and else
    UPSTREAM_FAILED. Of a server's response, an error only repeats the status.
    """

    def __init__(
        self,
        client: Client,
        rules: EgressRules,
        *,
        lookup: Lookup | None = None,
        count: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Create a client. `client`: HTTP client for this use only, since pooled connections are not checked again;
        `lookup`: DNS resolver, None for `Lookups`; `count`: called with an outcome: `FETCHED_OUTCOME`,
        `REFUSED_OUTCOME` or `FAILED_OUTCOME`.
        """
        self._client = client
        self._rules = rules
        self._count = count
        self._lookup = lookup or Lookups()

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, rules: EgressRules, *, lookup: Lookup | None = None, count: Callable[[str], None] = lambda _: None
    ) -> AsyncGenerator[Self, None]:
        """Return a context manager with a new client that has its own HTTP client; its connections are closed at the
        end. `lookup`: DNS resolver, None for `Lookups`; `count`: called with the outcome of each request.
        """
        async with Client.opened(IDLE_SECONDS) as client:
            yield cls(client, rules, lookup=lookup, count=count)

    def configure(self, rules: EgressRules) -> None:
        """Replace the rules about allowed hosts and limits, for requests that begin from now on."""
        self._rules = rules

    def check(self, url: str, *, field: str | None) -> None:
        """Raise UmgError if the rules forbid the scheme, port or host of a URL. The host name is not resolved."""
        check_url(url, self._rules, field)

    async def fetch(
        self,
        url: str,
        *,
        field: str | None,
        max_bytes: int | None = None,
        seconds: float = math.inf,
        check: Callable[[bytes], None] | None = None,
        reserve: Callable[[int], Awaitable[None]] | None = None,
        route: ProviderRoute = DIRECT_ROUTE,
    ) -> FetchedFile:
        """Download a whole file of at most `max_bytes` within `seconds`; the limits of the rules apply too. Raise
        UmgError. `check`: called with at least the first `CHECKED_BYTES`, to raise UmgError for an unwanted type.
        `reserve`: awaited with the size before the file is read, if the server states it. `route`: way for a URL in a
        provider's response.
        """
        rules = self._rules
        limit = min(rules.max_bytes, max_bytes if max_bytes is not None else rules.max_bytes)
        body, unchecked = bytearray(), check
        async with (
            self.open(url, field=field, seconds=min(rules.timeout, seconds), route=route) as download,
            aclosing(download.chunks()) as chunks,
        ):
            if download.exchange.response.content_length > limit:
                raise _too_large(field, limit)
            if reserve is not None:
                await reserve(download.exchange.response.content_length)
            async for chunk in chunks:
                body += chunk
                if len(body) > limit:
                    raise _too_large(field, limit)
                if unchecked is not None and len(body) >= CHECKED_BYTES:
                    unchecked(bytes(body))
                    unchecked = None
            if unchecked is not None:
                unchecked(bytes(body))
            return FetchedFile(bytes(body), download.content_type)

    @asynccontextmanager
    async def open(
        self,
        url: str,
        *,
        field: str | None,
        headers: Mapping[str, str] = NO_HEADERS,
        seconds: float = MAX_DOWNLOAD_SECONDS,
        route: ProviderRoute = DIRECT_ROUTE,
    ) -> AsyncGenerator[Download, None]:
        """Return a context manager with a download whose bytes are read as they arrive, within `seconds`. Raise
        UmgError. `headers`: `Range`, `If-Range` or `If-None-Match`, with which the statuses 206, 304 and 416 are
        accepted besides 200. `route`: way of the channel, for a URL in its provider's response.
        """
        rules = self._rules
        if (own := route.own_place) is not None:
            rules = replace(rules, allow=(*rules.allow, own))
        expected = SELECTED_STATUSES if headers else WHOLE_STATUSES
        deadline = asyncio.get_running_loop().time() + seconds
        with self._counted():
            exchange = await self._follow(url, field, headers, deadline, rules, route)
            try:
                if exchange.response.status not in expected:
                    raise failed(field, f"its server answered with status {exchange.response.status}")
                exchange.deadline.has_begun = True
                yield Download(exchange, field)
            finally:
                exchange.close()

    async def post(
        self, url: str, *, field: str | None, body: bytes, headers: Mapping[str, str], seconds: float = math.inf
    ) -> PostResponse:
        """Send `body` by POST, and return status and headers of the response; any status is accepted. Redirects are not
        followed. `seconds` applies, or a shorter time limit of the rules. Raise UmgError if there is no response.
        """
        rules = self._rules
        deadline = asyncio.get_running_loop().time() + min(rules.timeout, seconds)
        with self._counted():
            exchange = await self._send("POST", url, field, headers, body, deadline, rules)
            try:
                await exchange.finish()
                return PostResponse(exchange.response.status, exchange.response.headers)
            finally:
                exchange.close()

    async def _follow(
        self,
        url: str,
        field: str | None,
        headers: Mapping[str, str],
        deadline: float,
        rules: EgressRules,
        route: ProviderRoute,
    ) -> ProviderExchange:
        """Send a GET request, follow redirects, and return the last response."""
        for redirects in range(MAX_REDIRECTS + 1):
            try:
                exchange = await self._send("GET", url, field, headers, b"", deadline, rules, route)
            except UrlRefusedError as error:
                if not redirects:
                    raise
                refusal = refused(field, f"redirects to a URL that {error.why}")
                refusal.cause = error.cause
                raise refusal from None
            if exchange.response.status not in REDIRECT_STATUSES:
                return exchange
            location = exchange.response.headers.get("location", "")
            exchange.close()
            try:
                target = urljoin(url, location)
            except ValueError:
                raise failed(field, "its server redirects to no valid URL") from None
            if url.lower().startswith("https:") and target.lower().startswith("http:"):
                raise refused(field, "redirects from https to http")
            url = target
        raise failed(field, f"its server redirects more than {MAX_REDIRECTS} times")

    async def _send(
        self,
        method: str,
        url: str,
        field: str | None,
        headers: Mapping[str, str],
        body: bytes,
        deadline: float,
        rules: EgressRules,
        route: ProviderRoute = DIRECT_ROUTE,
    ) -> ProviderExchange:
        """Check the URL and all addresses of its host, send a request to these addresses, and return the response."""
        target = check_url(url, rules, field)
        loop = asyncio.get_running_loop()
        is_own = route.is_own(target)
        proxy = route.own_proxy if is_own else route.proxy or _proxy_of(target, rules, route)
        addresses = None if proxy else await self._checked_addresses(target, deadline, rules, field)
        left = max(deadline - loop.time(), MIN_SECONDS)
        step = min(left, rules.timeout)
        outgoing = OutgoingRequest(
            url=target.url,
            headers=headers,
            body=body,
            deadlines=Deadlines(min(CONNECT_SECONDS, left), first_byte=step, idle=step, total=left),
            repeatable=method == "GET",
            method=method,
            addresses=addresses,
            proxy=proxy,
            tls=route.own_tls if is_own else route.tls,
        )
        try:
            return await self._client.open(outgoing)
        except UmgError as error:
            raise _translated(field, error) from None
        except ValueError:  # the path cannot be encoded
            raise refused(field, "has characters in it that cannot be sent; encode them") from None

    async def _checked_addresses(
        self, target: CheckedUrl, deadline: float, rules: EgressRules, field: str | None
    ) -> Addresses:
        """Return all addresses of the target's host. Raise UmgError if the rules forbid one."""
        try:
            addresses = await self._addresses(target, deadline)
        except (OSError, UnicodeError) as error:  # TimeoutError is one
            failure = failed(field, "its host could not be found")
            failure.cause = f"{type(error).__name__}: {error}"
            raise failure from None
        check_addresses(target, [_address_of(each) for each in addresses], rules, field)
        return addresses

    async def _addresses(self, target: CheckedUrl, deadline: float) -> Addresses:
        if target.address is not None:
            is_v6 = isinstance(target.address, IPv6Address)
            place = (target.host, target.port, 0, 0) if is_v6 else (target.host, target.port)
            return [(socket.AF_INET6 if is_v6 else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place)]
        async with asyncio.timeout_at(deadline):
            found = await self._lookup(target.lookup_name, target.port)
        if not found:
            raise OSError("the name has no address")
        return found

    @contextmanager
    def _counted(self) -> Generator[None, None, None]:
        """Return a context manager that counts the outcome of the request in its block."""
        try:
            yield
        except UrlRefusedError:
            self._count(REFUSED_OUTCOME)
            raise
        except UmgError:
            self._count(FAILED_OUTCOME)
            raise
        self._count(FETCHED_OUTCOME)


def failed(field: str | None, why: str) -> UmgError:
    """Return the error for a URL whose server failed because of `why`. It is INVALID_FIELD with the caller's `field`,
    or UPSTREAM_FAILED for a URL in a provider's response (`field` is None).
    """
    if field is None:
        message = f"the provider's result could not be fetched: {why}"
        return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.AMBIGUOUS)
    message = f"`{field}`: the file at the URL could not be fetched: {why}"
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=field)


def _too_large(field: str | None, limit: int) -> UmgError:
    error = failed(field, f"it is larger than {limit / 2**20:.4g} MiB")
    return error.with_failure(Failure.TOO_LARGE) if field is None else error


FAULT_TEXTS = {
    pb.ERROR_REASON_UPSTREAM_UNREACHABLE: "its server could not be reached",
    pb.ERROR_REASON_UPSTREAM_CUT: "the connection to its server broke",
    pb.ERROR_REASON_UPSTREAM_TIMEOUT: "its server was too slow",
    pb.ERROR_REASON_UPSTREAM_FAILED: "its server's response is not valid",
}


def _translated(field: str | None, error: UmgError) -> UmgError:
    """Return the error about a caller's URL in place of an error of the HTTP client, whose text is about a provider."""
    why = FAULT_TEXTS.get(error.reason)
    if why is None:  # the gateway has no more connections, for example
        return error
    failure = failed(field, why)
    failure.cause = f"{error.name}: {error.cause or error.message}"
    return failure


def _proxy_of(target: CheckedUrl, rules: EgressRules, route: ProviderRoute) -> str | None:
    found = None if route.is_direct else rules.proxies.of(target.scheme, target.host, target.port, target.address)
    return None if found is None else found.url


def _address_of(found: AddrInfoType) -> IpAddress:
    return ip_address(found[4][0])
