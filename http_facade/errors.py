"""Failures as HTTP answers: reason -> status, headers, and the body of the route's format."""

import math
from collections.abc import Callable

import grpc
import structlog
from aiohttp import hdrs, web

from http_facade.calls import exchange
from http_facade.routes import unknown_action, unserved, without_slash
from umg_grpc.errors import UmgError, internal
from umg_grpc.status import from_rpc
from umg_grpc.v1 import pb
from umg_grpc.wire import EMBEDDING_FORMATS, FORMATS, RERANK_FORMATS
from umg_grpc.wire.messages.errors import encode_count_error
from umg_grpc.wire.models import MODEL_LISTS

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("http")

HTTP_STATUS = {
    pb.ERROR_REASON_UNSPECIFIED: 500,
    pb.ERROR_REASON_MALFORMED_BODY: 400,
    pb.ERROR_REASON_INVALID_FIELD: 400,
    pb.ERROR_REASON_MISSING_FIELD: 400,
    pb.ERROR_REASON_UNSUPPORTED_FIELD: 400,
    pb.ERROR_REASON_UNTRANSLATABLE: 400,
    pb.ERROR_REASON_CONTEXT_TOO_LONG: 400,
    pb.ERROR_REASON_UPSTREAM_REJECTED: 400,
    pb.ERROR_REASON_CONTENT_BLOCKED: 400,
    pb.ERROR_REASON_MISSING_KEY: 401,
    pb.ERROR_REASON_INVALID_KEY: 401,
    pb.ERROR_REASON_KEY_EXPIRED: 401,
    pb.ERROR_REASON_PERMISSION_DENIED: 403,
    pb.ERROR_REASON_MODEL_NOT_FOUND: 404,
    pb.ERROR_REASON_PATH_NOT_FOUND: 404,
    pb.ERROR_REASON_API_NOT_SERVED: 404,
    pb.ERROR_REASON_OBJECT_NOT_FOUND: 404,
    pb.ERROR_REASON_METHOD_NOT_ALLOWED: 405,
    pb.ERROR_REASON_UNSUPPORTED_MEDIA_TYPE: 415,
    pb.ERROR_REASON_BODY_TOO_LARGE: 413,
    pb.ERROR_REASON_WRONG_STATE: 400,
    pb.ERROR_REASON_RANGE_NOT_SATISFIABLE: 416,
    pb.ERROR_REASON_ALREADY_EXISTS: 409,
    pb.ERROR_REASON_THREAD_NOT_FOUND: 404,
    pb.ERROR_REASON_THREAD_ALREADY_CONTINUED: 400,
    pb.ERROR_REASON_THREAD_CONTINUE_IN_FLIGHT: 400,
    pb.ERROR_REASON_THREAD_UNSUPPORTED_REQUEST: 400,
    pb.ERROR_REASON_THREAD_FINGERPRINT_MISMATCH: 400,
    pb.ERROR_REASON_RATE_LIMITED: 429,
    pb.ERROR_REASON_UPSTREAM_RATE_LIMITED: 429,
    pb.ERROR_REASON_QUOTA_EXHAUSTED: 429,
    pb.ERROR_REASON_INTERNAL: 500,
    pb.ERROR_REASON_NOT_IMPLEMENTED: 501,
    pb.ERROR_REASON_UPSTREAM_FAILED: 502,
    pb.ERROR_REASON_UPSTREAM_UNREACHABLE: 502,
    pb.ERROR_REASON_UPSTREAM_CUT: 502,
    pb.ERROR_REASON_UNAVAILABLE: 503,
    pb.ERROR_REASON_UPSTREAM_TIMEOUT: 504,
    pb.ERROR_REASON_CANCELLED: 499,
}

# Clients try 409, 429 and 5xx again by themselves; these fail the same way however often they do.
FUTILE = frozenset({pb.ERROR_REASON_QUOTA_EXHAUSTED, pb.ERROR_REASON_ALREADY_EXISTS, pb.ERROR_REASON_NOT_IMPLEMENTED})

# Their `field` is a canonical path when the service raised them.
OF_FIELDS = frozenset(
    {
        pb.ERROR_REASON_INVALID_FIELD,
        pb.ERROR_REASON_MISSING_FIELD,
        pb.ERROR_REASON_UNSUPPORTED_FIELD,
        pb.ERROR_REASON_UNTRANSLATABLE,
        pb.ERROR_REASON_OBJECT_NOT_FOUND,
        pb.ERROR_REASON_CONTEXT_TOO_LONG,
    }
)

_CODECS = FORMATS | EMBEDDING_FORMATS | RERANK_FORMATS | MODEL_LISTS
BODIES: dict[str, Callable[[UmgError, int], bytes]] = {
    **{name: codec.encode_error for name, codec in _CODECS.items()},
    "count_tokens": encode_count_error,
}
"""Writers of error bodies, by the error format of a route."""


def error_response(error: UmgError, face: str, status: int | None = None) -> web.Response:
    """The answer to a failed call, in the body of the format `face`; `status` only where HTTP has a closer one."""
    status = HTTP_STATUS[error.reason] if status is None else status
    headers: dict[str, str] = {hdrs.CONTENT_TYPE: "application/json"}
    if status == 401:
        headers[hdrs.WWW_AUTHENTICATE] = "Bearer"
    if "allow" in error.metadata:
        headers[hdrs.ALLOW] = error.metadata["allow"]
    if "retry_after_seconds" in error.metadata:
        headers[hdrs.RETRY_AFTER] = str(max(1, math.ceil(float(error.metadata["retry_after_seconds"]))))
    if error.reason in FUTILE:
        headers["x-should-retry"] = "false"
    return web.Response(status=status, headers=headers, body=BODIES[face](error, status))


def explain(failure: Exception, request: web.Request, face: str) -> UmgError:
    """What the caller is told of any failure, with the request's id for formats whose errors have it. One that nobody
    foresaw is logged here and not shown.
    """
    request_id = exchange(request).request_id
    error = _explained(failure, request, face, request_id)
    error.metadata.setdefault("request_id", request_id)
    return error


def _explained(failure: Exception, request: web.Request, face: str, request_id: str) -> UmgError:
    match failure:
        case UmgError():
            return failure
        case grpc.aio.AioRpcError():
            error = from_rpc(failure)
            told = error.message == failure.details()  # by the service, which then has it in its own log
            if error.reason == pb.ERROR_REASON_INTERNAL and not told:
                log.error("call failed", request_id=request_id, code=failure.code().name, details=failure.details())
                return internal(request_id)
            return _as_asked(error, face)
        case web.HTTPMethodNotAllowed():
            allow = ", ".join(sorted(failure.allowed_methods))
            message = f"{request.method} is not for {request.path}, which takes {allow}"
            refused = UmgError(pb.ERROR_REASON_METHOD_NOT_ALLOWED, message, allow=allow)
            return _of_known_api(request, matched=True) or refused
        case web.HTTPNotFound():
            message = f"no such path: {request.method} {request.path}"
            if meant := without_slash(request.path):
                message += f"; call {meant}, without the slash"
            missing = UmgError(pb.ERROR_REASON_PATH_NOT_FOUND, message, path=request.path)
            return missing if meant else _of_known_api(request, matched=False) or missing
    log.error("unexpected failure", request_id=request_id, exc_info=failure)
    return internal(request_id)


def _of_known_api(request: web.Request, *, matched: bool) -> UmgError | None:
    row = unserved(request.method, request.path, matched=matched)
    if row is None:
        return None
    message = f"{request.method} {request.path} belongs to the {row.api} API, which this gateway does not serve"
    message = unknown_action(request.method, request.path) or message
    return UmgError(pb.ERROR_REASON_API_NOT_SERVED, message, path=request.path)


def _as_asked(error: UmgError, face: str) -> UmgError:
    """The error with its field named as the caller wrote it."""
    field, codec = error.metadata.get("field"), _CODECS.get(face)
    if field is None or codec is None or error.reason not in OF_FIELDS:
        return error
    written = codec.wire_path(field)
    message = error.message
    for named, renamed in ((field, written), (f"`{field}`", f"`{written}`")):
        if message.startswith(named):
            message = renamed + message.removeprefix(named)
    return UmgError(error.reason, message, **{**error.metadata, "field": written})
