"""Plain `pytest tests/unit` needs no plugin of the machinery."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = "tests/machinery"
IMPORT = "tests.machinery"
SAMPLE = ("tests/unit/routing/test_routing.py", "tests/unit/http_facade/test_acknowledgement.py")
"""Tests of a pure part, and of a server with its callers."""


def test_no_test_imports_the_machinery() -> None:
    files = (path for path in (ROOT / "tests").rglob("*.py") if path.parent != ROOT / HERE)
    named = {str(path.relative_to(ROOT)) for path in files if IMPORT in path.read_text(encoding="utf-8")}
    assert named == {"tests/conftest.py"}


def test_tests_of_parts_run_without_the_machinery() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", f"no:{IMPORT}", "-p", "no:cacheprovider", *SAMPLE]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == pytest.ExitCode.OK, run.stdout + run.stderr
    assert " passed" in run.stdout
