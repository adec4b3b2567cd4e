"""Errors, both directions: ours as a chat body, a provider's as ours."""

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import msgspec
from msgspec import Struct

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.clean import clean
from umg_grpc.wire.sse import frame

REQUEST, SERVER, RATE = "invalid_request_error", "server_error", "rate_limit_error"

# Reason -> (type, code): what current SDKs and gateways know (not shown in the document).
KINDS: "dict[pb.ErrorReason.ValueType, tuple[str, str | None]]" = {
    pb.ERROR_REASON_UNSPECIFIED: (SERVER, None),
    pb.ERROR_REASON_MALFORMED_BODY: (REQUEST, None),
    pb.ERROR_REASON_INVALID_FIELD: (REQUEST, "invalid_value"),
    pb.ERROR_REASON_MISSING_FIELD: (REQUEST, "missing_required_parameter"),
    pb.ERROR_REASON_UNSUPPORTED_FIELD: (REQUEST, "unsupported_parameter"),
    pb.ERROR_REASON_UNTRANSLATABLE: (REQUEST, "unsupported_parameter"),
    pb.ERROR_REASON_CONTEXT_TOO_LONG: (REQUEST, "context_length_exceeded"),
    pb.ERROR_REASON_UPSTREAM_REJECTED: (REQUEST, None),
    pb.ERROR_REASON_CONTENT_BLOCKED: (REQUEST, "content_filter"),
    pb.ERROR_REASON_MISSING_KEY: (REQUEST, "invalid_api_key"),
    pb.ERROR_REASON_INVALID_KEY: (REQUEST, "invalid_api_key"),
    pb.ERROR_REASON_KEY_EXPIRED: (REQUEST, "invalid_api_key"),
    pb.ERROR_REASON_PERMISSION_DENIED: ("permission_error", "permission_denied"),
    pb.ERROR_REASON_MODEL_NOT_FOUND: (REQUEST, "model_not_found"),
    pb.ERROR_REASON_PATH_NOT_FOUND: (REQUEST, "unknown_url"),
    pb.ERROR_REASON_API_NOT_SERVED: (REQUEST, "unknown_url"),
    pb.ERROR_REASON_OBJECT_NOT_FOUND: (REQUEST, "not_found"),
    pb.ERROR_REASON_METHOD_NOT_ALLOWED: (REQUEST, "method_not_allowed"),
    pb.ERROR_REASON_UNSUPPORTED_MEDIA_TYPE: (REQUEST, "unsupported_media_type"),
    pb.ERROR_REASON_BODY_TOO_LARGE: (REQUEST, "request_too_large"),
    pb.ERROR_REASON_WRONG_STATE: (REQUEST, "wrong_state"),
    pb.ERROR_REASON_RANGE_NOT_SATISFIABLE: (REQUEST, "range_not_satisfiable"),
    pb.ERROR_REASON_ALREADY_EXISTS: (REQUEST, "already_exists"),
    pb.ERROR_REASON_RATE_LIMITED: (RATE, "rate_limit_exceeded"),
    pb.ERROR_REASON_UPSTREAM_RATE_LIMITED: (RATE, "rate_limit_exceeded"),
    pb.ERROR_REASON_QUOTA_EXHAUSTED: ("insufficient_quota", "insufficient_quota"),
    pb.ERROR_REASON_INTERNAL: (SERVER, None),
    pb.ERROR_REASON_NOT_IMPLEMENTED: (SERVER, "not_implemented"),
    pb.ERROR_REASON_UPSTREAM_FAILED: (SERVER, "upstream_failed"),
    pb.ERROR_REASON_UPSTREAM_UNREACHABLE: (SERVER, "upstream_unreachable"),
    pb.ERROR_REASON_UPSTREAM_CUT: (SERVER, "upstream_cut"),
    pb.ERROR_REASON_UNAVAILABLE: (SERVER, "overloaded"),
    pb.ERROR_REASON_UPSTREAM_TIMEOUT: (SERVER, "upstream_timeout"),
    pb.ERROR_REASON_CANCELLED: (SERVER, "cancelled"),
}


# --- ours -> caller


def encode_error(error: UmgError, http_status: int) -> bytes:
    """The body of a refused call; the status only decides for a reason that is newer than this build."""
    fallback = (SERVER if http_status >= 500 else REQUEST, None)
    kind, code = KINDS.get(error.reason, fallback)
    code = code or error.metadata.get("upstream_code")
    param = error.metadata.get("field")
    return msgspec.json.encode({"error": {"message": error.message, "type": kind, "param": param, "code": code}})


def error_frame(error: UmgError) -> bytes:
    """The event that ends a broken stream: no `[DONE]` follows it."""
    return frame(encode_error(error, 500))


# --- provider -> ours


class ProviderError(Struct):
    """`error` of a provider's body, as far as it keeps to the format."""

    message: str = ""
    type: str = ""
    param: str = ""
    code: str | int | float | None = None


CONTEXT = re.compile(
    r"context[ _](?:length|window|size)|maximum context|too many tokens|prompt is too long|exceed_context_size",
    re.IGNORECASE,
)
BLOCKED = re.compile(r"content_filter|content_policy|moderation|responsibleai|safety", re.IGNORECASE)
OURS = re.compile(
    r"api[ _-]?key|authentication|unauthori[sz]ed|billing|insufficient[ _]quota", re.IGNORECASE
)  # our account, not the request
ACCOUNT = re.compile(r"credential|permission|quota|account|organi[sz]ation|subscription|\btoken is", re.IGNORECASE)
LONGEST_WAIT = 24 * 60 * 60
HTTP_ERROR = re.compile(r"[45]\d\d", re.ASCII)
STATED = {"rate_limit_exceeded": 429, "rate_limit_error": 429}  # code or type of an error without a status
CODE = re.compile(r"^[a-z][a-z_]{1,63}$")
PATH = re.compile(r"^[\w.\[\]-]{1,200}$")


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> UmgError:
    """What the caller is told of a refused call. Whatever concerns the gateway's own account with the provider is not
    told.
    """
    return from_provider(status, read_error(body), headers)


def read_error(body: bytes) -> ProviderError:
    """The error of a body in any of the usual shapes; an empty one where it cannot be read (HTML, nothing)."""
    try:
        value = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return ProviderError()
    if isinstance(value, list) and value:  # vendor G's chat endpoint
        value = value[0]
    if isinstance(value, dict) and value.get("error"):
        value = value["error"]
    return as_error(value)


def as_error(value: object) -> ProviderError:
    """The value of a member `error`: an object, or just a message."""
    if isinstance(value, str):
        return ProviderError(message=value)
    if not isinstance(value, dict):
        return ProviderError()
    texts = {name: text for name in ("message", "type", "param") if isinstance(text := value.get(name), str)}
    if "message" not in texts and isinstance(detail := value.get("detail"), str):
        texts["message"] = detail
    code = value.get("code")
    return ProviderError(**texts, code=code if isinstance(code, str | int | float) else None)


def from_provider(status: int, error: ProviderError, headers: Mapping[str, str] | None = None) -> UmgError:
    """The error under an HTTP status, its own or the one that the error itself states (status 200)."""
    answered = status
    if status < 400:
        stated = str(error.code or error.type)
        status = int(stated) if HTTP_ERROR.fullmatch(stated) else STATED.get(stated, 502)
    words = f"{error.code} {error.type} {error.message}"
    metadata = {"upstream_status": str(answered)}
    if status == 429:
        seconds = _retry_after(headers or {})
        wait = "try again later" if seconds is None else f"try again in {seconds} s"
        retry = {} if seconds is None else {"retry_after_seconds": str(seconds)}
        return UmgError(pb.ERROR_REASON_UPSTREAM_RATE_LIMITED, f"the provider's rate limit is reached; {wait}", **retry)
    if status in (400, 413, 422):
        if PATH.match(error.param):
            metadata["field"] = error.param
        message = clean(error.message) or f"the provider refused the request (status {status})"
        if CONTEXT.search(words):
            return UmgError(pb.ERROR_REASON_CONTEXT_TOO_LONG, message, field="messages")
        if BLOCKED.search(f"{error.code} {error.type}"):
            return UmgError(pb.ERROR_REASON_CONTENT_BLOCKED, message)
        if not OURS.search(words):
            if isinstance(error.code, str) and CODE.match(error.code):
                metadata["upstream_code"] = error.code
            return UmgError(pb.ERROR_REASON_UPSTREAM_REJECTED, message, **metadata)
        metadata.pop("field", None)
    if status in (400, 401, 402, 403, 404, 407):
        message = (
            f"the provider refused the gateway's own call (status {status}); the operator has to check the channel"
        )
    elif error.message and not OURS.search(words) and not ACCOUNT.search(words):
        message = f"the provider failed (status {answered}): {clean(error.message)}"
    else:
        message = f"the provider failed (status {answered}); try again"
    return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message, **metadata)


def _retry_after(headers: Mapping[str, str]) -> int | None:
    """Whole seconds to wait, rounded up, at most a day; a date counts from the answer's own `date`."""
    wait = headers.get("retry-after", "")
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        elif wait.replace(".", "", 1).isdigit():
            seconds = float(wait)
        elif wait and "date" in headers:
            seconds = (parsedate_to_datetime(wait) - parsedate_to_datetime(headers["date"])).total_seconds()
        else:
            return None
        return math.ceil(min(max(0, seconds), LONGEST_WAIT))
    except (ValueError, TypeError):
        return None
