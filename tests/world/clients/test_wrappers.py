"""Size of the wrapper of each language: the code that is written by hand, without that generated from the schema."""

from pathlib import Path

import pytest

CLIENTS = Path(__file__).parents[3] / "clients"
WRAPPERS = {"go": "umg", "typescript": "src", "java": "src/main/java", "rust": "src"}
"""Directory of the wrapper, by language."""
PROGRAMS = ("hello.ts", "scenarios.ts")
"""Files beside a wrapper that use it."""
LIMIT = 250


@pytest.mark.parametrize("language", WRAPPERS)
def test_a_wrapper_is_shorter_than_the_limit(language: str) -> None:
    files = [file for file in (CLIENTS / language / WRAPPERS[language]).rglob("*.*") if file.name not in PROGRAMS]
    assert 0 < sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) < LIMIT
