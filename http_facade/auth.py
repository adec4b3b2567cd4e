"""Where a caller's key stands in an HTTP request. Whether it is a good one, the service says."""

from collections.abc import Mapping

from aiohttp import hdrs

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb


def credentials(headers: Mapping[str, str]) -> str | None:
    """The `authorization` to send with a call: the header as it came, None without one.

    The only place that counts so far; other headers and `?key=` are no credentials here (readings, 2). Raises
    UmgError(INVALID_KEY) for what gRPC could not carry, and which is no key of ours.
    """
    value = headers.get(hdrs.AUTHORIZATION)
    if value is not None and not (value.isascii() and value.isprintable()):
        raise UmgError(pb.ERROR_REASON_INVALID_KEY, "the authorization header must be: Bearer, a blank, the key")
    return value
