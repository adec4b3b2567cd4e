"""A bound on the processor time of a block."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the block took more processor time. The bounds are ten times the usual time, and less than the time of an
    algorithm that grows with the square of the input.
    """
    begun = time.process_time()
    yield
    assert time.process_time() - begun < seconds
