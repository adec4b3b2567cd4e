"""The summary of a failed test names each object that was left open."""

import subprocess
from pathlib import Path

from tests.machinery.test_forked_workers import command, environment

LEAVING = """
import gc, warnings

class Left:
    def __init__(self, name):
        self.name, self.own = name, self

    def __del__(self):
        warnings.warn(f"unclosed {self.name}", ResourceWarning)

def test_left():
    Left("one"), Left("two")
    gc.collect()
"""
ERRORS = ("-W", "error::ResourceWarning", "-W", "error::pytest.PytestUnraisableExceptionWarning")


def test_the_summary_names_each_object_that_was_left_open(tmp_path: Path) -> None:
    (tmp_path / "test_left.py").write_text(LEAVING)
    started = command([*ERRORS, "-p", "tests.machinery.exception_groups", "--workers", "1"])
    variables = {**environment(), "CI": "true"}
    run = subprocess.run(started, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    [line] = [line for line in run.stdout.splitlines() if line.startswith("FAILED")]
    assert all(f"unclosed {name}" in line for name in ("one", "two"))
