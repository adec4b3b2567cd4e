"""Work counted in calls of functions, which a slow machine does not change."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

MAX_CALLS = 3_000_000
"""Limit for one schema: about a second."""


class Calls:
    """Number of function calls, including those of C functions."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        self.count += event in ("call", "c_call")


@contextmanager
def counted() -> Iterator[Calls]:
    """Count the calls in this block."""
    calls, before = Calls(), sys.getprofile()
    sys.setprofile(calls)
    try:
        yield calls
    finally:
        sys.setprofile(before)
