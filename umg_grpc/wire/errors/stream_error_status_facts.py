"""Facts about an error in a stream that a failed call without a stream has in its status line and headers."""

import math

from umg_grpc.base.errors import UmgError
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.errors.http_status import http_status


def stream_error_hints(error: UmgError, face: str = "", *, has_begun: bool) -> JsonObject:
    """Return `status` (HTTP) if no part of the response was sent (`has_begun` is false). Return `retry_after`, the
    whole seconds to wait before a retry, if known. `face`: the caller's format, "" for no particular one.
    """
    hints: JsonObject = {} if has_begun else {"status": http_status(error, face)}
    if (seconds := error.retry_after) is not None:
        hints["retry_after"] = max(1, math.ceil(seconds))
    return hints
