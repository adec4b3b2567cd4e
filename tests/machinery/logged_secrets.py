"""Check that no log of a gateway contains a secret, for all tests."""

from collections.abc import Generator

import pytest

from tests.support.secrets import leaked


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test during which a gateway of this process logged a secret."""
    report = yield
    if report.when == "teardown" and report.passed:
        written = [content for name, content in report.sections if "stderr" in name or "log" in name]
        if lines := leaked("\n".join(written)):
            report.outcome, report.longrepr = "failed", "\n".join(["secrets are in the log:", *lines])
    return report
