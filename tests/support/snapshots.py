"""Snapshots: files with the results that a test expects. `pytest --record PATH` writes those of the tests of a path
again, to be reviewed as a diff.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    description = "write the results of the code into the files that tests expect, to be reviewed as a diff"
    parser.addoption("--record", action="store_true", help=description)


@dataclass(frozen=True)
class Snapshots:
    """Comparison of results with files, or the recording of them."""

    records: bool

    def check(self, folder: Path, made: Iterable[tuple[str, str]]) -> None:
        """Compare each (file name, content) with the file in a folder."""
        for name, content in made:
            if self.records:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content.encode())
            expected = (folder / name).read_bytes().decode() if (folder / name).exists() else None
            assert content == expected, f"{folder / name} differs; pytest --record writes it again, to be reviewed"


@pytest.fixture(scope="session")
def snapshots(request: pytest.FixtureRequest) -> Snapshots:
    """Return the comparison with files, or their recording by the flag."""
    return Snapshots(request.config.getoption("record"))
