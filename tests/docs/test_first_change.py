"""First change of the page for contributors: it is short, and has the described effect."""

import re
from pathlib import Path

import msgspec

from tests.unit.wire.test_failures import CONTEXT, DECODERS, LONG, REJECTED, Refusal, openai
from umg_grpc.wire.errors.error_classification import OverflowWording, has

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
FIRST = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1]
CODE = {
    language: text.strip() for language, text in re.findall(r"^ +```(\w+)\n(.*?)```$", FIRST, re.DOTALL | re.MULTILINE)
}
NAMES = {"Refusal": Refusal, "openai": openai, "LONG": LONG, "CONTEXT": CONTEXT}


def refusal() -> Refusal:
    [case] = eval(f"[{CODE['python']}]", NAMES)
    assert isinstance(case, Refusal)
    return case


def test_the_page_begins_with_it_in_at_most_40_lines() -> None:
    assert PAGE.startswith(f"# Contributing\n\n## {FIRST}")
    assert len(FIRST.splitlines()) <= 40


def test_the_case_fails_without_the_row() -> None:
    case = refusal()
    error = DECODERS[case.format](case.status, case.headers, msgspec.json.encode(case.body))
    assert (error.name, case.reason) == (REJECTED, LONG)


def test_the_row_is_one_of_the_table_and_matches_its_example() -> None:
    row = msgspec.json.decode(CODE["json"], type=OverflowWording)
    assert has(row.pattern, row.example)
    assert row.example in str(refusal().body)


def test_the_subject_of_the_commit_has_at_most_72_characters() -> None:
    [subject, _] = re.findall(r'-m "(.*?)"', CODE["sh"])
    assert len(subject) <= 72


def test_every_target_of_the_change_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in {"hooks", *re.findall(r"`make (\w+)", FIRST)}:
        assert re.search(rf"^{target}: .*##", makefile, re.MULTILINE), target
