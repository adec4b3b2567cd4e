"""Order of the tests: those of long files first, since at the end the other workers would wait for them."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
EARLY_FILE = TESTS / "world" / "agents" / "test_agents.py"
"""File whose tests begin while the others are collected, if all tests run."""
LONGEST = (
    "clients",
    "agents",
    "soak",
    "crash",
    "memory",
    "bench",
    "linear",
    "faults",
    "cli",
    "docs",
    "pages",
    "console",
)
"""Directories whose files take longest."""
LONG_FILES = ("test_laws.py", "test_rules.py", "test_table.py")
"""Names of files in other directories that take long. They run before the rest of these directories."""
ROOMS = ("world", "proofs", "docs", "documents", "machinery", "pairs", "support", "unit")
"""Directories of `tests/`, in the order in which the rest of their files run: files of short tests come last."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests by their directories, the longest first. Workers take the files in this order."""
    ranks = {name: rank for rank, name in enumerate((*LONGEST, *LONG_FILES))}
    last = len(ranks)
    rooms = {name: rank for rank, name in enumerate(ROOMS)}

    def order(item: pytest.Item) -> tuple[int, int]:
        long = min(ranks.get(item.path.parent.name, last), ranks.get(item.path.name, last))
        return long, rooms.get(item.path.relative_to(TESTS).parts[0], 0)

    items.sort(key=order)
