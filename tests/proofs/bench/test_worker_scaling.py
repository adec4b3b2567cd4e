"""Measurement of several workers against one in its short form: both answer calls and streams. No time is measured."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.benchmark_rounds import Result
from bench.worker_scaling import ONE, SEVERAL, Row, as_table, loads, rows

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the benchmark reads /proc")


def test_calls_and_streams_of_both_are_measured() -> None:
    command = [sys.executable, "-m", "bench.worker_scaling", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    measured = [line.split("|")[1].strip() for line in done.stdout.splitlines()[2:]]
    assert measured == ["small", "small", "stream", "stream"]


def test_a_ratio_is_the_median_of_those_of_the_rounds() -> None:
    small, stream = loads(2)
    rounds = [(100.0, 150.0), (100.0, 190.0), (200.0, 360.0)]
    results = [
        Result(scenario, number, target, (figure, 2 * figure), 1, ())
        for scenario in (small, stream)
        for number, pair in enumerate(rounds)
        for target, figure in zip((ONE, SEVERAL), pair, strict=True)
    ]
    found = [*rows(results)]
    assert found[0] == Row("small", small.measures[0], 100.0, 190.0, 1.8, (1.5, 1.9))
    assert len(found) == 4
    assert "|        100 |     190 |          1.80 | 1.50 - 1.90 |" in as_table(found)
