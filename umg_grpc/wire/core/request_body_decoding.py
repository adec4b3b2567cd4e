"""Guarded decoding of callers' bodies in all formats: limits are checked first; no body causes an internal error."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from umg_grpc.base.errors import UmgError, overloaded, place_of
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_body_limits import check_bounds
from umg_grpc.wire.text_format_interface import BIG_BYTES

Params = ParamSpec("Params")
Decoded = TypeVar("Decoded")

SLOW_MARKS = 4096
"""Number of commas and colons from which decoding a body takes milliseconds, even if it has few bytes."""

NO_MEMORY = "the gateway has not the memory to read this body"
MALFORMED_BODY = "the body does not have the form of its format; compare it with the format's documentation"


def is_slow(body: bytes) -> bool:
    """Return whether the body takes milliseconds to decode, so that it should be decoded in a thread."""
    if len(body) < SLOW_MARKS:
        return False
    return len(body) >= BIG_BYTES or body.count(b",") + body.count(b":") >= SLOW_MARKS


def decode_body(
    decode: Callable[Concatenate[bytes, Params], Decoded], body: bytes, *arguments: Params.args, **named: Params.kwargs
) -> Decoded:
    """Return a caller's body decoded by `decode` with further arguments. Raise UmgError: the error of `decode`;
    MALFORMED_BODY for a body beyond the limits of size and depth, and for any other failure (with the position in the
    code, for the log); UNAVAILABLE if there is too little memory.
    """
    check_bounds(body)
    return _guarded(decode, body, *arguments, **named)


def decode_form_body(decode: Callable[[bytes, str], Decoded], body: bytes, content_type: str) -> Decoded:
    """Return a caller's form decoded by `decode`. Raise UmgError: the error of `decode`; MALFORMED_BODY for any other
    failure; UNAVAILABLE if there is too little memory.
    """
    return _guarded(decode, body, content_type)


def encode_body(encode: Callable[Params, Decoded], *arguments: Params.args, **named: Params.kwargs) -> Decoded:
    """Return a caller's request encoded by `encode`. Raise UmgError as `decode_body` does: the request is the cause."""
    return _guarded(encode, *arguments, **named)


def _guarded(decode: Callable[Params, Decoded], *arguments: Params.args, **named: Params.kwargs) -> Decoded:
    """Return the result of a decoder. Raise UmgError as `decode_body` does."""
    try:
        return decode(*arguments, **named)
    except UmgError:
        raise
    except MemoryError:
        place = None
    except Exception as error:  # any failure of the decoder is caused by the body
        place = place_of(error)
    # outside the `except` block, so that the error does not keep the decoder's frames alive, and without a variable for
    # it, since its traceback refers to this frame: the cycle would keep the body
    if place is None:
        raise overloaded(NO_MEMORY)
    raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, MALFORMED_BODY).at(place)
