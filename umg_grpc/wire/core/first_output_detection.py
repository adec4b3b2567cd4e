"""Detection of stream frames without output (a role, an empty text), held back so that failover is possible."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias, assert_never

import msgspec

from umg_grpc.wire.core import sse


class Value(Enum):
    """Scalar JSON value that does not count as output of a model: an empty value only, or any value."""

    EMPTY = auto()  # absent, null, or empty
    ANY = auto()


@dataclass(frozen=True)
class Items:
    """JSON list (absent or null unless required) that does not count as output, since none of its items has output."""

    shape: "Shape"
    required: bool = False


Shape: TypeAlias = "Value | Items | frozenset[str] | Mapping[str, Shape]"
"""Shape of a JSON value without output: a string by its possible values, an object by the shapes of its members."""

OTHER_EVENTS = ""
"""Name for all members that an object's shape does not name. Without this name, they must be empty."""

OutputCheck = Callable[[bytes], bool]


def output_check(mark: re.Pattern[bytes], *shapes: Shape) -> OutputCheck:
    """Return a function that tests whether frames contain no output of the model yet: their JSON has one of `shapes`.

    Frames that `mark` matches count as output undecoded, since most streams have output in their first read. Frames
    that cannot be decoded count as output, too.
    """

    def has_no_output(frames: bytes) -> bool:
        if mark.search(frames):
            return False
        try:
            for event in sse.split(frames):
                if event.data is not None and not _fits_one(msgspec.json.decode(event.data), shapes):
                    return False
        except (ValueError, RecursionError):
            return False
        return True

    return has_no_output


def _fits_one(value: object, shapes: Sequence[Shape]) -> bool:
    return value is not None and any(_fits(value, shape) for shape in shapes)


def _fits(value: object, shape: Shape) -> bool:
    """Return whether a JSON value has the shape. `value`: None for a member that is absent or null."""
    match shape:
        case Value.ANY:
            return True
        case Value.EMPTY:
            return value in (None, "", [], {})
        case Items(inner, required):
            if value is None:
                return not required
            return isinstance(value, list) and all(_fits(item, inner) for item in value)
        case frozenset():
            return isinstance(value, str) and value in shape
        case Mapping():
            return _members_fit({} if value is None else value, shape)
        case unhandled:
            assert_never(unhandled)


def _members_fit(members: object, shape: Mapping[str, Shape]) -> bool:
    if not isinstance(members, dict):
        return False
    others = shape.get(OTHER_EVENTS, Value.EMPTY)
    for name, inner in shape.items():
        if name != OTHER_EVENTS and not _fits(members.get(name), inner):
            return False
    for name, member in members.items():  # noqa: SIM110  a loop as above
        if name not in shape and not _fits(member, others):
            return False
    return True
