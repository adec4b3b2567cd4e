"""HTTP status of an error for callers: the reason's; in few cases the provider's, or one that a format requires."""

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

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
    pb.ERROR_REASON_GUARD_REFUSED: 400,
    pb.ERROR_REASON_UPSTREAM_TOO_LARGE: 413,
    pb.ERROR_REASON_MISSING_KEY: 401,
    pb.ERROR_REASON_INVALID_KEY: 401,
    pb.ERROR_REASON_KEY_EXPIRED: 401,
    pb.ERROR_REASON_PERMISSION_DENIED: 403,
    pb.ERROR_REASON_MODEL_UNPRICED: 403,
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
    pb.ERROR_REASON_UPSTREAM_UNPAID: 402,
    pb.ERROR_REASON_UPSTREAM_QUOTA_EXHAUSTED: 429,
    pb.ERROR_REASON_INTERNAL: 500,
    pb.ERROR_REASON_NOT_IMPLEMENTED: 501,
    pb.ERROR_REASON_UPSTREAM_FAILED: 502,
    pb.ERROR_REASON_UPSTREAM_UNREACHABLE: 502,
    pb.ERROR_REASON_UPSTREAM_CUT: 502,
    pb.ERROR_REASON_UNAVAILABLE: 503,
    pb.ERROR_REASON_UPSTREAM_TIMEOUT: 504,
    pb.ERROR_REASON_CANCELLED: 499,
    pb.ERROR_REASON_DEADLINE_EXCEEDED: 504,
    pb.ERROR_REASON_UPSTREAM_OVERLOADED: 503,
}

PROVIDERS_OWN = frozenset({"409", "415", "422", "424", "451"})
"""Statuses of rejections that callers get as the provider sent them: each has a distinct meaning for clients."""
OF_FORMATS = {
    ("messages", pb.ERROR_REASON_UPSTREAM_OVERLOADED): 529,
    ("count_tokens", pb.ERROR_REASON_UPSTREAM_OVERLOADED): 529,
}
"""(wire format, reason) -> HTTP status, where clients of a format act by a status of this format."""


def http_status(error: UmgError, face: str = "") -> int:
    """Return the HTTP status of an error for callers of the wire format `face`; "" for no particular format."""
    if error.reason == pb.ERROR_REASON_UPSTREAM_REJECTED and error.metadata.get("upstream_status") in PROVIDERS_OWN:
        return int(error.metadata["upstream_status"])
    return OF_FORMATS.get((face, error.reason)) or HTTP_STATUS.get(error.reason, 500)
