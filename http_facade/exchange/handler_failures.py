"""Conversion of the exceptions of handlers to the errors that callers get."""

from collections.abc import Mapping

import grpc
import structlog
from aiohttp import hdrs, web

from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.unknown_paths import (
    Unserved,
    is_served_root,
    similar_path,
    unknown_action,
    unnamed_deployment,
    unserved,
    without_slash,
)
from http_facade.path_spellings import canonical_path
from umg_grpc.base.errors import UmgError, internal
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.operations.wire_formats_by_name import face_of
from umg_grpc.v1 import pb
from umg_grpc.wire.model_lists import MODEL_LISTS

HTTP_PROTOCOL = "HTTP/1.1"
"""Protocol that a refused upgrade names as the one to use."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("http")

# Reasons whose `field` is a canonical path if the service raised them.
FIELD_REASONS = frozenset(
    {
        pb.ERROR_REASON_INVALID_FIELD,
        pb.ERROR_REASON_MISSING_FIELD,
        pb.ERROR_REASON_UNSUPPORTED_FIELD,
        pb.ERROR_REASON_UNTRANSLATABLE,
        pb.ERROR_REASON_OBJECT_NOT_FOUND,
        pb.ERROR_REASON_CONTEXT_TOO_LONG,
    }
)


def with_body_paths(failure: grpc.aio.AioRpcError, paths: Mapping[str, str]) -> Exception:
    """Return the error of a failed RPC with the path of its field in the caller's body. `paths`: path in the canonical
    request -> path in the body. Without `paths`, return `failure` unchanged.
    """
    error = from_rpc(failure)
    field = error.metadata.get("field", "")
    known = next((path for path in (field, field.rpartition(".")[0]) if path in paths), None)
    if known is None or error.reason not in FIELD_REASONS:
        return failure
    return _renamed(error, field, paths[known])


def explain(failure: Exception, exchange: HttpExchange, face: str) -> UmgError:
    """Convert any exception of a handler to the error in the format `face`, with the request id. An unexpected one is
    logged, and converted to INTERNAL without its details.
    """
    error = _to_umg_error(failure, exchange.request, face, exchange.request_id)
    error.metadata.setdefault("request_id", exchange.request_id)
    return error


def _to_umg_error(failure: Exception, request: web.BaseRequest, face: str, request_id: str) -> UmgError:
    match failure:
        case UmgError():
            if failure.place:
                log.error("a body could not be decoded", request_id=request_id, place=failure.place)
            return failure
        case grpc.aio.AioRpcError():
            error = from_rpc(failure)
            is_logged = error.message == failure.details()  # raised by our service, which has logged it itself
            if error.reason == pb.ERROR_REASON_INTERNAL and not is_logged:
                log.error("call failed", request_id=request_id, code=failure.code().name, details=failure.details())
                return internal(request_id)
            return _with_wire_path(error, face)
        case web.HTTPMethodNotAllowed() | web.HTTPNotFound() if _is_websocket(request):
            message = f"{request.path} supports no WebSocket; send the request over HTTP"
            return UmgError(pb.ERROR_REASON_METHOD_NOT_ALLOWED, message, upgrade=HTTP_PROTOCOL)
        case web.HTTPMethodNotAllowed():
            allow = ", ".join(sorted(failure.allowed_methods))
            message = f"{request.method} is not allowed for {request.path}, which supports {allow}"
            refused = UmgError(pb.ERROR_REASON_METHOD_NOT_ALLOWED, message, allow=allow)
            return _api_not_served(request, matched=True) or refused
        case web.HTTPNotFound():
            return _path_not_found(request)
        case _:  # no exception that our code raises
            log.error("unexpected failure", request_id=request_id, exc_info=failure)
            return internal(request_id)


def _is_websocket(request: web.BaseRequest) -> bool:
    return request.method == hdrs.METH_GET and request.headers.get(hdrs.UPGRADE, "").lower() == "websocket"


def _path_not_found(request: web.BaseRequest) -> UmgError:
    """Return the error for a path without a route, which names a similar path or the API to which the path belongs."""
    path = request.path
    message = f"no such path: {request.method} {path}"
    if meant := without_slash(path):
        return UmgError(pb.ERROR_REASON_PATH_NOT_FOUND, f"{message}; call {meant}, without the slash", path=path)
    row = _unserved(request, matched=False)
    if (row is None or is_served_root(row.prefix)) and (meant := similar_path(path)):
        return UmgError(pb.ERROR_REASON_PATH_NOT_FOUND, f"{message}; call {meant}", path=path)
    return _api_not_served(request, matched=False) or UmgError(pb.ERROR_REASON_PATH_NOT_FOUND, message, path=path)


def _unserved(request: web.BaseRequest, *, matched: bool) -> Unserved | None:
    known = unserved(request.method, request.path, matched=matched)
    return known or unserved(request.method, canonical_path(request.path), matched=matched)


def _api_not_served(request: web.BaseRequest, *, matched: bool) -> UmgError | None:
    row = _unserved(request, matched=matched)
    if row is None:
        return None
    message = f"{request.method} {request.path} belongs to the {row.api} API, which this gateway does not serve"
    message = unknown_action(request.method, canonical_path(request.path) or request.path) or message
    message = unnamed_deployment(request.path) or message
    return UmgError(pb.ERROR_REASON_API_NOT_SERVED, message, path=request.path)


def _with_wire_path(error: UmgError, face: str) -> UmgError:
    field, codec = error.metadata.get("field"), face_of(face) or MODEL_LISTS.get(face)
    if field is None or codec is None or error.reason not in FIELD_REASONS:
        return error
    return _renamed(error, field, codec.wire_path(field))


def _renamed(error: UmgError, field: str, written: str) -> UmgError:
    message = error.message
    for named, renamed in ((field, written), (f"`{field}`", f"`{written}`")):
        if message.startswith(named):
            message = renamed + message.removeprefix(named)
    return UmgError(error.reason, message, **{**error.metadata, "field": written})
