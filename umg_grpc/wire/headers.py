"""Headers that mean the same on every path and over both faces (as HTTP headers, or as gRPC metadata)."""

from collections.abc import Mapping, Sequence

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb

MAX_REQUEST_ID_CHARACTERS = 128


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
