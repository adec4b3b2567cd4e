"""Dispatcher: passes requests to the handlers of their routes, and adds errors, CORS headers and the access log."""

import time
from collections.abc import Mapping, Sequence

import grpc
from aiohttp import HttpVersion11, hdrs, web

from http_facade.connect.connect_protocol import CONNECT_PROTOCOL
from http_facade.connect.grpc_web import GRPC_WEB, is_grpc_web
from http_facade.exchange import caller_credentials
from http_facade.exchange.cors import CorsRules
from http_facade.exchange.direct_json_response import WholeResponse
from http_facade.exchange.error_responses import error_response
from http_facade.exchange.grpc_service_calls import check_key, response_headers
from http_facade.exchange.handler_failures import explain, log
from http_facade.exchange.http_exchange import EXCHANGE_KEY, REQUEST_ID_FIELD, HttpExchange
from http_facade.exchange.request_bodies import declared_bytes
from http_facade.exchange.response_head import SentResponse, begin_response
from http_facade.exchange.server_settings import Settings
from http_facade.exchange.unknown_paths import error_format
from http_facade.handlers.route_handlers import MakeHandler, handler
from http_facade.path_router import PathRouter
from http_facade.routes import Route
from http_facade.server.client_connections import ServerConnection
from umg_grpc.base.errors import UmgError, overloaded
from umg_grpc.base.refused_request import RefusedRequest
from umg_grpc.base.request_ids import request_id_of
from umg_grpc.base.response_memory_reservation import CALL_MEMORY, CallMemory
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.core.json_decoding import invalid
from umg_grpc.wire.errors.http_status import HTTP_STATUS
from umg_grpc.wire.model_lists import shape_for

FORM_REASONS = frozenset({pb.ERROR_REASON_INVALID_FIELD, pb.ERROR_REASON_MISSING_FIELD, pb.ERROR_REASON_MALFORMED_BODY})
"""Reasons of errors that a handler may find in the head of a request before the API key is checked."""
CLIENT_CLOSED_REQUEST = HTTP_STATUS[pb.ERROR_REASON_CANCELLED]
PASSED_ON = ("idempotency-key", "webhook-", "x-umg-", "anthropic-", "openai-", "x-goog-", "connect-", "grpc-", "trace")
"""Beginnings of the lower-case names of headers whose values are passed on. All others are only compared."""


class Dispatcher:
    """Entry point of all HTTP requests: calls the handler of the request's route; a failure becomes an error."""

    def __init__(
        self, channel: grpc.aio.Channel, settings: Settings, rows: Sequence[Route], make_handler: MakeHandler = handler
    ) -> None:
        """Create a dispatcher for the routes `rows`, whose handlers call gRPC services over `channel`."""
        self._settings = settings
        self._cors = CorsRules(settings.cors_origins)
        self._models = rpc.ModelServiceStub(channel)
        self._router = PathRouter(rows, lambda row: make_handler(row, channel, settings))

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request, and write its access log line unless the service logs the call. An exception after a part
        of the response was sent is raised, so that aiohttp closes the connection.
        """
        status = CLIENT_CLOSED_REQUEST  # logged if the handler is cancelled because the caller disconnected
        if (transport := request.transport) is None:
            return web.Response(status=status)  # the client disconnected and reads no response
        if not isinstance(connection := transport.get_protocol(), ServerConnection):
            raise TypeError("only connections of `Runner.listen` are served: no other has limits")
        request_id = request_id_of(request.headers.get(REQUEST_ID_FIELD))
        exchange = connection.exchange = HttpExchange(request, connection, request_id, connection.body)
        connection.body = None
        CALL_MEMORY.set(memory := CallMemory())
        route: Route | None = None
        try:
            if request.version.major != 1:
                exchange.failure = "UnsupportedVersionError"
                status = connection.reject_version(exchange)
                return web.Response(status=status)  # not sent, since the connection is closed
            found = self._router.exact.get((request.method, request.rel_url.raw_path))
            route, handle, exchange.parameters = found or await self._router.find(request)
            try:
                check_headers(exchange)
                is_special = connection.is_over_limit or self._cors.enabled or hdrs.EXPECT in request.headers
                response = (self._begin_special(exchange, route) if is_special else None) or await handle(exchange)
            except Exception as failure:
                if exchange.is_begun:
                    raise
                reported = await self._key_failure(failure, exchange, route) or failure
                response = _make_error_response(reported, exchange, route)
                failure.__traceback__ = None  # its frames hold the request, and that of an unknown path also the error
            status = response.status
            if isinstance(response, WholeResponse):
                response = await response.send(exchange)
            elif not isinstance(response, SentResponse):
                await _send(exchange, response)
            connection.unanswered -= 1  # the next bytes may begin a request
            return response
        except Exception:
            request[EXCHANGE_KEY] = exchange  # for the protocol, which answers in place of the handler
            raise
        finally:
            connection.exchange = None
            memory.release()
            if exchange.admitted:
                self._settings.load_shedder.leave()
            if exchange.refusal is not None and route is not None and not exchange.is_called:
                self._note_refused(exchange, route, exchange.refusal)
            if not exchange.rejected and not (exchange.is_called and self._settings.calls_are_logged):
                self._log(exchange, route, status)

    async def _key_failure(self, failure: Exception, exchange: HttpExchange, route: Route | None) -> Exception | None:
        """Return the error of the caller's API key, which is reported before an invalid query or header. None if the
        key is valid, was already checked, or is not needed.
        """
        is_form = isinstance(failure, UmgError) and failure.reason in FORM_REASONS
        was_checked = exchange.is_called or exchange.is_key_checked or exchange.authorization
        if not is_form or route is None or not route.needs_key or was_checked:
            return None
        try:
            await check_key(self._models, exchange, route.format)
        except (UmgError, grpc.aio.AioRpcError) as error:
            return error.with_traceback(None)
        return None

    def _begin_special(self, exchange: HttpExchange, route: Route | None) -> web.Response | None:
        """Apply the rules for connections above the limit, `Expect: 100-continue`, and cross-origin requests."""
        request = exchange.request
        if exchange.connection.is_over_limit and (route is None or not route.is_probe):
            exchange.rejected = exchange.is_body_unread = True
            self._settings.load_shedder.refused("connections")
            raise overloaded("the gateway has as many connections as it takes")
        if hdrs.EXPECT in request.headers and route is not None:
            self._send_continue(request)
        if not self._cors.enabled:
            return None
        exchange.cors = self._cors
        return self._cors.preflight(request)

    def _log(self, exchange: HttpExchange, route: Route | None, status: int) -> None:
        """Write the access log line of a request that the service has not logged. `route`: None for an unknown path."""
        trace = exchange.trace_context
        write = log.debug if route is not None and route.is_probe else log.info
        write(
            "request",
            method=exchange.request.method,
            # the route and not the path, which may contain a secret of the caller
            route=None if route is None else route.name,
            status=status,
            ms=round((time.monotonic() - exchange.began_at) * 1000, 1),
            request_id=exchange.request_id,
            trace_id=trace.trace_id if trace is not None else None,
            failure=exchange.failure,
            **self._key_fields(exchange.request, route),
        )

    def _note_refused(self, exchange: HttpExchange, route: Route, error: UmgError) -> None:
        if route.needs_key and route.format != "admin" and error.reason != pb.ERROR_REASON_CANCELLED:
            address, seconds = exchange.request.remote or "", time.monotonic() - exchange.began_at
            model, body = exchange.model or exchange.deployment, exchange.refused_body
            ids = (exchange.request_id, error, exchange.authorization or "")
            self._settings.note_refused(RefusedRequest(route.format, *ids, address, model, body, seconds))

    def _key_fields(self, request: web.BaseRequest, route: Route | None) -> Mapping[str, str]:
        if route is None or not route.needs_key:
            return {}
        try:
            authorization = caller_credentials.credentials(request.headers, request.query, route.format)
        except UmgError:
            return {}
        return {} if authorization is None else self._settings.key_fields(authorization)

    def _send_continue(self, request: web.BaseRequest) -> None:
        waits = request.headers[hdrs.EXPECT].lower() == "100-continue" and request.version >= HttpVersion11
        transport, limit = request.transport, self._settings.body_limit_bytes
        if transport is not None and waits and declared_bytes(request) <= limit:
            transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


async def _send(exchange: HttpExchange, response: web.StreamResponse) -> None:
    transport = exchange.request.transport
    if transport is not None and not transport.is_closing():
        if not response.prepared:
            await begin_response(exchange, response)
        await response.write_eof()


def _make_error_response(failure: Exception, exchange: HttpExchange, route: Route | None) -> web.Response:
    request = exchange.request
    if isinstance(failure, ConnectionError) and (request.transport is None or request.transport.is_closing()):
        return web.Response(status=CLIENT_CLOSED_REQUEST)  # the client disconnected and reads no response
    face, writer = (
        (route.format, route.error_format) if route is not None else (error_format(request.method, request.path),) * 2
    )
    face, writer = (shape_for(name, request.headers, request.query) for name in (face, writer))
    if writer == CONNECT_PROTOCOL and is_grpc_web(request.headers.get(hdrs.CONTENT_TYPE, "")):
        writer = GRPC_WEB
    error = explain(failure, exchange, face)
    exchange.failure, exchange.refusal = error.name, error
    response = error_response(error, writer)
    if isinstance(failure, grpc.aio.AioRpcError):
        for name, value in response_headers(failure.trailing_metadata()).items():
            response.headers.setdefault(name, value)
    if not exchange.may_retry:
        response.headers["x-should-retry"] = "false"
    if exchange.is_body_unread or hdrs.UPGRADE in response.headers:
        response.force_close()
    return response


def check_headers(exchange: HttpExchange) -> None:
    """Check that the headers whose values are passed on are UTF-8. Raise UmgError(INVALID_FIELD) with the name of a
    header that is not: its invalid bytes would become surrogates, which neither a message nor a database can contain.
    """
    headers = exchange.request.headers
    if "".join(headers.values()).isascii():
        return
    for name, value in headers.items():
        if not value.isascii() and name.lower().startswith(PASSED_ON) and _has_surrogate(value):
            exchange.is_body_unread = True
            raise invalid(name.lower(), "its value is not UTF-8; send it encoded as UTF-8, or in ASCII characters only")


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
