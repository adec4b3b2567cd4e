"""Errors, both directions: ours as this format's callers read them, a provider's as ours."""

from functools import partial

import msgspec

from umg_grpc.errors import UmgError
from umg_grpc.wire import provider_errors
from umg_grpc.wire.chat.errors import encode_error

# --- ours -> caller


def encode_error_v2(error: UmgError, http_status: int) -> bytes:
    """The body of a refused call of `POST /v2/rerank`: what its clients read beside what every caller may read."""
    return b'{"message":%b,%b' % (msgspec.json.encode(error.message), encode_error(error, http_status)[1:])


# --- provider -> ours

TOO_LONG = "documents"
"""What a request has too much of."""

decode_error = partial(provider_errors.decode_error, too_long=TOO_LONG)
"""(HTTP status, headers by lower-case name, body) -> what the caller is told of a refused call."""
