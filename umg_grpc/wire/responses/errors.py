"""Errors of this format: the event that ends a broken stream; a provider's refusals, and the failures that it states
inside an answer.
"""

import msgspec
from msgspec import Struct

from umg_grpc.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import encode_error
from umg_grpc.wire.clean import clean
from umg_grpc.wire.provider_errors import from_provider
from umg_grpc.wire.refusals import ProviderError
from umg_grpc.wire.sse import named_frame

BLOCKED = frozenset({"invalid_prompt", "bio_policy", "image_content_policy_violation", "misalignment_policy_violation"})
# Codes by which a provider says that the request was at fault.
REJECTED = frozenset(
    {
        "invalid_image",
        "invalid_image_format",
        "invalid_base64_image",
        "invalid_image_url",
        "image_too_large",
        "image_too_small",
        "image_parse_error",
        "invalid_image_mode",
        "image_file_too_large",
        "unsupported_image_media_type",
        "empty_image_file",
        "failed_to_download_image",
        "image_file_not_found",
    }
)


# Codes that the `error` of a response may have: those of the SDK's types, and two that its clients act upon.
CODES = (
    BLOCKED
    | REJECTED
    | {"server_error", "rate_limit_exceeded", "data_residency_mismatch", "vector_store_timeout"}
    | {"context_length_exceeded", "insufficient_quota"}
)


class ErrorBody(Struct):
    """`error` of a body of ours."""

    message: str
    type: str
    param: str | None
    code: str | None


class ResponseError(Struct):
    """`error` of a response that failed."""

    code: str
    message: str


class Wrapped(Struct):
    """A body of ours."""

    error: ErrorBody


_BODY = msgspec.json.Decoder(Wrapped)


def error_event(error: UmgError, sequence: int) -> bytes:
    """Return the event that ends a broken stream, after `response.failed`.

    Flat, as the format says, and with the same again as `error`, at which all SDKs raise (reference, 2.6).
    """
    said = _stated(error)
    payload = {
        "type": "error",
        "sequence_number": sequence,
        "code": said.code,
        "message": said.message,
        "param": said.param,
        "error": said,
    }
    return named_frame(b"error", msgspec.json.encode(payload))


def response_error(error: UmgError) -> ResponseError:
    """Return `error` of a response that failed."""
    said = _stated(error)
    if said.code in CODES:
        return ResponseError(said.code, said.message)
    blocked = error.reason == pb.ERROR_REASON_CONTENT_BLOCKED
    return ResponseError("invalid_prompt" if blocked else "server_error", said.message)


def _stated(error: UmgError) -> ErrorBody:
    return _BODY.decode(encode_error(error, 500)).error


def failure(error: ProviderError) -> UmgError:
    """What the caller is told of a response that failed, by the code of its `error`."""
    code = str(error.code or "")
    if code in BLOCKED:
        message = clean(error.message) or "the provider's safety system refused the prompt; change it"
        return UmgError(pb.ERROR_REASON_CONTENT_BLOCKED, message).of(Failure.CALLER)
    return from_provider(400 if code in REJECTED else 200, error)
