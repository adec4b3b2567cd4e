"""Error bodies and error events for callers of the chat format."""

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.sse import frame
from umg_grpc.wire.errors.stream_error_status_facts import stream_error_hints

REQUEST_ERROR, SERVER_ERROR, RATE_ERROR = "invalid_request_error", "server_error", "rate_limit_error"

# Reason -> (type, code), as current SDKs and gateways know them (not shown in the document).
ERROR_KINDS: "dict[pb.ErrorReason.ValueType, tuple[str, str | None]]" = {
    pb.ERROR_REASON_UNSPECIFIED: (SERVER_ERROR, None),
    pb.ERROR_REASON_MALFORMED_BODY: (REQUEST_ERROR, None),
    pb.ERROR_REASON_INVALID_FIELD: (REQUEST_ERROR, "invalid_value"),
    pb.ERROR_REASON_MISSING_FIELD: (REQUEST_ERROR, "missing_required_parameter"),
    pb.ERROR_REASON_UNSUPPORTED_FIELD: (REQUEST_ERROR, "unsupported_parameter"),
    pb.ERROR_REASON_UNTRANSLATABLE: (REQUEST_ERROR, "unsupported_parameter"),
    pb.ERROR_REASON_CONTEXT_TOO_LONG: (REQUEST_ERROR, "context_length_exceeded"),
    pb.ERROR_REASON_UPSTREAM_REJECTED: (REQUEST_ERROR, None),
    pb.ERROR_REASON_CONTENT_BLOCKED: (REQUEST_ERROR, "content_filter"),
    pb.ERROR_REASON_GUARD_REFUSED: (REQUEST_ERROR, "content_filter"),
    pb.ERROR_REASON_UPSTREAM_TOO_LARGE: (REQUEST_ERROR, "request_too_large"),
    pb.ERROR_REASON_MISSING_KEY: (REQUEST_ERROR, "invalid_api_key"),
    pb.ERROR_REASON_INVALID_KEY: (REQUEST_ERROR, "invalid_api_key"),
    pb.ERROR_REASON_KEY_EXPIRED: (REQUEST_ERROR, "invalid_api_key"),
    pb.ERROR_REASON_PERMISSION_DENIED: ("permission_error", "permission_denied"),
    pb.ERROR_REASON_MODEL_UNPRICED: ("permission_error", "model_unpriced"),
    pb.ERROR_REASON_MODEL_NOT_FOUND: (REQUEST_ERROR, "model_not_found"),
    pb.ERROR_REASON_PATH_NOT_FOUND: (REQUEST_ERROR, "unknown_url"),
    pb.ERROR_REASON_API_NOT_SERVED: (REQUEST_ERROR, "unknown_url"),
    pb.ERROR_REASON_OBJECT_NOT_FOUND: (REQUEST_ERROR, "not_found"),
    pb.ERROR_REASON_METHOD_NOT_ALLOWED: (REQUEST_ERROR, "method_not_allowed"),
    pb.ERROR_REASON_UNSUPPORTED_MEDIA_TYPE: (REQUEST_ERROR, "unsupported_media_type"),
    pb.ERROR_REASON_BODY_TOO_LARGE: (REQUEST_ERROR, "request_too_large"),
    pb.ERROR_REASON_WRONG_STATE: (REQUEST_ERROR, "wrong_state"),
    pb.ERROR_REASON_RANGE_NOT_SATISFIABLE: (REQUEST_ERROR, "range_not_satisfiable"),
    pb.ERROR_REASON_ALREADY_EXISTS: (REQUEST_ERROR, "already_exists"),
    pb.ERROR_REASON_THREAD_NOT_FOUND: (REQUEST_ERROR, "thread_not_found"),
    pb.ERROR_REASON_THREAD_ALREADY_CONTINUED: (REQUEST_ERROR, "thread_already_continued"),
    pb.ERROR_REASON_THREAD_CONTINUE_IN_FLIGHT: (REQUEST_ERROR, "thread_continue_in_flight"),
    pb.ERROR_REASON_THREAD_UNSUPPORTED_REQUEST: (REQUEST_ERROR, "thread_unsupported_request"),
    pb.ERROR_REASON_THREAD_FINGERPRINT_MISMATCH: (REQUEST_ERROR, "thread_fingerprint_mismatch"),
    pb.ERROR_REASON_RATE_LIMITED: (RATE_ERROR, "rate_limit_exceeded"),
    pb.ERROR_REASON_UPSTREAM_RATE_LIMITED: (RATE_ERROR, "rate_limit_exceeded"),
    pb.ERROR_REASON_QUOTA_EXHAUSTED: ("insufficient_quota", "insufficient_quota"),
    pb.ERROR_REASON_UPSTREAM_UNPAID: ("insufficient_quota", "insufficient_quota"),
    pb.ERROR_REASON_UPSTREAM_QUOTA_EXHAUSTED: ("insufficient_quota", "insufficient_quota"),
    pb.ERROR_REASON_INTERNAL: (SERVER_ERROR, None),
    pb.ERROR_REASON_NOT_IMPLEMENTED: (SERVER_ERROR, "not_implemented"),
    pb.ERROR_REASON_UPSTREAM_FAILED: (SERVER_ERROR, "upstream_failed"),
    pb.ERROR_REASON_UPSTREAM_UNREACHABLE: (SERVER_ERROR, "upstream_unreachable"),
    pb.ERROR_REASON_UPSTREAM_CUT: (SERVER_ERROR, "upstream_cut"),
    pb.ERROR_REASON_UNAVAILABLE: (SERVER_ERROR, "overloaded"),
    pb.ERROR_REASON_UPSTREAM_TIMEOUT: (SERVER_ERROR, "upstream_timeout"),
    pb.ERROR_REASON_CANCELLED: (SERVER_ERROR, "cancelled"),
    pb.ERROR_REASON_DEADLINE_EXCEEDED: (SERVER_ERROR, "deadline_exceeded"),
    pb.ERROR_REASON_UPSTREAM_OVERLOADED: (SERVER_ERROR, "server_is_overloaded"),
}


INCORRECT_KEY = "Incorrect API key provided"
"""Words by which clients of this format detect a wrong key; without them, LiteLLM raises its error for a status 400."""
WRONG_KEY = frozenset({pb.ERROR_REASON_INVALID_KEY, pb.ERROR_REASON_KEY_EXPIRED})


# --- ours -> caller


def message_for_callers(error: UmgError) -> str:
    """Return an error's message for a caller. A wrong key's begins with the vendor's text, which clients search for."""
    return f"{INCORRECT_KEY}: {error.message}" if error.reason in WRONG_KEY else error.message


def encode_error(error: UmgError, http_status: int) -> bytes:
    """Return the body of a failed call. `http_status` selects the type of reasons that are newer than this build."""
    return msgspec.json.encode({"error": error_members(error, http_status)})


def error_members(error: UmgError, http_status: int = 500) -> JsonObject:
    """Return the members of the object `error`. `http_status`: as for `encode_error`."""
    fallback = (SERVER_ERROR if http_status >= 500 else REQUEST_ERROR, None)
    kind, code = ERROR_KINDS.get(error.reason, fallback)
    code = code or error.metadata.get("upstream_code")
    param = error.metadata.get("field")
    message = message_for_callers(error)
    return {"message": message, "type": kind, "param": param, "code": code}


def error_frame(error: UmgError, *, has_begun: bool) -> bytes:
    """Return the server-sent event with an error that ends a failed stream; no `[DONE]` follows it. It has
    `retry_after` beside the members of an error body and, before any chunk (`has_begun` is false), `status`.
    """
    return frame(msgspec.json.encode({"error": error_members(error) | stream_error_hints(error, has_begun=has_begun)}))
