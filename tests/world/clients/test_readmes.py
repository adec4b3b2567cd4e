"""First answers in the READMEs of the clients, which are programs that the clients' builds compile."""

import re
from pathlib import Path

import pytest

CLIENTS = Path(__file__).parents[3] / "clients"
PROGRAMS = {
    "go": "cmd/hello/main.go",
    "java": "src/test/java/Hello.java",
    "rust": "examples/hello.rs",
    "typescript": "src/hello.ts",
}
"""Program whose text the README contains, by language."""


@pytest.mark.parametrize("language", [name for name, path in PROGRAMS.items() if (CLIENTS / name / path).exists()])
def test_the_first_answer_is_the_program(language: str) -> None:
    readme = (CLIENTS / language / "README.md").read_text()
    program = (CLIENTS / language / PROGRAMS[language]).read_text()
    blocks = re.findall(rf"```{language}\n(.*?)```", readme, re.DOTALL)
    assert blocks[0] == program
