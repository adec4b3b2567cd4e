"""Pytest plugin: the summary of the failed tests names the exceptions of a group, not only their number.

A garbage collection finds objects that an earlier test left open. pytest then fails the test that runs with a group
of warnings, and the summary is all that CI shows of it.
"""

from collections.abc import Generator

import pytest
from _pytest._code.code import ExceptionRepr


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    if (
        isinstance(error, BaseExceptionGroup)
        and isinstance(report.longrepr, ExceptionRepr)
        and report.longrepr.reprcrash
    ):
        parts = "; ".join(f"{type(each).__name__}: {each.__cause__ or each}" for each in error.exceptions)
        report.longrepr.reprcrash.message = f"{type(error).__name__}: {error.message}: {parts[:500]}"
    return report
