"""The list of rows and the tests are consistent: each listed test exists, and each test is listed."""

import re
from collections import Counter

from tests.documents.spec.rows import HERE, ROWS

OWN = "test_rows.py"


def written() -> list[str]:
    """Return the names of all test functions of this directory, without those of this module."""
    modules = (path for path in sorted(HERE.glob("test_*.py")) if path.name != OWN)
    return [name for path in modules for name in re.findall(r"^async def (test_\w+)", path.read_text(), re.MULTILINE)]


def test_every_listed_row_has_its_tests() -> None:
    assert all(row.tests for row in ROWS)
    assert {test for row in ROWS for test in row.tests} - set(written()) == set()


def test_every_test_belongs_to_a_listed_row() -> None:
    assert set(written()) - {test for row in ROWS for test in row.tests} == set()


def test_no_name_occurs_twice() -> None:
    assert [name for name, times in Counter(written()).items() if times > 1] == []
    assert [row for row, times in Counter((row.section, row.text) for row in ROWS).items() if times > 1] == []
