"""Errors, both directions: ours as this format's callers read them, a provider's as ours."""

from collections.abc import Mapping

import msgspec

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import provider_errors
from umg_grpc.wire.chat.errors import encode_error

# --- ours -> caller


def encode_error_v2(error: UmgError, http_status: int) -> bytes:
    """The body of a refused call of `POST /v2/rerank`: what its clients read beside what every caller may read."""
    return b'{"message":%b,%b' % (msgspec.json.encode(error.message), encode_error(error, http_status)[1:])


# --- provider -> ours


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> UmgError:
    """What the caller is told of a refused call."""
    refused = provider_errors.decode_error(status, headers, body)
    if refused.reason == pb.ERROR_REASON_CONTEXT_TOO_LONG:
        refused.metadata["field"] = "documents"
    return refused
