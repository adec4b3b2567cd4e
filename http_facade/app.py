"""HTTP face: the routes of the table, and the runner that serves them."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import grpc
from aiohttp import web

from http_facade.connections import Connections
from http_facade.dispatcher import Dispatcher
from http_facade.handlers import MakeHandler, handler
from http_facade.http_protocol import HttpProtocol
from http_facade.listener import Listener
from http_facade.routes import ROUTES, Route
from http_facade.settings import Settings

LAST_WORDS_SECONDS = 0.1
KEEPALIVE_SECONDS = 620.0  # longer than a load balancer's, so that it does not reuse a connection just closed by us
LINGERING_SECONDS = 30.0  # how long a rejected upload is still read, so that its sender reads the error response


@dataclass(frozen=True)
class App:
    """Application of the HTTP face. Run it with `make_runner`."""

    settings: Settings
    dispatcher: Dispatcher


def make_app(
    channel: grpc.aio.Channel,
    settings: Settings,
    rows: Sequence[Route] = ROUTES,
    make_handler: MakeHandler = handler,
) -> App:
    """Return the application of these routes, which calls the service over `channel`."""
    return App(settings, Dispatcher(channel, settings, rows, make_handler))


class Runner(web.ServerRunner):
    """Runner that serves clients on our own connections.

    It cancels the handler of a client that disconnected, and leaves decompression to the face (which has the limit)
    and the access log to the dispatcher. `cleanup` waits `Settings.drain_seconds` for the answers in flight.
    """

    def __init__(self, app: App) -> None:
        self._settings = app.settings
        # aiohttp waits this long twice: before and after it ends the uploads that handlers still read
        seconds = app.settings.drain_seconds / 2
        super().__init__(web.Server(app.dispatcher.answer, handler_cancellation=True), shutdown_timeout=seconds)
        self._listener: Listener | None = None
        self._connections: Connections | None = None

    async def listen(self, host: str, port: int, *, tls: Callable[[], ssl.SSLContext] | None = None) -> int:
        """Listen until the runner is cleaned up. Return the port. Raises OSError if the address cannot be bound."""
        port = await self.bind(host, port, tls=tls)
        self.accept()
        return port

    async def bind(
        self, host: str, port: int, *, share_port: bool = False, tls: Callable[[], ssl.SSLContext] | None = None
    ) -> int:
        """Bind an address, whose connections wait until `accept`. Return the port. `tls` of the first address applies
        to all: it returns the TLS context of a new connection. Raises OSError as `listen`.
        """
        if self._listener is None:
            self._connections = Connections(self._make_protocol, self._settings)
            self._listener = Listener(self._connections, self._connections.accept_limit, tls)
        return await self._listener.bind(host, port, share_port=share_port)

    def accept(self) -> None:
        """Accept connections of the bound addresses."""
        if self._listener is not None:
            self._listener.accept()

    async def shutdown(self) -> None:
        """Schedule a shutdown error for calls still in flight just before their connections are closed."""
        last = max(0.0, self._settings.drain_seconds - LAST_WORDS_SECONDS)
        asyncio.get_running_loop().call_later(last, self.cut_off)

    async def cleanup(self) -> None:
        """Stop accepting connections, end the answers in flight, and close all connections."""
        if self._listener is not None:
            await self._listener.close()
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
        """End the calls in flight with a shutdown error."""
        for connection in self._connections or ():
            connection.cut_off()


def make_runner(app: App) -> Runner:
    """Return the runner of the application, used by the product and the tests."""
    return Runner(app)
