"""Error bodies of the image paths, with the members of the specification (`code`, `msg`) and of SDKs (`error`)."""

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import ERROR_KINDS, REQUEST_ERROR, SERVER_ERROR, message_for_callers
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.sse import named_frame
from umg_grpc.wire.errors.http_status import http_status as status_of
from umg_grpc.wire.errors.stream_error_status_facts import stream_error_hints

REASON_CODES = dict.fromkeys(
    (pb.ERROR_REASON_CONTENT_BLOCKED, pb.ERROR_REASON_GUARD_REFUSED), "content_policy_violation"
)
"""Reason of an error -> `code` in the body, where clients of image paths expect another code than chat clients."""


def encode_error(error: UmgError, http_status: int) -> bytes:
    """Return the JSON body of a rejected or failed call; its member `code` is the HTTP status."""
    return msgspec.json.encode(_members(error, http_status))


def error_frame(error: UmgError, *, has_begun: bool) -> bytes:
    """Return the server-sent event `error`, which ends a stream after a failure. Its member `error` has
    `retry_after` and, before any event (`has_begun` is false), `status`.
    """
    members = _members(error, status_of(error), **stream_error_hints(error, has_begun=has_begun))
    return named_frame(b"error", msgspec.json.encode({"type": "error", **members}))


def _members(error: UmgError, http_status: int, **hints: object) -> JsonObject:
    kind, code = ERROR_KINDS.get(error.reason, (SERVER_ERROR if http_status >= 500 else REQUEST_ERROR, None))
    code = REASON_CODES.get(error.reason) or code or error.metadata.get("upstream_code")
    message = message_for_callers(error)
    described = {"message": message, "type": kind, "param": error.metadata.get("field"), "code": code, **hints}
    return {"code": http_status, "msg": message, "error": described}
