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
    """Return whether the body takes milliseconds to decode, so that callers of `decode_body` do it in a thread."""
    return len(body) >= BIG_BYTES or body.count(b",") + body.count(b":") >= SLOW_MARKS


def decode_body(
    decode: Callable[Concatenate[bytes, Params], Decoded], body: bytes, *arguments: Params.args, **named: Params.kwargs
) -> Decoded:
    """Decode a caller's body with the decoder and its further arguments.

    Raise UmgError: the decoder's own; MALFORMED_BODY for a body beyond the limits and for any other failure of the
    decoder, with its `place` for the log; UNAVAILABLE where the memory does not suffice.
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
    """Decode a caller's form with the decoder. Raise UmgError as `decode_body`, except for the limits of JSON."""
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
    """Return the caller's error for a decoder that failed unexpectedly at `place`; None for a lack of memory."""
    if place is None:
        return overloaded(NO_MEMORY)
    return UmgError(pb.ERROR_REASON_MALFORMED_BODY, MALFORMED).at(place)
