"""Guarded decoding of callers' bodies, for all formats: limits before decoding, and no body that causes an internal
error.
"""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from umg_grpc.errors import UmgError, overloaded, place_of
from umg_grpc.v1 import pb
from umg_grpc.wire.core.body_limits import check_bounds
from umg_grpc.wire.text_format import BIG_BYTES

Params = ParamSpec("Params")
Decoded = TypeVar("Decoded")

SLOW_MARKS = 4096
"""Number of commas and colons from which a body takes milliseconds to decode, even if it has few bytes."""

NO_MEMORY = "the gateway has not the memory to read this body"
MALFORMED = "the body is not what its format says, and no field of it can be named; compare it with the format"


def is_slow(body: bytes) -> bool:
    """Return whether the body takes milliseconds to decode, so that it should be decoded in a thread."""
    return len(body) >= BIG_BYTES or body.count(b",") + body.count(b":") >= SLOW_MARKS


def decode_body(
    decode: Callable[Concatenate[bytes, Params], Decoded], body: bytes, *arguments: Params.args, **named: Params.kwargs
) -> Decoded:
    """Return a caller's body decoded by `decode`, to which all further arguments are passed.

    Raise UmgError: the error of `decode`; MALFORMED_BODY for a body beyond the limits of size and depth, and for any
    other failure of `decode` (with the place in the code, for the log); UNAVAILABLE if the memory does not suffice.
    """
    check_bounds(body)
    try:
        return decode(body, *arguments, **named)
    except UmgError:
        raise
    except MemoryError:
        place = None
    except Exception as error:  # any failure of the decoder is caused by the body
        place = place_of(error)
    # outside the `except` block, so that the error does not keep the decoder's frames alive, and without a variable for
    # it, since its traceback refers to this frame: the cycle would keep the body
    raise _body_error(place)


def decode_form_body(decode: Callable[[bytes, str], Decoded], body: bytes, content_type: str) -> Decoded:
    """Return a caller's form decoded by `decode`. Raise UmgError: the error of `decode`; MALFORMED_BODY for any other
    failure of it; UNAVAILABLE if the memory does not suffice.
    """
    try:
        return decode(body, content_type)
    except UmgError:
        raise
    except MemoryError:
        place = None
    except Exception as error:
        place = place_of(error)
    raise _body_error(place)  # as in `decode_body`


def _body_error(place: str | None) -> UmgError:
    """Return the error that the caller gets if a decoder failed unexpectedly. `place`: place of the failure in the
    code, for the log; None for a lack of memory.
    """
    if place is None:
        return overloaded(NO_MEMORY)
    return UmgError(pb.ERROR_REASON_MALFORMED_BODY, MALFORMED).at(place)
