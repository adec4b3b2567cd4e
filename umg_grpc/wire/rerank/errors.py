"""Errors of the rerank format: encoded for callers, and decoded from providers."""

from functools import partial

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.wire.chat.errors import encode_error, message_for_callers
from umg_grpc.wire.errors import provider_errors

# --- gateway -> caller


def encode_error_v2(error: UmgError, http_status: int) -> bytes:
    """Return the JSON error body of `POST /v2/rerank`: the member `message`, which its clients read, and the member
    `error`. `http_status`: status of the response.
    """
    return b'{"message":%b,%b' % (msgspec.json.encode(message_for_callers(error)), encode_error(error, http_status)[1:])


# --- provider -> gateway

TOO_LONG = "documents"
"""Canonical field that an error names if the provider rejects the request as too long."""

decode_error = partial(provider_errors.decode_error, too_long=TOO_LONG)
"""(HTTP status, headers by lower-case name, body) of a failed call -> the error that the caller gets."""
