"""Faster tests: all workers start `umg` from one process that has its modules, if all tests run."""

import pytest

from tests.machinery.forked_workers import runs_all
from tests.support.forked_umg_starts import forking


def pytest_collection(session: pytest.Session) -> None:
    """Start that process before the first worker, while the tests are collected. Workers inherit its address."""
    if session.config.getoption("workers") and runs_all(session.config):
        forking()
