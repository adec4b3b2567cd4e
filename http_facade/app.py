"""Builds the HTTP face: the application from the table, and the runner that it needs."""

import asyncio

import grpc
from aiohttp import HttpVersion11, hdrs, web

from http_facade.connections import Connection, Server
from http_facade.cors import Cors
from http_facade.front import front, mark
from http_facade.handlers import handler
from http_facade.listening import listen
from http_facade.routes import ROUTES, Route
from http_facade.settings import Settings
from http_facade.sse import STREAMS

SETTINGS = web.AppKey("settings", Settings)
SERVERS = web.AppKey("servers", list[Server])
"""The one that runs the application, once it does."""

LAST_WORDS_SECONDS = 0.1


def make_app(channel: grpc.aio.Channel, settings: Settings) -> web.Application:
    """The application, which calls the service over `channel`. Run it with `make_runner`."""
    routes: dict[web.AbstractRoute, Route] = {}
    cors = Cors(settings.cors_origins)
    app = web.Application(middlewares=[front(routes, cors, settings)])
    app[SETTINGS] = settings
    for row in ROUTES:
        handle = handler(row, channel, settings)
        for method in ("GET", "HEAD") if row.method == "GET" else (row.method,):
            routes[app.router.add_route(method, row.path, handle, expect_handler=_continue)] = row

    async def prepare(request: web.Request, response: web.StreamResponse) -> None:
        mark(request, response, cors)

    def cut_off() -> None:
        for stream in app[STREAMS]:
            stream.cut_off()
        for connection in app[SERVERS][0].connections if app[SERVERS] else ():
            if isinstance(connection, Connection):
                connection.refuse_unanswered()

    async def drain(_: web.Application) -> None:
        """Calls that outlast the drain are told so just before their connections are closed."""
        last = max(0.0, settings.drain_seconds - LAST_WORDS_SECONDS)
        asyncio.get_running_loop().call_later(last, cut_off)

    app[STREAMS] = set()
    app[SERVERS] = []
    app.on_response_prepare.append(prepare)
    app.on_shutdown.append(drain)
    return app


class Runner(web.AppRunner):
    """A runner whose connections are ours."""

    async def listen(self, host: str, port: int, *, share_port: bool = False) -> int:
        """The port that it listens on, until it ends. Raises OSError where the address cannot be had."""
        return await listen(self, self.app[SERVERS][0].arrivals, host, port, share_port=share_port)

    async def _make_server(self) -> web.Server:
        server = Server(await super()._make_server(), self.app[SETTINGS])
        self.app[SERVERS].append(server)
        return server


def make_runner(app: web.Application) -> Runner:
    """The runner of the application, in the product as in tests.

    It cancels the handler of a client that left, leaves decompression to the face (which knows the limit) and the
    access log to the middleware. `cleanup` waits `Settings.drain_seconds` for the answers under way.
    """
    # aiohttp waits this long twice: before and after it lets go of the uploads that handlers read
    return Runner(app, shutdown_timeout=app[SETTINGS].drain_seconds / 2, access_log=None)


async def _continue(request: web.Request) -> None:
    """Asks a client that waits with its body to send it, unless its length alone will have it refused."""
    waits = request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.version >= HttpVersion11
    if waits and (request.content_length or 0) <= request.app[SETTINGS].body_limit_bytes:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # no part of the answer
