"""Middleware around every handler: connection limit, error responses, CORS, common headers, access log."""

import time
from collections.abc import Mapping

import grpc
from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

from http_facade.connections import Connection, connection_of
from http_facade.cors import Cors
from http_facade.errors import error_response, explain, log
from http_facade.grpc_calls import MESSAGES_REQUEST_ID, REQUEST_ID_HEADER, Exchange, exchange, response_headers
from http_facade.handlers import Handler
from http_facade.overload_refusals import SERVER
from http_facade.routes import Route, error_format
from http_facade.settings import Settings
from umg_grpc.errors import overloaded
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.http_status import HTTP_STATUS
from umg_grpc.wire.models import shape_for

CLIENT_CLOSED_REQUEST = HTTP_STATUS[pb.ERROR_REASON_CANCELLED]


def make_middleware(routes: Mapping[web.AbstractRoute, Route], cors: Cors, settings: Settings) -> Middleware:
    """Return the only middleware of the application."""

    @web.middleware
    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        started = time.perf_counter()
        status = CLIENT_CLOSED_REQUEST  # logged if the handler is cancelled because the caller disconnected
        known = exchange(request)
        route = routes.get(request.match_info.route)
        connection = connection_of(request)
        if connection is None:
            return web.Response(status=CLIENT_CLOSED_REQUEST)  # the client disconnected and reads no response
        connection.request = request
        try:
            if request.version.major != 1:
                known.failure = "UnsupportedVersionError"
                status = connection.reject_version(request)
                return web.Response(status=status)  # not sent, since the connection is closed
            try:
                _check_connection_limit(connection, known, route, settings)
                response = (cors.preflight(request) if cors.enabled else None) or await handler(request)
            except Exception as failure:
                if known.is_begun:  # a part of the answer was sent: aiohttp closes the connection
                    raise
                response = _make_error_response(failure, request, route)
            status = response.status
            await _send(request, response)
            connection.end_answer()
        finally:
            connection.request = None
            if known.admitted:
                settings.gate.leave()
            if not known.rejected and not (known.is_called and settings.calls_are_logged):
                # the route and not the path, which may contain a secret of the caller
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


def _check_connection_limit(connection: Connection, known: Exchange, route: Route | None, settings: Settings) -> None:
    """Raise UmgError for a request on a connection beyond the limit, unless it is a health check or scrape of
    metrics.
    """
    if connection.is_over_limit and (route is None or route.needs_key):
        known.rejected = known.is_body_unread = True
        settings.gate.refused("connections")
        raise overloaded("the gateway has as many connections as it takes")


async def _send(request: web.Request, response: web.StreamResponse) -> None:
    """Send the rest of the response, and wait until the client has read nearly all of it or is disconnected.

    The call keeps its slot of the load shedder until then, which limits the number of unread answers in memory.
    """
    transport = request.transport
    if transport is not None and not transport.is_closing():
        await response.prepare(request)
        await response.write_eof()


def add_common_headers(request: web.Request, response: web.StreamResponse, request_id: str, cors: Cors) -> None:
    """Add the headers that every response has, streams and errors included."""
    response.headers[hdrs.SERVER] = SERVER
    response.headers[REQUEST_ID_HEADER] = request_id
    response.headers[MESSAGES_REQUEST_ID] = request_id
    cors.add_headers(request.headers, response)


def _make_error_response(failure: Exception, request: web.Request, route: Route | None) -> web.Response:
    if isinstance(failure, ConnectionError) and (request.transport is None or request.transport.is_closing()):
        return web.Response(status=CLIENT_CLOSED_REQUEST)  # the client disconnected and reads no response
    face, writer = (
        (route.format, route.error_format) if route is not None else (error_format(request.method, request.path),) * 2
    )
    face, writer = (shape_for(name, request.headers, request.query) for name in (face, writer))
    error = explain(failure, request, face)
    exchange(request).failure = error.name
    response = error_response(error, writer)
    if isinstance(failure, grpc.aio.AioRpcError):
        for name, value in response_headers(failure.trailing_metadata()).items():
            response.headers.setdefault(name, value)
    if exchange(request).is_body_unread:
        response.force_close()
    return response
