"""Error bodies of Ollama's API: one object whose member `error` is a text."""

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.line_end_escapes import escaped

KEY_ADVICE = (
    "in a client of this API set OLLAMA_API_KEY, its field for the key, or a header `Authorization: Bearer KEY`"
)
"""Remedy in the error for a missing key, since Ollama's server needs no key and its clients rarely send one."""


def encode_error(error: UmgError, http_status: int) -> bytes:
    """Return the body of a failed call: `{"error": "..."}`."""
    return msgspec.json.encode({"error": message_of(error)})


def error_line(error: UmgError) -> bytes:
    """Return the line that ends a failed stream."""
    return escaped(msgspec.json.encode({"error": message_of(error)})) + b"\n"


def message_of(error: UmgError) -> str:
    """Return an error's text: Ollama's own words first for an unknown model, the remedy last for a missing key."""
    if error.reason == pb.ERROR_REASON_MODEL_NOT_FOUND and (model := error.metadata.get("model")) is not None:
        _, _, advice = error.message.partition(". ")
        return f"model '{model}' not found, or this key may not use it. {advice}".rstrip()
    if error.reason == pb.ERROR_REASON_MISSING_KEY:
        return f"{error.message.rstrip('.')}; {KEY_ADVICE}"
    return error.message
