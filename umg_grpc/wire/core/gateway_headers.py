"""Request headers of the gateway with the same meaning on every path, as HTTP headers or as gRPC metadata."""

import re
from collections.abc import Mapping, Sequence

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

STRICT_HEADER, TIMEOUT_HEADER, CACHE_HEADER = "x-umg-strict", "x-umg-timeout", "x-umg-cache"
ACKNOWLEDGE_HEADER = "x-umg-acknowledge"
"""Request header of a proxy; `true` if the proxy needs to know whether a call may have reached a provider."""
DROPPED_HEADER = "x-umg-dropped"
"""Response header with the fields that were not sent to the provider, see `Report.header`."""
ROUTE_HEADER = "x-umg-route"
"""Response header with the selected channel, the number of attempts and the reason; only some keys may see it."""
GUARDS_HEADER = "x-umg-guards"
"""Response header with the guards' decisions that are known when the header is sent, see `GuardRun`."""
WAITING_HEADER = "x-umg-waiting"
"""Response header `true` of a stream whose headers were sent before its first event. Its other headers describe the
attempt at that time; another channel may have responded after it.
"""
DURATION_FORM = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|)", re.ASCII)
UNIT_SECONDS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
MAX_CACHE_SECONDS = 30 * 86400
MAX_TIMEOUT_SECONDS = 1e8  # three years; longer timeouts are capped because clocks may not accept them


def is_strict(given: str | None) -> bool:
    """Return whether the header `x-umg-strict` requests strict mode, in which requests that would lose fields are
    rejected. Raise UmgError(INVALID_FIELD) for other values than `true` and `false`.
    """
    if given not in {None, "true", "false"}:
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, "x-umg-strict must be true or false", field="x-umg-strict")
    return given == "true"


def timeout_seconds(given: str | None) -> float:
    """Return the seconds that the caller waits for the whole response, from the header `x-umg-timeout` (`30`, `1.5s`,
    `500ms`, `2m`). At most `MAX_TIMEOUT_SECONDS`; infinity without the header (None). Raise UmgError(INVALID_FIELD) for
    any other text, and for 0.
    """
    if given is None:
        return float("inf")
    if (seconds := _duration_seconds(given)) is None or seconds <= 0:
        message = "x-umg-timeout must be a time such as 30, 1.5s, 500ms or 2m, above 0"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=TIMEOUT_HEADER)
    return min(seconds, MAX_TIMEOUT_SECONDS)


def cache_seconds(given: str | None) -> int | None:
    """Return the seconds for which a response may be cached, from the header `x-umg-cache` (`300`, `5m`, `off` for 0).
    They are also the maximum age of a cached response for this caller. None without the header: the model's
    configuration decides. Raise UmgError(INVALID_FIELD) for any other text.
    """
    if given is None:
        return None
    seconds = 0.0 if given == "off" else _duration_seconds(given)
    if seconds is None or seconds > MAX_CACHE_SECONDS or (0 < seconds < 1):
        message = "x-umg-cache must be `off`, or a time such as 300, 5m or 1h, at most 30d"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=CACHE_HEADER)
    return int(seconds)


def _duration_seconds(given: str) -> float | None:
    if (match := DURATION_FORM.fullmatch(given.strip())) is None:
        return None
    return float(match[1]) * UNIT_SECONDS[match[2]]


def source_headers(names: Sequence[str], headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request that are forwarded to a provider with the body. `names`: lower-case names of the
    headers that the format of the body allows. Raise UmgError(INVALID_FIELD) for a value that is not printable ASCII.
    """
    forwarded = dict[str, str]()
    for name in names:
        if (value := headers.get(name)) is None:
            continue
        if not (value.isascii() and value.isprintable()):
            message = f"the header {name} must be printable ASCII"
            raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=name)
        forwarded[name] = value
    return forwarded
