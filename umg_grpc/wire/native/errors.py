"""Errors, both directions: ours as a native body, a provider's as ours."""

import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import provider_errors
from umg_grpc.wire.json import JsonObject
from umg_grpc.wire.sse import frame

# Reason -> (HTTP status in the middle of a stream, where no status line tells it; status word). INVALID_ARGUMENT for
# every 400 (readings, 3).
KINDS: "dict[pb.ErrorReason.ValueType, tuple[int, str]]" = {
    pb.ERROR_REASON_UNSPECIFIED: (500, "INTERNAL"),
    pb.ERROR_REASON_MALFORMED_BODY: (400, "INVALID_ARGUMENT"),
    pb.ERROR_REASON_INVALID_FIELD: (400, "INVALID_ARGUMENT"),
    pb.ERROR_REASON_MISSING_FIELD: (400, "INVALID_ARGUMENT"),
    pb.ERROR_REASON_UNSUPPORTED_FIELD: (400, "INVALID_ARGUMENT"),
    pb.ERROR_REASON_UNTRANSLATABLE: (400, "INVALID_ARGUMENT"),
    pb.ERROR_REASON_CONTEXT_TOO_LONG: (400, "INVALID_ARGUMENT"),
    pb.ERROR_REASON_UPSTREAM_REJECTED: (400, "INVALID_ARGUMENT"),
    pb.ERROR_REASON_CONTENT_BLOCKED: (400, "INVALID_ARGUMENT"),
    pb.ERROR_REASON_MISSING_KEY: (401, "UNAUTHENTICATED"),
    pb.ERROR_REASON_INVALID_KEY: (401, "UNAUTHENTICATED"),
    pb.ERROR_REASON_KEY_EXPIRED: (401, "UNAUTHENTICATED"),
    pb.ERROR_REASON_PERMISSION_DENIED: (403, "PERMISSION_DENIED"),
    pb.ERROR_REASON_MODEL_NOT_FOUND: (404, "NOT_FOUND"),
    pb.ERROR_REASON_PATH_NOT_FOUND: (404, "NOT_FOUND"),
    pb.ERROR_REASON_API_NOT_SERVED: (404, "NOT_FOUND"),
    pb.ERROR_REASON_OBJECT_NOT_FOUND: (404, "NOT_FOUND"),
    pb.ERROR_REASON_METHOD_NOT_ALLOWED: (405, "UNIMPLEMENTED"),
    pb.ERROR_REASON_UNSUPPORTED_MEDIA_TYPE: (415, "INVALID_ARGUMENT"),
    pb.ERROR_REASON_BODY_TOO_LARGE: (413, "INVALID_ARGUMENT"),
    pb.ERROR_REASON_WRONG_STATE: (400, "INVALID_ARGUMENT"),
    pb.ERROR_REASON_RANGE_NOT_SATISFIABLE: (416, "OUT_OF_RANGE"),
    pb.ERROR_REASON_ALREADY_EXISTS: (409, "ALREADY_EXISTS"),
    pb.ERROR_REASON_RATE_LIMITED: (429, "RESOURCE_EXHAUSTED"),
    pb.ERROR_REASON_UPSTREAM_RATE_LIMITED: (429, "RESOURCE_EXHAUSTED"),
    pb.ERROR_REASON_QUOTA_EXHAUSTED: (429, "RESOURCE_EXHAUSTED"),
    pb.ERROR_REASON_INTERNAL: (500, "INTERNAL"),
    pb.ERROR_REASON_NOT_IMPLEMENTED: (501, "UNIMPLEMENTED"),
    pb.ERROR_REASON_UPSTREAM_FAILED: (502, "UNAVAILABLE"),
    pb.ERROR_REASON_UPSTREAM_UNREACHABLE: (502, "UNAVAILABLE"),
    pb.ERROR_REASON_UPSTREAM_CUT: (502, "UNAVAILABLE"),
    pb.ERROR_REASON_UNAVAILABLE: (503, "UNAVAILABLE"),
    pb.ERROR_REASON_UPSTREAM_TIMEOUT: (504, "DEADLINE_EXCEEDED"),
    pb.ERROR_REASON_CANCELLED: (499, "CANCELLED"),
}
TYPE = "type.googleapis.com/google.rpc."


# --- ours -> caller


def encode_error(error: UmgError, http_status: int) -> bytes:
    """The body of a refused call: `{error: {code, message, status, details}}`."""
    return msgspec.json.encode(_encode(error, http_status))


def error_body(error: UmgError) -> bytes:
    """The body in the middle of a stream, which has its status in itself."""
    return msgspec.json.encode(_encode(error, KINDS.get(error.reason, (500, ""))[0]))


def error_frame(error: UmgError) -> bytes:
    """The event that ends a broken stream."""
    return frame(error_body(error))


def _encode(error: UmgError, code: int) -> JsonObject:
    status = KINDS[error.reason][1] if error.reason in KINDS else "INTERNAL" if code >= 500 else "INVALID_ARGUMENT"
    fields: JsonObject = {"code": code, "message": error.message, "status": status}
    details = list[JsonObject]()
    if (path := error.metadata.get("field")) is not None:
        violation = {"field": path, "description": error.message}
        details.append({"@type": f"{TYPE}BadRequest", "fieldViolations": [violation]})
    if (seconds := error.metadata.get("retry_after_seconds")) is not None:
        details.append({"@type": f"{TYPE}RetryInfo", "retryDelay": f"{seconds}s"})
    if details:
        fields["details"] = details
    return {"error": fields}


# --- provider -> ours

TOO_LONG = re.compile(r"token count\b.{0,80}\bexceeds|exceeds the maximum number of tokens", re.IGNORECASE)
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")


class _Violation(Struct):
    field: str = ""


class _Detail(Struct, rename="camel"):
    """An element of `details`, as far as callers can use it."""

    type: str = msgspec.field(name="@type", default="")
    field_violations: list[_Violation] = []
    retry_delay: str = ""


class _Error(Struct):
    status: str = ""
    details: list[_Detail] = []


class _Body(Struct):
    error: _Error


def decode_error(status: int, headers: Mapping[str, str], body: bytes, *, too_long: str = "messages") -> UmgError:
    """What the caller is told of a refused call. A precondition is the gateway's own account's (its country, its
    billing), as is a bad key, which this provider answers with 400. `too_long`: see `provider_errors.from_provider`.
    """
    error, told = provider_errors.read_error(body), _told(body)
    if status == 400 and TOO_LONG.search(error.message):
        message = provider_errors.from_provider(status, error, headers).message
        return UmgError(pb.ERROR_REASON_CONTEXT_TOO_LONG, message, field=too_long)
    if status == 400 and told.status == "FAILED_PRECONDITION":
        return provider_errors.from_provider(403, error, headers)
    named = [violation.field for detail in told.details for violation in detail.field_violations if violation.field]
    if named and not error.param:
        error.param = named[0]
    delays = [delay[1] for detail in told.details if (delay := _DELAY.fullmatch(detail.retry_delay))]
    headers = {"retry-after": delays[0], **headers} if delays else headers
    return provider_errors.from_provider(status, error, headers, too_long=too_long)


def _told(body: bytes) -> _Error:
    """The members that only this format has; none where they cannot be read."""
    try:
        if body.lstrip().startswith(b"["):
            return msgspec.json.decode(body, type=list[_Body])[0].error
        return msgspec.json.decode(body, type=_Body).error
    except (ValueError, RecursionError, IndexError):
        return _Error()
