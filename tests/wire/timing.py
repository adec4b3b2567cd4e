"""A bound on the time that something takes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fails when the block took more of the processor's time. The bounds are ten times what it takes, and less than what
    it takes when the time grows with the square of the input.
    """
    begun = time.process_time()
    yield
    assert time.process_time() - begun < seconds
