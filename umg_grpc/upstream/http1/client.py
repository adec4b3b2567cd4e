"""HTTP/1.1 client with one connection pool for all providers."""

import asyncio
import socket
import ssl
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from typing import Self, TypeVar

import aiohappyeyeballs

from umg_grpc.base.errors import UmgError
from umg_grpc.upstream.event_loop_budget import RoundBudget
from umg_grpc.upstream.http1.connection import PART_BYTES, ProviderConnection, ProviderExchange
from umg_grpc.upstream.http1.connection_errors import ProxyUnreachableError, disconnected, not_connected
from umg_grpc.upstream.http1.deadlines import ExchangeDeadline, LoadAwareTimeout, LoopDelay
from umg_grpc.upstream.http1.decompression import inflate
from umg_grpc.upstream.http1.detached_context import without_call
from umg_grpc.upstream.http1.dns_cache import Addresses, DnsCache
from umg_grpc.upstream.http1.proxy_tunnel import TunnelProtocol
from umg_grpc.upstream.http1.request import ConnectionTarget, OutgoingRequest, Server, request_to
from umg_grpc.upstream.http1.response import Fetched
from umg_grpc.v1 import pb

SECOND_ADDRESS_SECONDS = 0.25  # time for which one address of a host is tried alone (RFC 8305)
END_SECONDS = 1
STALE_SECONDS = 2.0  # time, one round trip, in which a write to a closed connection fails

SomeProtocol = TypeVar("SomeProtocol", bound=asyncio.Protocol)


class Client:
    """HTTP client with a connection pool; one for each process. Redirects are not followed.

    A provider may close an idle connection while the gateway writes to it. The call is then repeated on a new
    connection if it is `repeatable`; otherwise not, since the provider may have processed the request.
    """

    def __init__(self, idle: float = 60, lateness: LoopDelay | None = None) -> None:
        """Create a client in the running event loop. `idle`: seconds for which an unused connection stays in the pool.
        `lateness`: measured delay of the event loop, by which all time limits except `total` are extended.
        """
        self._loop = asyncio.get_running_loop()
        self._idle = idle
        self._lateness = lateness or LoopDelay()
        self._all: set[ProviderConnection] = set()
        self._pooled: defaultdict[ConnectionTarget, list[ProviderConnection]] = defaultdict(list)  # idle connections
        self._dns = DnsCache()
        self._closed: asyncio.Future[None] | None = None
        self.streams = RoundBudget()
        self.decodes = asyncio.Semaphore(1)
        """Turn to decode a large response with files."""
        self.reads = asyncio.Semaphore(1)
        """Turn to read a part of a large response."""

    @classmethod
    @asynccontextmanager
    async def opened(cls, idle: float = 60) -> AsyncGenerator[Self, None]:
        """Return a context manager with a client that measures the delay of the event loop; its connections are
        closed at the end. `idle`: seconds for which an unused connection stays in the pool.
        """
        lateness = LoopDelay()
        client = cls(idle, lateness)
        lateness.start()
        try:
            yield client
        finally:
            lateness.close()
            await client.close()

    async def fetch(self, call: OutgoingRequest) -> Fetched:
        """Send a request, and return the whole response with any status; the body of an error may be incomplete. Raise
        UmgError: UPSTREAM_UNREACHABLE if nothing was sent, UPSTREAM_CUT if the connection broke, UPSTREAM_TIMEOUT or
        DEADLINE_EXCEEDED with the name of the time limit, UPSTREAM_FAILED for headers of more than 64 KiB or a body of
        more than `max_bytes`.
        """
        response = (await self.open(call, streams=False)).response
        if response.encodings or response.refused:
            return await inflate(response, call.max_bytes)
        body = bytes(response.body)
        response.body.clear()
        return Fetched(response.status, response.headers, body)

    async def open(self, call: OutgoingRequest, *, streams: bool = True) -> ProviderExchange:
        """Send a request, and return the exchange when the headers of the response have arrived (the whole response
        without `streams`). Raise UmgError for a broken connection, an exceeded time limit or too large a response. The
        caller must close the exchange; closing it before the end of the body closes the connection, which stops the
        provider.
        """
        started, limits = self._loop.time(), call.deadlines
        deadline = ExchangeDeadline(limits, self._lateness, started + limits.total, started + limits.first_byte)
        origin, head = call.common or request_to(call.url, call.headers, call.proxy, call.tls, call.method)
        size = len(call.body)
        length = b"Content-Length: %d\r\n" % size if size or call.method == "POST" else b""
        head = b"%b%b%b\r\n" % (head, length, call.head_lines)
        pooled = self._take(origin) if call.reuses else None
        connection = pooled or await self._connect(origin, deadline, call.addresses, streams=streams)
        while True:
            exchange = connection.begin(deadline, None if streams else call.max_bytes, has_body=call.method != "HEAD")
            try:
                if call.on_send is not None:
                    call.on_send()
                if size <= PART_BYTES:
                    connection.transport.write(head + call.body)
                else:
                    await exchange.send(head, call.body)
                await exchange.receive(whole=not streams)
                return exchange
            except UmgError as fault:
                exchange.close()
                is_cut = fault.reason == pb.ERROR_REASON_UPSTREAM_CUT and not connection.answered
                is_stale = is_cut and connection is pooled and self._loop.time() - started <= STALE_SECONDS
                if not is_stale or self._closed is not None:
                    raise
                self._close_pooled(origin)
                if not call.repeatable:
                    raise disconnected(f"stale: {fault.cause}") from None
            except BaseException:
                exchange.close()
                raise
            connection = await self._connect(origin, deadline, call.addresses, streams=streams)

    async def close(self) -> None:
        """Close all connections, including those in use, and wait until they are closed."""
        self._closed = self._loop.create_future()
        await self._dns.close()
        for connection in tuple(self._all):
            connection.close()
        if self._all:
            await asyncio.wait({self._closed}, timeout=END_SECONDS)

    @cached_property
    def _system_tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _take(self, origin: ConnectionTarget) -> ProviderConnection | None:
        """Return the idle connection that was used last, so that others can expire; None if there is none."""
        pooled = self._pooled.get(origin)
        while pooled:
            connection = pooled.pop()
            if not connection.closed:
                return connection
        return None

    def _close_pooled(self, origin: ConnectionTarget) -> None:
        """Close all idle connections to an origin after the provider closed one: after a restart, all are closed."""
        for connection in self._pooled.pop(origin, ()):
            connection.close()

    async def _connect(
        self, origin: ConnectionTarget, deadline: ExchangeDeadline, addresses: Addresses | None, *, streams: bool
    ) -> ProviderConnection:
        name, seconds = "connect", deadline.deadlines.connect
        if streams and (left := deadline.first - self._loop.time()) < seconds:
            name, seconds = "first_byte", left
        try:
            async with (
                asyncio.timeout_at(deadline.end) as ending,
                LoadAwareTimeout(seconds, self._lateness) as connecting,
            ):
                connection = await self._connected(origin, addresses)
        except (OSError, UnicodeError) as error:  # TimeoutError and ssl.SSLError are OSErrors
            if connecting.expired() or ending.expired():
                raise deadline.deadlines.late("total" if ending.expired() else name, sent=False) from None
            raise not_connected(error) from None
        if not connection.closed:
            self._all.add(connection)
        if self._closed is not None:
            connection.close()
        return connection

    async def _connected(self, origin: ConnectionTarget, addresses: Addresses | None) -> ProviderConnection:
        """Return a new connection to an origin, through its proxy if it has one."""
        connection = ProviderConnection(self, origin, self._idle)
        if (proxy := origin.proxy) is None:
            await self._dial(origin.server, origin.tls, lambda: connection, addresses)
            return connection
        if not origin.server.secure:
            await self._dial_proxy(proxy, origin.tls, lambda: connection)
            return connection
        transport, tunnel = await self._dial_proxy(proxy, origin.tls, TunnelProtocol)
        try:
            transport.write(origin.connect)
            await tunnel.connected()
            await connection.start_tls(transport, origin.tls or self._system_tls)
        except BaseException:
            transport.abort()
            raise
        return connection

    async def _dial_proxy(
        self, proxy: Server, tls: ssl.SSLContext | None, protocol: Callable[[], SomeProtocol]
    ) -> tuple[asyncio.Transport, SomeProtocol]:
        try:
            return await self._dial(proxy, tls, protocol)
        except (OSError, UnicodeError) as error:
            failed = ProxyUnreachableError(f"no connection to the proxy: {type(error).__name__}: {error}")
            failed.errno = getattr(error, "errno", None)
            raise failed from None

    async def _dial(
        self,
        server: Server,
        tls: ssl.SSLContext | None,
        protocol: Callable[[], SomeProtocol],
        addresses: Addresses | None = None,
    ) -> tuple[asyncio.Transport, SomeProtocol]:
        """Open a connection to a server, with TLS if the server uses it."""
        try:
            if addresses is None:
                addresses = await self._dns.addresses(server.host, server.port)
            opened = await aiohappyeyeballs.start_connection(
                addresses, happy_eyeballs_delay=SECOND_ADDRESS_SECONDS, interleave=1
            )
            with suppress(OSError):  # it was reset already, which `create_connection` reports
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # create_connection closes the socket itself when it fails or is cancelled
            # the socket must not be closed before it returns: uvloop would then close its descriptor twice
            connecting = self._loop.create_connection(
                protocol,
                sock=opened,
                ssl=(tls or self._system_tls) if server.secure else None,
                server_hostname=server.tls_name,
            )
            return await without_call(connecting)
        except (OSError, UnicodeError):
            self._dns.forget(server.host, server.port)
            raise

    # callbacks of the connections

    def keep(self, connection: ProviderConnection) -> None:
        self._pooled[connection.origin].append(connection)

    def lost(self, connection: ProviderConnection) -> None:
        self._all.discard(connection)
        pooled = self._pooled[connection.origin]
        with suppress(ValueError):  # it had an exchange in flight
            pooled.remove(connection)
        if not pooled:
            del self._pooled[connection.origin]
        if self._closed is not None and not self._all and not self._closed.done():
            self._closed.set_result(None)
