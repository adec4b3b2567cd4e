"""Comparison of interpreted and compiled functions: both forms do the same works, which take some time."""

from pathlib import Path

import pytest

from bench import compiled_modules


def test_each_work_is_a_call_that_succeeds() -> None:
    for name, work in compiled_modules.works().items():
        work()
        assert name


def test_the_modules_are_files_of_the_gateway() -> None:
    assert [module for module in compiled_modules.MODULES if not (compiled_modules.ROOT / module).is_file()] == []


def test_both_forms_are_compared_by_their_shortest_times(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Measure in place of the compiled copy, which takes a compiler and a minute, the working tree once more."""
    times = {compiled_modules.ROOT: iter([{"a": 4.0}, {"a": 3.0}]), tmp_path: iter([{"a": 1.5}, {"a": 2.0}])}
    monkeypatch.setattr(compiled_modules, "compile_copy", lambda _: tmp_path)
    monkeypatch.setattr(compiled_modules, "measured_in", lambda tree: next(times[tree]))
    assert "| a | 3.0 | 1.5 | 2.00 |" in compiled_modules.table(2)
