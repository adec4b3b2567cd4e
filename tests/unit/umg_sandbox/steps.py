"""Work counted in calls of functions, which a slow machine does not change."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from cProfile import Profile
from dataclasses import dataclass

MAX_CALLS = 3_000_000
"""Limit for one schema: about a second."""


@dataclass
class Calls:
    """Number of function calls, including those of C functions."""

    count: int = 0


@contextmanager
def counted() -> Iterator[Calls]:
    """Count the calls in this block. The number is known at its end."""
    calls, before, profile = Calls(), sys.getprofile(), Profile()
    profile.enable()
    try:
        yield calls
    finally:
        profile.disable()
        sys.setprofile(before)
        calls.count = sum(entry.callcount for entry in profile.getstats())
