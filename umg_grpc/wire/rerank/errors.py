"""Errors, both directions: ours as this format's callers read them, a provider's as ours."""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import encode_error
from umg_grpc.wire.provider_errors import ProviderError, from_provider, read_error

# --- ours -> caller


def encode_error_v2(error: UmgError, http_status: int) -> bytes:
    """The body of a refused call of `POST /v2/rerank`: what its clients read beside what every caller may read."""
    return b'{"message":%b,%b' % (msgspec.json.encode(error.message), encode_error(error, http_status)[1:])


# --- provider -> ours


class Violation(Struct):
    """One of `detail` of a body that was checked against a schema."""

    msg: str
    loc: list[str | int] = []


class Violations(Struct):
    """A refusal that lists what is wrong."""

    detail: list[Violation]


_VIOLATIONS = msgspec.json.Decoder(Violations)


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> UmgError:
    """What the caller is told of a refused call."""
    error = read_error(body)
    refused = from_provider(status, error if error.message else _first_violation(body) or error, headers)
    if refused.reason == pb.ERROR_REASON_CONTEXT_TOO_LONG:
        refused.metadata["field"] = "documents"
    return refused


def _first_violation(body: bytes) -> ProviderError | None:
    try:
        violations = _VIOLATIONS.decode(body).detail
    except (ValueError, RecursionError):
        return None
    for violation in violations:
        where = ".".join(str(step) for step in violation.loc if step != "body")
        return ProviderError(message=f"{where}: {violation.msg}" if where else violation.msg)
    return None
