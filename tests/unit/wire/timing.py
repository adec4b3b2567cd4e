"""A bound on the processor time of a block."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the block, which starts no threads, took more processor time. The bounds are ten times the usual time, and less than the time of an
    algorithm that grows with the square of the input.
    """
    begun = time.thread_time()
    yield
    assert time.thread_time() - begun < seconds
