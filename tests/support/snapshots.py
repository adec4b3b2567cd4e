"""Snapshots: files with the results that a test expects. `pytest --record PATH` writes those of the tests of a path
again, to be reviewed as a diff.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from google.protobuf import text_format
from google.protobuf.message import Message


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


def text_of_message(message: Message) -> str:
    """Return a message of the schema as the content of a file `*.txtpb`."""
    return text_format.MessageToString(message, as_utf8=True)


def indented(body: bytes) -> str:
    """Return a JSON body as the content of a file."""
    return msgspec.json.format(body, indent=2).decode() + "\n"
