"""Size of the wrapper of each language: the code that is written by hand, beside what is generated from the schema."""

from pathlib import Path

import pytest

CLIENTS = Path(__file__).parents[2] / "clients"
WRAPPERS = {"go": "umg/**/*.go"}
"""Files of the wrapper, by language."""
LIMIT = 250


@pytest.mark.parametrize("language", WRAPPERS)
def test_a_wrapper_is_shorter_than_the_limit(language: str) -> None:
    files = sorted((CLIENTS / language).glob(WRAPPERS[language]))
    assert 0 < sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) < LIMIT
