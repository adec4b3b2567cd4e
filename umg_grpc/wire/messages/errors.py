"""Errors as this format writes them; a provider's are read by `provider_errors`."""

import msgspec

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.json import JsonObject

INVALID, API = "invalid_request_error", "api_error"

# HTTP status -> type (text formats, 3.5); any other 4xx is an invalid request, any other 5xx an error of the API.
TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
# In a stream there is no status. Reasons of requests that were never admitted cannot come there.
STREAM_TYPES = {
    pb.ERROR_REASON_RATE_LIMITED: "rate_limit_error",
    pb.ERROR_REASON_UPSTREAM_RATE_LIMITED: "rate_limit_error",
    pb.ERROR_REASON_QUOTA_EXHAUSTED: "rate_limit_error",
    pb.ERROR_REASON_UNAVAILABLE: "overloaded_error",
    pb.ERROR_REASON_UPSTREAM_TIMEOUT: "timeout_error",
    pb.ERROR_REASON_INVALID_FIELD: INVALID,
    pb.ERROR_REASON_UPSTREAM_REJECTED: INVALID,
    pb.ERROR_REASON_CONTEXT_TOO_LONG: INVALID,
    pb.ERROR_REASON_CONTENT_BLOCKED: INVALID,
}
BAD_KEY = frozenset({pb.ERROR_REASON_MISSING_KEY, pb.ERROR_REASON_INVALID_KEY, pb.ERROR_REASON_KEY_EXPIRED})


def encode_error(error: UmgError, http_status: int) -> bytes:
    """The body of a refused call."""
    return _body(error, {"type": _type(http_status), "message": error.message})


def encode_count_error(error: UmgError, http_status: int) -> bytes:
    """The body of a refused counting call, which the document gives another shape: one that is both (readings, 3)."""
    code = "invalid_api_key" if error.reason in BAD_KEY else error.name.lower()
    return _body(error, {"type": _type(http_status), "message": error.message, "code": code})


def error_frame(error: UmgError) -> bytes:
    """The event that ends a broken stream."""
    kind = STREAM_TYPES.get(error.reason, API)
    return b"event: error\ndata: " + _body(error, {"type": kind, "message": error.message}) + b"\n\n"


def _type(status: int) -> str:
    return TYPES.get(status, API if status >= 500 else INVALID)


def _body(error: UmgError, stated: JsonObject) -> bytes:
    details = {"error_code": error.name.lower(), **error.metadata}
    identified = {"request_id": details.pop("request_id")} if "request_id" in details else {}
    return msgspec.json.encode({"type": "error", "error": {**stated, "details": details}, **identified})
