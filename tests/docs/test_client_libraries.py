"""Page of the client libraries: its examples are the programs that `tests/world/clients/test_languages.py` runs."""

import re
from pathlib import Path

import pytest

from tests.world.clients.test_languages import TOOLS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "client-libraries.md").read_text()
EXAMPLES = dict(re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL))
PROGRAMS = {
    "python": "hello.py",
    "go": "cmd/hello/main.go",
    "typescript": "src/hello.ts",
    "java": "src/test/java/Hello.java",
    "rust": "examples/hello.rs",
}
"""Program that prints a first response, by language."""


def test_every_language_has_an_example_and_a_row() -> None:
    assert list(EXAMPLES) == list(PROGRAMS) == list(TOOLS)
    rows = re.findall(
        r"^\| \[\w+\]\((\w+)/README.md\) \| `\w+/(\S+)` ", (ROOT / "clients/README.md").read_text(), re.MULTILINE
    )
    assert dict(rows) == PROGRAMS
    assert re.findall(r"\(\.\./clients/(\w+)\) ", PAGE) == list(PROGRAMS)


@pytest.mark.parametrize("language", PROGRAMS)
def test_an_example_is_the_program(language: str) -> None:
    assert EXAMPLES[language] in (ROOT / "clients" / language / PROGRAMS[language]).read_text()
    assert f"./clients/{language}" in PAGE
