"""Error bodies of the HTTP APIs for video tasks; `/v1/video/generations` and `/v1/videos` use those of chat."""

from collections.abc import Mapping

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import ERROR_KINDS, REQUEST_ERROR, SERVER_ERROR
from umg_grpc.wire.core.json_decoding import JsonObject

# Codes by HTTP status, as the vendors' own APIs name them where the reference has one (not shown in the document).
CODES_D = {
    400: "InvalidParameter",
    401: "AuthenticationError",
    403: "AccessDenied",
    404: "ResourceNotFound",
    405: "MethodNotAllowed",
    409: "ResourceConflict",
    413: "RequestTooLarge",
    415: "UnsupportedMediaType",
    416: "InvalidRange",
    429: "RateLimitExceeded",
    499: "RequestCancelled",
    501: "NotImplemented",
    503: "ServerOverloaded",
    504: "Timeout",
}
REASONS_D: "dict[pb.ErrorReason.ValueType, str]" = {
    pb.ERROR_REASON_MISSING_FIELD: "MissingParameter",
    pb.ERROR_REASON_MODEL_NOT_FOUND: "ModelNotOpen",
    pb.ERROR_REASON_QUOTA_EXHAUSTED: "QuotaExceeded",
    pb.ERROR_REASON_CONTENT_BLOCKED: "InputTextSensitiveContentDetected",
    pb.ERROR_REASON_GUARD_REFUSED: "InputTextSensitiveContentDetected",
}
CODES_E = {400: 1201, 401: 1002, 403: 1103, 404: 1203, 405: 1202, 429: 1303, 503: 5001, 504: 5002}
CODES_F = {400: 50400, 401: 50401, 403: 50403, 404: 50404, 405: 50405, 429: 50429, 503: 50501, 504: 50504}
TYPES_G = {
    400: "bad_request_error",
    401: "authorized_error",
    403: "permission_error",
    404: "not_found_error",
    405: "method_not_allowed_error",
    413: "request_too_large_error",
    429: "rate_limit_error",
}


def encode_error_d(error: UmgError, status: int) -> bytes:
    """Return the error body of the HTTP API of family `vidD`: `{error: {code, message}}`. `status`: HTTP status."""
    default = "InternalServiceError" if status >= 500 else "InvalidParameter"
    code = REASONS_D.get(error.reason) or CODES_D.get(status, default)
    return msgspec.json.encode({"error": {"code": code, "message": error.message}})


def encode_error_e(error: UmgError, status: int) -> bytes:
    """Return the error body of `vidE`: `{code, message, request_id, error}`, whose code is never 0 (success)."""
    return _enveloped(error, status, CODES_E, 5000)


def encode_error_f(error: UmgError, status: int) -> bytes:
    """Return the error body of `vidF`: `{code, message, request_id, data: null, error}`; 10000 would mean success."""
    return _enveloped(error, status, CODES_F, 50500, data=None)


def encode_error_g(error: UmgError, status: int) -> bytes:
    """Return the error body of `vidG`: `{type: error, error: {type, message, http_code}, request_id}`."""
    kind = TYPES_G.get(status, "server_error" if status >= 500 else "bad_request_error")
    fields = {"type": kind, "message": error.message, "http_code": str(status)}
    return msgspec.json.encode({"type": "error", "error": fields, "request_id": _request_id(error)})


def _enveloped(error: UmgError, status: int, codes: Mapping[int, int], server: int, **more: object) -> bytes:
    code = codes.get(status, server if status >= 500 else codes[400])
    kind, word = ERROR_KINDS.get(error.reason, (SERVER_ERROR if status >= 500 else REQUEST_ERROR, None))
    detail: JsonObject = {"message": error.message, "type": kind, "param": error.metadata.get("field"), "code": word}
    body = {"code": code, "message": error.message, "request_id": _request_id(error), **more, "error": detail}
    return msgspec.json.encode(body)


def _request_id(error: UmgError) -> str:
    return error.metadata.get("request_id", "")
