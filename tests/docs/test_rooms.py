"""Page on the tests: it names each room and each folder of a room, and there are no others."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS / "README.md").read_text(encoding="utf-8")
ROOMS = dict(re.findall(r"^\| `(\w+)/` \|(.*)\|$", PAGE, re.MULTILINE))
"""Room -> its question and its folders."""
NO_ROOMS = {"__pycache__"}


def folders(parent: Path) -> set[str]:
    """Return the names of the folders that contain a module, at any depth."""
    return {each.name for each in parent.iterdir() if each.is_dir() and any(each.rglob("*.py"))} - NO_ROOMS


def test_the_page_names_every_room_and_no_other() -> None:
    assert folders(TESTS) == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_the_page_names_every_folder_of_a_room_and_no_other(room: str) -> None:
    question, named = ROOMS[room].split(" | ")
    assert "?" in question
    assert folders(TESTS / room) == {name for name in re.findall(r"`([\w/]+)`", named) if not name.endswith("/")}


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(tests/[\w./]+)`", PAGE))))
def test_an_example_of_the_page_exists(path: str) -> None:
    assert (TESTS.parent / path).exists()


def test_no_test_lies_outside_of_a_room() -> None:
    assert {path.name for path in TESTS.glob("*.py")} == {"__init__.py", "conftest.py", "install.py"}
