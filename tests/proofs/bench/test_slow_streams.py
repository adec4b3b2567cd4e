"""Measurement of slow streams in its short form, and its table: all by counts, no time is measured."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.slow_streams import QUICK

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the benchmark reads /proc")


def test_hundreds_of_slow_streams_are_open_at_once_and_no_call_beside_them_is_refused() -> None:
    command = [sys.executable, "-m", "bench.slow_streams", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    figures = {cell[1].strip(): cell[2].strip() for cell in (row.split("|") for row in done.stdout.splitlines())}
    assert figures["streams open"] == str(QUICK.streams)
    assert figures["streams refused"] == figures["small calls beside: refused"] == "0"
    assert figures["streams that ended complete / cut"] == f"{QUICK.streams} / 0"
    assert figures["small calls beside: good"] == str(round(QUICK.rate * QUICK.seconds))
