"""The flag `--record` writes the files that tests expect; without it they are compared."""

from pathlib import Path

import pytest

from tests.support.snapshots import Snapshots


def test_a_recorded_result_passes_and_another_one_does_not(tmp_path: Path) -> None:
    folder = tmp_path / "case"
    Snapshots(records=True).check(folder, [("a.json", "é\r\n"), ("b.json", "2")])
    assert (folder / "a.json").read_bytes() == "é\r\n".encode()
    Snapshots(records=False).check(folder, [("b.json", "2"), ("a.json", "é\r\n")])
    with pytest.raises(AssertionError, match=r"b\.json differs; pytest --record"):
        Snapshots(records=False).check(folder, [("a.json", "é\r\n"), ("b.json", "3")])


def test_a_missing_file_fails_and_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"a\.json differs"):
        Snapshots(records=False).check(tmp_path, [("a.json", "1")])
    assert list(tmp_path.iterdir()) == []


def test_the_fixture_records_by_the_flag_alone(snapshots: Snapshots, pytestconfig: pytest.Config) -> None:
    assert snapshots.records is bool(pytestconfig.getoption("record"))
