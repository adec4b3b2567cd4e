"""Errors of the messages format: encoded for callers, and decoded from providers."""

from functools import partial

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.sse import named_frame
from umg_grpc.wire.errors import provider_errors
from umg_grpc.wire.errors.error_classification import table_for
from umg_grpc.wire.errors.http_status import http_status as status_of
from umg_grpc.wire.errors.stream_error_status_facts import stream_error_hints

INVALID_ERROR, API_ERROR = "invalid_request_error", "api_error"

# HTTP status -> type (text formats, 3.5); any other 4xx is an invalid request, any other 5xx an error of the API.
ERROR_TYPES = {
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
BAD_KEY = frozenset({pb.ERROR_REASON_MISSING_KEY, pb.ERROR_REASON_INVALID_KEY, pb.ERROR_REASON_KEY_EXPIRED})


# --- ours -> caller


def encode_error(error: UmgError, http_status: int) -> bytes:
    """Encode the body of a failed call. `http_status` selects the error's `type` in it."""
    return _body(error, {"type": _type(http_status), "message": error.message})


def encode_count_error(error: UmgError, http_status: int) -> bytes:
    """Encode the error body of a token counting call, with `code` for both the public API and our specification."""
    code = "invalid_api_key" if error.reason in BAD_KEY else error.name.lower()
    return _body(error, {"type": _type(http_status), "message": error.message, "code": code})


def error_frame(error: UmgError, *, has_begun: bool) -> bytes:
    """Encode the event `error` that ends a stream. Its details have `retry_after` and, unless `has_begun`, `status`."""
    hints = stream_error_hints(error, "messages", has_begun=has_begun)
    stated: JsonObject = {"type": _type(status_of(error, "messages")), "message": error.message}
    return named_frame(b"error", _body(error, stated, **hints))


def _type(status: int) -> str:
    return ERROR_TYPES.get(status, API_ERROR if status >= 500 else INVALID_ERROR)


LIST_KEYS = ("unsupported",)
"""Keys of an error's metadata that hold a list."""


def _body(error: UmgError, stated: JsonObject, **hints: object) -> bytes:
    details: JsonObject = {"error_code": error.name.lower(), **error.metadata, **hints}
    details |= {name: error.metadata[name].split(",") for name in LIST_KEYS if name in error.metadata}
    identified = {"request_id": details.pop("request_id")} if "request_id" in details else {}
    return msgspec.json.encode({"type": "error", "error": {**stated, "details": details}, **identified})


# --- provider -> ours

ERROR_TABLE = table_for("messages")

decode_error = partial(provider_errors.decode_error, table=ERROR_TABLE)
"""Function (HTTP status, headers by lower-case name, body) -> the caller's error for a failed call."""


def stated_error(error: bytes | msgspec.Raw) -> UmgError:
    """Return the caller's error for an error object in a response with status 200, or in an event. Raise ValueError or
    RecursionError for text that is not JSON.
    """
    return provider_errors.from_provider(200, provider_errors.as_error(msgspec.json.decode(error)), table=ERROR_TABLE)
