"""Errors of responses: events that end a failed stream, and errors in a provider's response object."""

import msgspec
from msgspec import Struct

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import error_members
from umg_grpc.wire.core.sse import named_frame
from umg_grpc.wire.errors.error_classification import ProviderError
from umg_grpc.wire.errors.error_message_redaction import clean
from umg_grpc.wire.errors.provider_errors import from_provider
from umg_grpc.wire.errors.stream_error_status_facts import stream_error_hints

BLOCKED_CODES = frozenset(
    {"invalid_prompt", "bio_policy", "image_content_policy_violation", "misalignment_policy_violation"}
)
# Codes by which a provider reports that the request was at fault.
REJECTED_CODES = frozenset(
    {
        *("invalid_image", "invalid_image_format", "invalid_base64_image", "invalid_image_url", "image_too_large"),
        *("image_too_small", "image_parse_error", "invalid_image_mode", "image_file_too_large"),
        *("unsupported_image_media_type", "empty_image_file", "failed_to_download_image", "image_file_not_found"),
    }
)


# Codes allowed in `error` of a response: those of the SDK's types, and two to which its clients react.
ERROR_CODES = (
    BLOCKED_CODES
    | REJECTED_CODES
    | {"server_error", "rate_limit_exceeded", "data_residency_mismatch", "vector_store_timeout"}
    | {"context_length_exceeded", "insufficient_quota"}
)


class ResponseError(Struct):
    """Member `error` of a response object that failed."""

    code: str
    message: str


def error_event(error: UmgError, sequence: int, *, has_begun: bool) -> bytes:
    """Return the event `error`, which follows `response.failed`. The error is in top-level members, as the format
    requires, and again in `error`, which makes all SDKs raise. That member has `retry_after`, and `status` unless
    `has_begun`.
    """
    body = error_members(error)
    payload = {
        "type": "error",
        "sequence_number": sequence,
        "code": body["code"],
        "message": body["message"],
        "param": body["param"],
        "error": body | stream_error_hints(error, has_begun=has_begun),
    }
    return named_frame(b"error", msgspec.json.encode(payload))


def response_error(error: UmgError) -> ResponseError:
    """Return a failed response's `error`; other codes become `invalid_prompt` (blocked content) or `server_error`."""
    body = error_members(error)
    code, message = str(body["code"]), str(body["message"])
    if code in ERROR_CODES:
        return ResponseError(code, message)
    blocked = error.reason in (pb.ERROR_REASON_CONTENT_BLOCKED, pb.ERROR_REASON_GUARD_REFUSED)
    return ResponseError("invalid_prompt" if blocked else "server_error", message)


def failure(error: ProviderError) -> UmgError:
    """Return the caller's error for a response that failed at the provider, chosen by the code in its `error`."""
    code = str(error.code or "")
    if code in BLOCKED_CODES:
        message = clean(error.message) or "the provider's safety system refused the prompt; change it"
        return UmgError(pb.ERROR_REASON_CONTENT_BLOCKED, message).with_failure(Failure.CALLER)
    return from_provider(400 if code in REJECTED_CODES else 200, error)
