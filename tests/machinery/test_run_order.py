"""Lists of long files: each name is one of the tree, so that a move or a new name does not slow the suite down unseen."""

from tests.machinery.event_loops import LEAVES_CONNECTIONS, ON_UVLOOP
from tests.machinery.run_order import EARLY_FILE, LONG_FILES, LONGEST, ROOMS, TESTS

FILES = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]


def test_every_room_has_its_place_in_the_order() -> None:
    assert {path.parts[0] for path in FILES} == set(ROOMS)


def test_every_folder_of_long_files_has_files() -> None:
    assert {*LONGEST, *ON_UVLOOP} <= {path.parent.name for path in FILES}


def test_every_long_file_exists() -> None:
    assert {*LONG_FILES, LEAVES_CONNECTIONS, EARLY_FILE.name} <= {path.name for path in FILES}
    assert EARLY_FILE.is_file()
