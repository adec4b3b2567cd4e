"""Errors, both directions: ours as a native body, a provider's as ours."""

import re
from collections.abc import Mapping

import msgspec
from msgspec import Raw

from umg_grpc.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import provider_errors
from umg_grpc.wire.json import JsonObject
from umg_grpc.wire.native.lines import escaped
from umg_grpc.wire.refusals import DEFAULT, FAILED, LONG, OBJECT, REJECTED, Row, Table
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
    pb.ERROR_REASON_THREAD_NOT_FOUND: (404, "NOT_FOUND"),
    pb.ERROR_REASON_THREAD_ALREADY_CONTINUED: (400, "INVALID_ARGUMENT"),
    pb.ERROR_REASON_THREAD_CONTINUE_IN_FLIGHT: (400, "INVALID_ARGUMENT"),
    pb.ERROR_REASON_THREAD_UNSUPPORTED_REQUEST: (400, "INVALID_ARGUMENT"),
    pb.ERROR_REASON_THREAD_FINGERPRINT_MISMATCH: (400, "INVALID_ARGUMENT"),
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
    return frame(escaped(error_body(error)))


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
TABLE: Table = (
    Row({400}, LONG, Failure.CONTEXT, words=TOO_LONG),
    Row({400, 403}, REJECTED, Failure.CALLER, own_words=OBJECT),  # a file that is still worked on, or another's
    Row({400}, FAILED, Failure.DOWN, codes=re.compile("API_KEY_|FAILED_PRECONDITION")),  # our key, country or billing
    *DEFAULT,
)


def decode_error(status: int, headers: Mapping[str, str], body: bytes, *, too_long: str = "messages") -> UmgError:
    """What the caller is told of a refused call. `too_long`: see `provider_errors.from_provider`."""
    return provider_errors.decode_error(status, headers, body, too_long=too_long, table=TABLE)


def stated_error(error: Raw) -> UmgError:
    """The error that an answer states in spite of its status. Raises ValueError, RecursionError."""
    return provider_errors.from_provider(200, provider_errors.as_error(msgspec.json.decode(error)), table=TABLE)
