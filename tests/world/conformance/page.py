"""Results in docs/conformance.md: the part below its mark."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from umg_conformance.check_runner import Result
from umg_conformance.result_reports import summaries, verdict

PAGE = Path(__file__).parents[3] / "docs" / "conformance.md"
MARK = "<!-- results: written by `make conformance` -->\n"
SHOWN = 160
"""Most characters of a problem."""


@dataclass(frozen=True)
class Run:
    name: str
    version: str
    about: str
    results: Sequence[Result]


def render(runs: Sequence[Run], day: date) -> str:
    """Return the text below the mark."""
    lines = [
        f"Run on {day.isoformat()} by `make conformance`, on one machine. Every gateway was in front of the simulated",
        "provider of this project, by which it was called with the same requests; the peers were called on the faces that",
        "they have. The simulated provider cuts streams and fails where a check needs it.",
    ]
    for run in runs:
        lines += ["", f"### {run.name} {run.version}".rstrip(), "", run.about, "", *_table(run), "", *_failures(run)]
    return "\n".join([*lines, ""])


def _table(run: Run) -> list[str]:
    rows = [
        f"| {each.face} | {each.passed} | {each.failed} | {each.differing} | {each.skipped} |"
        for each in summaries(run.results)
    ]
    head = "| face | passed | required, failed | recommended, failed | skipped |"
    return [head, "|---|---|---|---|---|", *rows]


def _failures(run: Run) -> list[str]:
    failed = [result for result in run.results if result.fails_run]
    if not failed:
        return [f"{verdict(run.results)}."]
    return [
        f"{verdict(run.results)}:",
        "",
        *(f"- {each.face} `{each.id}`: `{_plain(each.problem)}`" for each in failed),
    ]


def _plain(text: str) -> str:
    text = re.sub(r"\s+", " ", text.replace("`", "'"))
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def write(runs: Sequence[Run], day: date) -> None:
    text = PAGE.read_text(encoding="utf-8")
    kept, mark, _ = text.partition(MARK)
    assert mark, f"{PAGE} has no mark"
    PAGE.write_text(f"{kept}{mark}\n{render(runs, day)}", encoding="utf-8")
