"""Limits of a caller's JSON body: the number of its members and values, and the depth of nesting.

Decoding a body blocks the interpreter for a time that grows with the number of members, so a limit of bytes is not
enough. The count is exact for valid JSON. It is made in steps that each take a fraction of a millisecond.
"""

from functools import partial

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

MAX_MEMBERS = 100_000
"""Maximum number of members in all objects of a body, as in 20,000 turns of a conversation with five members each."""
MAX_VALUES = 500_000
"""Maximum number of values of a body, enough for 300,000 token numbers, a provider's maximum for embeddings."""
MAX_LEVELS = 200
"""Maximum depth of objects and arrays. The decoder and the walks over a schema fail at several times this depth."""

STEP_BYTES = 256 * 2**10

_MARKS = b'"[]{},:'
_OTHERS = bytes(set(range(256)) - set(_MARKS))
_SQUARE = bytes.maketrans(b"{}", b"[]")
_NOT_BRACKETS = b",:"
_TOO_DEEP = b"[" * (MAX_LEVELS + 1)


def check_bounds(body: bytes) -> None:
    """Raise UmgError(MALFORMED_BODY) for a body with too many members or values, or nested too deep, since decoding it
    takes too much time or memory. Invalid JSON may pass: the decoder reports it.
    """
    # fast paths for nearly all bodies: the counts include characters inside strings
    if len(body) <= STEP_BYTES:  # a member takes five bytes and a value two, so that there cannot be too many
        if body.count(b"[") + body.count(b"{") <= MAX_LEVELS:
            return
    else:
        count = partial(_count_in_steps, body)
        brackets = count(b"[") + count(b"{")
        if count(b":") <= MAX_MEMBERS and count(b",") + brackets <= MAX_VALUES and brackets <= MAX_LEVELS:
            return
    _check_levels(_structure(body))


def _count_in_steps(body: bytes, mark: bytes) -> int:
    return sum(body.count(mark, start, start + STEP_BYTES) for start in range(0, len(body), STEP_BYTES))


def _structure(body: bytes) -> bytes:
    """Return the brackets outside strings in a body, in order, with braces replaced by square brackets."""
    found, start, inside, members, values = list[bytes](), 0, False, 0, 0
    while start < len(body):
        end = _step_end(body, start)
        marks, start = _marks(body[start:end]), end
        pieces = marks.split(b'"')
        outside = b"".join(pieces[inside::2])
        inside ^= len(pieces) % 2 == 0
        members += outside.count(b":")
        brackets = outside.translate(_SQUARE, _NOT_BRACKETS)
        values += outside.count(b",") + brackets.count(b"[")
        if members > MAX_MEMBERS:
            raise _too_large(f"has more than {MAX_MEMBERS} members in its objects; send fewer")
        if values > MAX_VALUES:
            raise _too_large(f"has more than {MAX_VALUES} values; send fewer")
        found.append(brackets)
    return b"".join(found)


def _step_end(body: bytes, start: int) -> int:
    """Return the end of the step that begins at `start`. It never separates a backslash from the escaped character."""
    end = min(start + STEP_BYTES, len(body))
    step = body[start:end]
    return end + (len(step) - len(step.rstrip(b"\\"))) % 2


def _marks(step: bytes) -> bytes:
    if b'\\"' in step:
        step = step.replace(b"\\\\", b"").replace(b'\\"', b"")
    return step.translate(None, _OTHERS).replace(b'""', b"")


def _check_levels(brackets: bytes) -> None:
    for _ in range(MAX_LEVELS):
        if _TOO_DEEP in brackets:
            break
        if b"[]" not in brackets:
            return
        brackets = brackets.replace(b"[]", b"")
    if b"[]" in brackets:
        raise _too_large(f"is nested deeper than {MAX_LEVELS} levels; flatten it")


def _too_large(problem: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_MALFORMED_BODY, f"the body {problem}")
