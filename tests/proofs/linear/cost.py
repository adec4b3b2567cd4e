"""Measurement of the cost of a call, and the decision whether it grows faster than the size of its input.

Executed lines of Python are counted: the count is the same on every machine and finds loops at small sizes. Loops in C
execute no lines: for them the processor time is compared at larger sizes.
"""

import gc
import sys
import time
from collections.abc import Callable
from types import FrameType

LIMIT = 1.3
"""Largest factor by which the cost may grow, relative to the size of the input, each time that the size doubles."""
SLACK_LINES = 400
"""Lines by which a count may exceed the limit: small differences come from a branch here and there."""
SHORTER = 4
"""Divisor of the sizes at which lines are counted first. The excess of a quadratic count, and so the slack, is divided by
its square: an excess at the larger sizes is suspected at the smaller ones, and confirmed at the larger ones.
"""
SUSPICIONS = 2
"""Measurements at the smaller sizes before the larger ones: in the first, the smallest size fills caches and imports, which
makes the count look as if it grew faster than it does.
"""
CONFIRMATIONS = 3
"""Measurements of the lines before their growth counts as too fast."""
SLACK_SECONDS = 0.0005
DOUBLINGS = 2
"""Doublings between the two sizes whose times are compared."""
ATTEMPTS = 12
"""Measurements of a time before it counts as too long; the smallest of them is compared."""
MAX_CONFIRMED = 2**16
"""Largest size at which a fault is confirmed."""
LONGEST = 2.0
"""Seconds of a call above which no larger size is tried, and no measurement is repeated."""

Work = Callable[[], object]
Making = Callable[[int], Work]
"""Size of the input -> the call, whose input exists already."""


def lines_of(work: Work) -> int:
    """Return the number of lines of Python that the call executes, and of returns."""
    count = 0

    def step(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += 1

    def trace(frame: FrameType, event: str, argument: object) -> Callable[[FrameType, str, object], None]:
        return step

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()  # finalizers of other objects would be counted
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return count


def line_growth(make: Making, size: int) -> str:
    """Return the description of line counts that grow faster than the input; "" for none.

    The differences between three sizes are compared, so that the constant share cancels out. Counts that grow too fast
    are confirmed: a cache that another test filled is emptied once, and not each time.
    """
    for _ in range(SUSPICIONS):
        if not _suspected(make, size // SHORTER, SLACK_LINES // SHORTER**2):
            return ""
    for _ in range(CONFIRMATIONS):
        if not (complaint := _suspected(make, size, SLACK_LINES)):
            return ""
    return complaint


def _suspected(make: Making, size: int, slack: int) -> str:
    one, two, four = (lines_of(make(size * factor)) for factor in (1, 2, 4))
    if four - two <= 2 * LIMIT * max(0, two - one) + slack:
        return ""
    return f"lines of Python at {size}, {2 * size} and {4 * size}: {one}, {two}, {four}"


def time_growth(make: Making, size: int) -> str:
    """Return the description of a time that grows faster than the input; "" for none.

    A ratio that is too large is confirmed at the next sizes: a cache that is too small makes a call slower once, and
    not at each size.
    """
    while True:
        complaint, seconds = _ratio(make, size)
        size <<= 2 * DOUBLINGS
        if not complaint or size > MAX_CONFIRMED or seconds > LONGEST:
            return complaint


def _ratio(make: Making, size: int) -> tuple[str, float]:
    """Return the description of the times at two sizes, "" if they are good, and the seconds at the larger size."""
    small, large = make(size), make(size << DOUBLINGS)
    least, most = _seconds(small), _seconds(large)
    for _ in range(ATTEMPTS):
        least = min(least, _seconds(small))
        if most <= least * (2 * LIMIT) ** DOUBLINGS + SLACK_SECONDS:
            return "", most
        if most > LONGEST:
            break
        most = min(most, _seconds(large))
    times = f"{least:.4f} and {most:.4f}, {most / least:.1f} times as much"
    return f"seconds at {size} and {size << DOUBLINGS}: {times}", most


def _seconds(work: Work) -> float:
    """Return the processor time of a call, without that of the garbage collector."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        began = time.thread_time()
        work()
        return time.thread_time() - began
    finally:
        if enabled:
            gc.enable()
