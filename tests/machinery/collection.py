"""Collection of the tests without garbage collections."""

import gc
from collections.abc import Generator

import pytest

THRESHOLDS = (100_000, 20, 20)
"""Thresholds of the garbage collection of the tests. Memory of cycles is plentiful, and collections as frequent as those
of a gateway that serves take a sixth of the time of the tests.
"""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests, a million objects, without garbage collections, and exempt them from those of the tests."""
    gc.disable()
    gc.set_threshold(*THRESHOLDS)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
