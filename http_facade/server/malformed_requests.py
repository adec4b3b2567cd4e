"""aiohttp's HTTP protocol with JSON errors: the only module that uses more of aiohttp's server than is documented.
aiohttp answers bytes that are no valid HTTP before any middleware, in `RequestHandler.handle_error`, as plain text that
repeats bytes of the request. No documented setting changes this. `tests/unit/http_facade/test_aiohttp.py` fails if
aiohttp no longer calls this method.
"""

from aiohttp import hdrs, web
from aiohttp.http_exceptions import LineTooLong

from http_facade.exchange.error_responses import error_response
from http_facade.exchange.handler_failures import log
from http_facade.exchange.http_exchange import EXCHANGE_KEY, REQUEST_ID_FIELD
from http_facade.exchange.overload_rejections import SERVER_NAME
from http_facade.routes import DEFAULT_FORMAT
from umg_grpc.base.errors import UmgError, internal
from umg_grpc.base.request_ids import request_id_of
from umg_grpc.v1 import pb


class HttpProtocol(web.RequestHandler):
    """aiohttp's HTTP protocol for one connection, with error bodies in JSON."""

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Return the error response to a request that is no valid HTTP, or whose handler failed unexpectedly. aiohttp
        calls this. Raises ConnectionError if a part of the response was already sent.
        """
        known = request.get(EXCHANGE_KEY)  # None for a request that is no valid HTTP
        if known is not None and known.is_begun:
            if not isinstance(exc, ConnectionError):  # the client disconnected
                log.error("answer broke off", exc_info=exc)
            raise ConnectionError("half a response was sent")
        request_id = request_id_of(request.headers.get(REQUEST_ID_FIELD)) if known is None else known.request_id
        if status < 500:
            status = 431 if isinstance(exc, LineTooLong) else status
            reason = "a line of its head is too long" if status == 431 else "it is not HTTP as the standard has it"
            error = UmgError(pb.ERROR_REASON_MALFORMED_BODY, f"the request cannot be read: {reason}")
            log.info("request", status=status, request_id=request_id, failure=type(exc).__name__)
        else:
            error = internal(request_id)
            log.error("unexpected failure", request_id=request_id, exc_info=exc)
        response = error_response(error, DEFAULT_FORMAT, status)
        response.headers.update({hdrs.SERVER: SERVER_NAME, REQUEST_ID_FIELD: request_id})
        response.force_close()
        return response
