"""What stands around every handler: the request's id, failures as answers, CORS, the access log."""

import time
from collections.abc import Mapping

import grpc
from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

from http_facade.answers import Whole
from http_facade.calls import MESSAGES_REQUEST_ID, REQUEST_ID_HEADER, exchange, shown
from http_facade.connections import SERVER, Connection
from http_facade.cors import Cors
from http_facade.errors import HTTP_STATUS, error_response, explain, log
from http_facade.handlers import Handler
from http_facade.routes import Route, error_format
from http_facade.settings import Settings
from umg_grpc.errors import come_again
from umg_grpc.v1 import pb
from umg_grpc.wire.models import shape_for

GONE = HTTP_STATUS[pb.ERROR_REASON_CANCELLED]


def front(routes: Mapping[web.AbstractRoute, Route], cors: Cors, settings: Settings) -> Middleware:
    """The one middleware, outermost."""

    @web.middleware
    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        started, status = time.perf_counter(), GONE  # which stays when the caller's leaving cancels the handler
        known = exchange(request)
        route = routes.get(request.match_info.route)
        try:
            try:
                _check_room(request, route, settings)
                response = (cors.preflight(request) if cors.enabled else None) or await handler(request)
            except Exception as failure:
                if request.writer.output_size > 0:  # half an answer cannot be taken back: the connection ends here
                    raise
                response = _refusal(failure, request, route)
            status = response.status
            await _sent(request, response, cors)
        finally:
            if known.admitted:
                settings.gate.leave()
            if not known.refused and not (known.called and settings.calls_are_logged):
                # the route and not the path, in which a caller may have put what is secret
                write = log.info if route is None or route.needs_key else log.debug
                write(
                    "request",
                    method=request.method,
                    route=None if route is None else route.name,
                    status=status,
                    ms=round((time.perf_counter() - started) * 1000, 1),
                    request_id=known.request_id,
                    failure=known.failure,
                )
        return response

    return answer


def _check_room(request: web.Request, route: Route | None, settings: Settings) -> None:
    """Raises UmgError for a call on a connection too many, unless it is of those that watch over the gateway."""
    connection: object = request.protocol
    if isinstance(connection, Connection) and connection.is_spare and (route is None or route.needs_key):
        known = exchange(request)
        known.refused = known.spent = True
        settings.gate.refused("connections")
        raise come_again("the gateway has as many connections as it takes")


async def _sent(request: web.Request, response: web.StreamResponse, cors: Cors) -> None:
    """Sends what the handler left to be sent, and returns when the client has read nearly all of it, or is cut off. A
    call is under way until then, so that those who do not read cannot make the gateway hold any number of answers.
    """
    transport = request.protocol.transport
    if transport is None or transport.is_closing():
        return
    if isinstance(response, Whole) and response.is_plain(request):
        mark(request, response, cors)
        response.send(request, transport)
    else:
        await response.prepare(request)
        await response.write_eof()
    if request.protocol.writing_paused:
        await request.writer.drain()


def mark(request: web.Request, response: web.StreamResponse, cors: Cors) -> None:
    """Adds the headers that every answer has, streams and errors too."""
    response.headers[hdrs.SERVER] = SERVER
    request_id = exchange(request).request_id
    response.headers[REQUEST_ID_HEADER] = request_id
    response.headers[MESSAGES_REQUEST_ID] = request_id
    cors.mark(request.headers, response)


def _refusal(failure: Exception, request: web.Request, route: Route | None) -> web.Response:
    if isinstance(failure, ConnectionError) and (request.transport is None or request.transport.is_closing()):
        return web.Response(status=GONE)  # nobody reads it
    face, writer = (
        (route.format, route.error_format) if route is not None else (error_format(request.method, request.path),) * 2
    )
    face, writer = (shape_for(name, request.headers, request.query) for name in (face, writer))
    error = explain(failure, request, face)
    exchange(request).failure = error.name
    response = error_response(error, writer)
    if isinstance(failure, grpc.aio.AioRpcError):
        for name, value in shown(failure.initial_metadata()).items():
            response.headers.setdefault(name, value)
    if exchange(request).spent:
        response.force_close()
    return response
