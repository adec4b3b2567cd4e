"""Page on the tests: it names each room and each folder of a room, and there are no others."""

import importlib.util
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS / "README.md").read_text(encoding="utf-8")
ROOMS = dict(re.findall(r"^\| `(\w+)/` \|(.*)\|$", PAGE, re.MULTILINE))
"""Room -> its question and its folders."""
NO_ROOMS = {"__pycache__"}


def folders(parent: Path) -> set[str]:
    return {each.name for each in parent.iterdir() if each.is_dir() and any(each.rglob("*.py"))} - NO_ROOMS


def test_the_page_names_every_room_and_no_other() -> None:
    assert folders(TESTS) == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_the_page_names_every_folder_of_a_room_and_no_other(room: str) -> None:
    question, named = ROOMS[room].split(" | ")
    assert "?" in question
    assert folders(TESTS / room) == {name for name in re.findall(r"`([\w/]+)`", named) if not name.endswith("/")}


@pytest.mark.parametrize("page", sorted(TESTS.rglob("README.md")), ids=lambda page: page.parent.name)
def test_a_path_on_a_page_exists(page: Path) -> None:
    named = set(re.findall(r"`(tests/[\w./-]+)`", page.read_text(encoding="utf-8")))
    assert not {path for path in named if not (TESTS.parent / path).exists()}


@pytest.mark.parametrize("room", ["pairs", "proofs", "world"])
def test_the_page_of_a_room_has_a_row_for_each_of_its_folders(room: str) -> None:
    rows = re.findall(r"^\|.*\|$", (TESTS / room / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)` \|", row)} == folders(TESTS / room)


def test_every_command_of_a_proof_exists() -> None:
    makefile = (TESTS.parent / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(r"`make (\w+)`", (TESTS / "proofs" / "README.md").read_text(encoding="utf-8"))
    assert len(commands) > 10
    assert not {name for name in commands if f"\n{name}: " not in makefile}


def test_no_test_lies_outside_of_a_room() -> None:
    assert {path.name for path in TESTS.glob("*.py")} == {"__init__.py", "conftest.py", "install.py"}


@pytest.mark.parametrize(
    "path", ["Makefile", ".ci/run", "docs/contributing.md", *(f"tests/{room}/README.md" for room in ("pairs", "world"))]
)
def test_a_command_runs_a_module_of_the_tests_that_exists(path: str) -> None:
    text = (TESTS.parent / path).read_text(encoding="utf-8")
    for name in re.findall(r"-m\s+(tests[\w.]+)", text):
        assert importlib.util.find_spec(name) is not None, name


def test_the_folders_of_unit_tests_are_named_by_packages() -> None:
    tops = ("umg_grpc", "umg_sandbox", "http_facade")
    packages = {*tops, *(path.parent.name for path in (TESTS.parent / "umg_grpc").glob("*/__init__.py"))}
    assert folders(TESTS / "unit") - packages == {"schema", "e2e"}
