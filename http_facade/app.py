"""Builds the HTTP face: the application from the table, and the runner that it needs."""

import asyncio

import grpc
from aiohttp import HttpVersion11, hdrs, web
from aiohttp.http_exceptions import LineTooLong

from http_facade.calls import REQUEST_ID_HEADER, exchange
from http_facade.cors import Cors
from http_facade.errors import error_response, log
from http_facade.front import SERVER, front, mark
from http_facade.handlers import handler, shutting_down
from http_facade.routes import DEFAULT_FORMAT, ROUTES, Route, error_format
from http_facade.settings import Settings
from http_facade.sse import STREAMS
from umg_grpc.errors import UmgError, internal
from umg_grpc.v1 import pb

SETTINGS = web.AppKey("settings", Settings)
SERVERS = web.AppKey("servers", list[web.Server])
"""The one that runs the application, once it does."""

KEEPALIVE_SECONDS = 620.0  # longer than a load balancer's in front of us, or it meets connections that we just closed
LINGERING_SECONDS = 30.0  # how long a refused upload is read on, so that its sender gets to read the refusal
LAST_WORDS_SECONDS = 0.1


def make_app(channel: grpc.aio.Channel, settings: Settings) -> web.Application:
    """The application, which calls the service over `channel`. Run it with `make_runner`."""
    routes: dict[web.AbstractRoute, Route] = {}
    cors = Cors(settings.cors_origins)
    app = web.Application(middlewares=[front(routes, cors, calls_are_logged=settings.calls_are_logged)])
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


def make_runner(app: web.Application) -> web.AppRunner:
    """The runner of the application, in the product as in tests.

    It cancels the handler of a client that left, leaves decompression to the face (which knows the limit) and the
    access log to the middleware. `cleanup` waits `Settings.drain_seconds` for the answers under way.
    """
    # aiohttp waits this long twice: before and after it lets go of the uploads that handlers read
    return Runner(app, shutdown_timeout=app[SETTINGS].drain_seconds / 2, access_log=None)


class Runner(web.AppRunner):
    """A runner whose connections answer even what is not HTTP in JSON."""

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        server = Server(
            made.request_handler,
            request_factory=made.request_factory,
            handler_cancellation=True,
            loop=asyncio.get_running_loop(),
            access_log=None,
            keepalive_timeout=KEEPALIVE_SECONDS,
            lingering_time=LINGERING_SECONDS,
            auto_decompress=False,
        )
        self.app[SERVERS].append(server)
        return server


class Server(web.Server):
    """Makes our connections."""

    def __call__(self) -> web.RequestHandler:
        return Connection(self, loop=self._loop, **self._kwargs)


class Connection(web.RequestHandler):
    """A client's connection."""

    __slots__ = ()

    def refuse_unanswered(self) -> None:
        """Answers, whatever its handler does, a call of which nothing was said yet; nothing is sent after it."""
        request, transport = self._current_request, self.transport
        if request is None or transport is None or transport.is_closing() or request.writer.output_size > 0:
            return
        refusal = error_response(shutting_down(), error_format(request.method, request.path))
        body = refusal.body if isinstance(refusal.body, bytes) else b""
        head = [
            f"HTTP/1.1 {refusal.status} Service Unavailable",
            f"content-type: {refusal.content_type}",
            f"content-length: {len(body)}",
            f"{REQUEST_ID_HEADER}: {exchange(request).request_id}",
            "retry-after: 1",
            "connection: close",
        ]
        transport.write("\r\n".join([*head, "", ""]).encode() + body)
        transport.close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to what no handler saw (it is not HTTP) or could answer (its answer was under way)."""
        if request.writer.output_size > 0:
            if not isinstance(exc, ConnectionError):  # which is the client's leaving
                log.error("answer broke off", exc_info=exc)
            raise ConnectionError("half an answer was sent")
        asked = exchange(request).request_id
        if status < 500:
            status = 431 if isinstance(exc, LineTooLong) else status
            what = "a line of its head is too long" if status == 431 else "it is not HTTP as the standard has it"
            error = UmgError(pb.ERROR_REASON_MALFORMED_BODY, f"the request cannot be read: {what}")
            log.info("request", status=status, request_id=asked, failure=type(exc).__name__)
        else:
            error = internal(asked)
            log.error("unexpected failure", request_id=asked, exc_info=exc)
        response = error_response(error, DEFAULT_FORMAT, status)
        response.headers.update({hdrs.SERVER: SERVER, REQUEST_ID_HEADER: asked})
        response.force_close()
        return response


async def _continue(request: web.Request) -> None:
    """Asks a client that waits with its body to send it, unless its length alone will have it refused."""
    waits = request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.version >= HttpVersion11
    if waits and (request.content_length or 0) <= request.app[SETTINGS].body_limit_bytes:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # no part of the answer
