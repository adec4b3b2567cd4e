"""Headers that mean the same on every path and over both faces (as HTTP headers, or as gRPC metadata)."""

import re
from collections.abc import Mapping, Sequence

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb

MAX_REQUEST_ID_CHARACTERS = 128
TIMEOUT, CACHE = "x-umg-timeout", "x-umg-cache"
SPAN = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|)", re.ASCII)
SECONDS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
LONGEST_CACHE = 30 * 86400
LONGEST_TIMEOUT = 1e8  # three years: what is longer is as good as for ever, and clocks need not bear it


def is_request_id(given: str | None) -> bool:
    """Whether a caller's request id is fit for headers and logs: 1 to 128 visible ASCII characters."""
    return (
        given is not None
        and 0 < len(given) <= MAX_REQUEST_ID_CHARACTERS
        and given.isascii()
        and given.isprintable()
        and " " not in given
    )


def is_strict(given: str | None) -> bool:
    """What `x-umg-strict` says; absent is false. Raises UmgError(INVALID_FIELD)."""
    if given not in {None, "true", "false"}:
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, "x-umg-strict must be true or false", field="x-umg-strict")
    return given == "true"


def timeout_seconds(given: str | None) -> float:
    """How long the caller waits for the whole answer, as `x-umg-timeout` says it (`30`, `1.5s`, `500ms`, `2m`), at most
    `LONGEST_TIMEOUT`; absent is for ever. Raises UmgError(INVALID_FIELD).
    """
    if given is None:
        return float("inf")
    if (seconds := _span(given)) is None or seconds <= 0:
        message = "x-umg-timeout must be a time such as 30, 1.5s, 500ms or 2m, above 0"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=TIMEOUT)
    return min(seconds, LONGEST_TIMEOUT)


def cache_seconds(given: str | None) -> int | None:
    """For how long the caller lets an answer be kept, and how old one may be that it is given, as `x-umg-cache` says it
    (`300`, `5m`, `off`, which is 0); None is as the model's entry says. Raises UmgError(INVALID_FIELD).
    """
    if given is None:
        return None
    seconds = 0.0 if given == "off" else _span(given)
    if seconds is None or seconds > LONGEST_CACHE or (0 < seconds < 1):
        message = "x-umg-cache must be `off`, or a time such as 300, 5m or 1h, at most 30d"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=CACHE)
    return int(seconds)


def _span(given: str) -> float | None:
    if (match := SPAN.fullmatch(given.strip())) is None:
        return None
    return float(match[1]) * SECONDS[match[2]]


def source_headers(names: Sequence[str], headers: Mapping[str, str]) -> dict[str, str]:
    """Those of a request's headers that go with its body to a provider, by the names that its format allows. Raises
    UmgError(INVALID_FIELD) for a value that no header can have.
    """
    kept = {name: headers[name] for name in names if name in headers}
    for name, value in kept.items():
        if not (value.isascii() and value.isprintable()):
            message = f"the header {name} must be printable ASCII"
            raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=name)
    return kept
