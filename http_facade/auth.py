"""Where a caller's key stands in an HTTP request. Whether it is a good one, the service says."""

from collections.abc import Mapping

from aiohttp import hdrs

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb

NATIVE_KEYS = ("x-vendorg-api-key", "x-goog-api-key")
KEY_HEADERS = {
    "native": NATIVE_KEYS,
    "native_embedding": NATIVE_KEYS,
    "native_embeddings": NATIVE_KEYS,
    "messages": ("x-api-key",),
    "models": ("x-api-key", *NATIVE_KEYS),
    "native_models": ("x-api-key", *NATIVE_KEYS),
}
"""Headers that hold a key beside `Authorization`, by wire format; elsewhere they are no credentials (text document,
Authentication rule 3; readings, 2)."""
KEY_PARAMETERS = dict.fromkeys(("native", "native_embedding", "native_embeddings", "models", "native_models"), "key")
"""Query parameters that do."""


def credentials(headers: Mapping[str, str], query: Mapping[str, str], face: str) -> str | None:
    """The `authorization` to send with a call, None without one. Of several places the first counts, in the order
    above; an `Authorization` header comes before them all.

    Raises UmgError(INVALID_KEY) for what gRPC could not carry, and which is no key of ours.
    """
    value = headers.get(hdrs.AUTHORIZATION)
    if value is None and face in KEY_HEADERS:
        key = next((headers[name] for name in KEY_HEADERS[face] if name in headers), None)
        if key is None and face in KEY_PARAMETERS:
            key = query.get(KEY_PARAMETERS[face])
        value = None if key is None else f"Bearer {key}"
    if value is not None and not (value.isascii() and value.isprintable()):
        raise UmgError(pb.ERROR_REASON_INVALID_KEY, "a key has visible ASCII characters only; send yours as it stands")
    return value
