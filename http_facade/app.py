"""HTTP application: puts the routes of the gateway into an aiohttp server and runs it."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import grpc
from aiohttp import web

from http_facade.dispatcher import Dispatcher
from http_facade.exchange.server_settings import Settings
from http_facade.handlers.route_handlers import MakeHandler, handler
from http_facade.routes import ROUTE_TABLE, Route
from http_facade.server.client_connections import OpenConnections
from http_facade.server.listener import Listener
from http_facade.server.malformed_requests import HttpProtocol

LAST_WORDS_SECONDS = 0.1
KEEPALIVE_SECONDS = 620.0  # longer than a load balancer's, so that it does not reuse a connection just closed by us
LINGERING_SECONDS = 30.0  # how long a rejected upload is still read, so that its sender reads the error response


@dataclass(frozen=True)
class App:
    """HTTP application with its routes and settings, which a `Runner` serves."""

    settings: Settings
    dispatcher: Dispatcher


def make_app(
    channel: grpc.aio.Channel,
    settings: Settings,
    rows: Sequence[Route] = ROUTE_TABLE,
    make_handler: MakeHandler = handler,
) -> App:
    """Return the HTTP application for the routes `rows`, which calls gRPC services over `channel`."""
    return App(settings, Dispatcher(channel, settings, rows, make_handler))


class Runner(web.ServerRunner):
    """HTTP server of an application: listens, serves clients, and drains at a shutdown. A client that disconnects
    cancels its handler. Decompression and access log of aiohttp are off: the handlers decompress bodies up to a limit,
    and the dispatcher logs. `cleanup` waits up to `Settings.drain_seconds` for responses in flight.
    """

    def __init__(self, app: App) -> None:
        self._settings = app.settings
        # aiohttp waits this long twice: before and after it ends the uploads that handlers still read
        seconds = app.settings.drain_seconds / 2
        super().__init__(web.Server(app.dispatcher.respond, handler_cancellation=True), shutdown_timeout=seconds)
        self._listener: Listener | None = None
        self._connections: OpenConnections | None = None

    async def listen(self, host: str, port: int, *, tls: Callable[[], ssl.SSLContext] | None = None) -> int:
        """Listen on an address until `cleanup`, and accept connections. Return the port (the system selects one for 0).
        `tls`: returns the TLS context of the next connection; None serves without TLS. Raises OSError.
        """
        port = await self.bind(host, port, tls=tls)
        self.accept()
        return port

    async def bind(
        self, host: str, port: int, *, share_port: bool = False, tls: Callable[[], ssl.SSLContext] | None = None
    ) -> int:
        """Bind an address; clients wait until `accept` is called. Return the port. `share_port`: other processes may
        bind the same port, too. `tls`: returns the TLS context of the next connection, None serves without TLS; the
        value of the first call applies to all addresses. Raises OSError.
        """
        if self._listener is None:
            self._connections = OpenConnections(self._make_protocol, self._settings)
            self._listener = Listener(self._connections, self._connections.accept_limit, tls)
        return await self._listener.bind(host, port, share_port=share_port)

    def accept(self) -> None:
        """Start to accept connections on the addresses bound by `bind`."""
        if self._listener is not None:
            self._listener.accept()

    async def cleanup(self) -> None:
        """Stop accepting connections, wait for the requests and responses in flight up to the drain time, and close all
        connections. Calls that are unfinished shortly before its end get an error.
        """
        last = max(0.0, self._settings.drain_seconds - LAST_WORDS_SECONDS)
        asyncio.get_running_loop().call_later(last, self.cut_off)
        if self._listener is not None:
            await self._listener.close()
        if self._connections is not None:
            await self._connections.receive_remaining(last)  # aiohttp ignores all bytes received after this
        await super().cleanup()

    def _make_protocol(self) -> HttpProtocol:
        if self.server is None:
            raise RuntimeError("the runner is not set up")
        return HttpProtocol(
            self.server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # documented as no log
            keepalive_timeout=KEEPALIVE_SECONDS,
            lingering_time=LINGERING_SECONDS,
            auto_decompress=False,
        )

    def cut_off(self) -> None:
        """End all calls in flight at once with an error that states that the gateway shuts down."""
        for connection in self._connections or ():
            connection.cut_off()
