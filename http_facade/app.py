"""HTTP face: the aiohttp application with the routes of the table, and the runner that serves it."""

import asyncio
from collections.abc import Sequence

import grpc
from aiohttp import HttpVersion11, hdrs, web

from http_facade.connections import Connections
from http_facade.cors import Cors
from http_facade.event_stream import STREAMS
from http_facade.grpc_calls import exchange
from http_facade.handlers import handler
from http_facade.http_protocol import HttpProtocol
from http_facade.listener import Listener
from http_facade.middleware import add_common_headers, make_middleware
from http_facade.routes import ROUTES, Route
from http_facade.settings import Settings

SETTINGS = web.AppKey("settings", Settings)
LAST_WORDS_SECONDS = 0.1
KEEPALIVE_SECONDS = 620.0  # longer than a load balancer's, so that it does not reuse a connection just closed by us
LINGERING_SECONDS = 30.0  # how long a rejected upload is still read, so that its sender reads the error response


def make_app(channel: grpc.aio.Channel, settings: Settings, rows: Sequence[Route] = ROUTES) -> web.Application:
    """Return the application of these routes, which calls the service over `channel`. Run it with `make_runner`."""
    routes: dict[web.AbstractRoute, Route] = {}
    cors = Cors(settings.cors_origins)
    app = web.Application(middlewares=[make_middleware(routes, cors, settings)])
    app[SETTINGS] = settings
    for row in rows:
        handle = handler(row, channel, settings)
        for method in ("GET", "HEAD") if row.method == "GET" else (row.method,):
            routes[app.router.add_route(method, row.path, handle, expect_handler=_send_continue)] = row

    async def prepare(request: web.Request, response: web.StreamResponse) -> None:
        known = exchange(request)
        known.is_begun = True
        add_common_headers(request, response, known.request_id, cors)

    app[STREAMS] = set()
    app.on_response_prepare.append(prepare)
    return app


class Runner(web.AppRunner):
    """Runner that serves clients on our own connections.

    It cancels the handler of a client that disconnected, and leaves decompression to the face (which knows the limit)
    and the access log to the middleware. `cleanup` waits `Settings.drain_seconds` for the answers in flight.
    """

    def __init__(self, app: web.Application) -> None:
        # aiohttp waits this long twice: before and after it ends the uploads that handlers still read
        seconds = app[SETTINGS].drain_seconds / 2
        super().__init__(app, handler_cancellation=True, shutdown_timeout=seconds)
        self._listener: Listener | None = None
        self._connections: Connections | None = None

    async def listen(self, host: str, port: int, *, share_port: bool = False) -> int:
        """Listen until the runner is cleaned up. Return the port. Raises OSError if the address cannot be bound."""
        if self._listener is None:
            self._connections = Connections(self._make_protocol, self.app[SETTINGS])
            self._listener = Listener(self._connections, self._connections.accept_limit)
        return await self._listener.listen(host, port, share_port=share_port)

    async def shutdown(self) -> None:
        """Schedule a shutdown error for calls still in flight just before their connections are closed."""
        last = max(0.0, self.app[SETTINGS].drain_seconds - LAST_WORDS_SECONDS)
        asyncio.get_running_loop().call_later(last, self._cut_off)
        await super().shutdown()

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

    def _cut_off(self) -> None:
        for stream in self.app[STREAMS]:
            stream.cut_off()
        for connection in self._connections or ():
            connection.reject_unanswered()


def make_runner(app: web.Application) -> Runner:
    """Return the runner of the application, used by the product and the tests."""
    return Runner(app)


async def _send_continue(request: web.Request) -> None:
    """Answer `Expect: 100-continue` with 100 Continue, unless the body is longer than the limit."""
    waits = request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.version >= HttpVersion11
    transport, limit = request.transport, request.app[SETTINGS].body_limit_bytes
    if transport is not None and waits and (request.content_length or 0) <= limit:
        transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
