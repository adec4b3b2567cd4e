"""Errors of the native format: encoded for callers, and decoded from providers."""

import re
from collections.abc import Mapping

import msgspec
from msgspec import Raw

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.line_end_escapes import escaped
from umg_grpc.wire.core.sse import frame
from umg_grpc.wire.errors import provider_errors
from umg_grpc.wire.errors.error_classification import table_for
from umg_grpc.wire.errors.http_status import http_status

# HTTP status -> status name; INVALID_ARGUMENT for every 400 (readings, 3).
STATUS_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    415: "INVALID_ARGUMENT",
    416: "OUT_OF_RANGE",
    422: "INVALID_ARGUMENT",
    424: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    451: "PERMISSION_DENIED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
TYPE_PREFIX = "type.googleapis.com/google.rpc."
LOST_CACHE = re.compile(r"\bcached ?content\b.{0,40}\bnot found", re.IGNORECASE)
CACHE_ADVICE = (
    "it has ended, or is of another account: name it with a model whose only channel has that account, or send the "
    "content itself"
)


# --- ours -> caller


def encode_error(error: UmgError, http_status: int) -> bytes:
    """Return the body of a failed call: `{error: {code, message, status, details}}`. `http_status` is the code."""
    return msgspec.json.encode(_encode(error, http_status))


def error_body(error: UmgError) -> bytes:
    """Return the JSON of an error in a stream: `{error: {code, message, status, details}}`, with its HTTP status."""
    return msgspec.json.encode(_encode(error, http_status(error)))


def error_frame(error: UmgError) -> bytes:
    """Return the server-sent event with an error that ends a stream after a failure."""
    return frame(escaped(error_body(error)))


def _encode(error: UmgError, code: int) -> JsonObject:
    status = "ALREADY_EXISTS" if error.reason == pb.ERROR_REASON_ALREADY_EXISTS else _name(code)
    fields: JsonObject = {"code": code, "message": error.message, "status": status}
    details = list[JsonObject]()
    if (path := error.metadata.get("field")) is not None:
        violation = {"field": path, "description": error.message}
        details.append({"@type": f"{TYPE_PREFIX}BadRequest", "fieldViolations": [violation]})
    if (seconds := error.metadata.get("retry_after_seconds")) is not None:
        details.append({"@type": f"{TYPE_PREFIX}RetryInfo", "retryDelay": f"{seconds}s"})
    if details:
        fields["details"] = details
    return {"error": fields}


def _name(status: int) -> str:
    return STATUS_NAMES.get(status) or ("INTERNAL" if status >= 500 else "INVALID_ARGUMENT")


# --- provider -> ours

ERROR_TABLE = table_for("native")


def decode_error(status: int, headers: Mapping[str, str], body: bytes, *, too_long: str = "messages") -> UmgError:
    """Return the caller's error for a failed call. `too_long`: field to name if the input is too long."""
    error = provider_errors.decode_error(status, headers, body, too_long=too_long, table=ERROR_TABLE)
    if error.failure is Failure.CALLER and LOST_CACHE.search(error.message):
        return error.with_message(f"{error.message.rstrip('. ')}; {CACHE_ADVICE}")
    return error


def stated_error(error: Raw) -> UmgError:
    """Return the error in a chunk or a 200 response. Raise ValueError or RecursionError for text that is not JSON."""
    return provider_errors.from_provider(200, provider_errors.as_error(msgspec.json.decode(error)), table=ERROR_TABLE)
