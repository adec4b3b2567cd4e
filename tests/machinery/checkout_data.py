"""Guard of the checkout's own data folder, which a gateway makes that is run in the checkout: no test makes it.

The processes of tests run in folders of their own (`forked_umg_starts.new_folder`), so that none of them reads it either.
"""

from pathlib import Path

import pytest

from umg_grpc.cli.common_flags import DATA_FOLDER

FOLDER = Path(__file__).parents[2] / DATA_FOLDER
EXISTED = pytest.StashKey[bool]()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remember whether the folder exists. A gateway that runs in it may change it during the tests."""
    session.config.stash[EXISTED] = FOLDER.exists()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run if a test has made the folder."""
    if FOLDER.exists() and not session.config.stash[EXISTED]:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(f"a test has written to {FOLDER}; give its gateway a folder of its own", red=True)
