"""Table of `docs/long-sessions.md`: a row for each program, a column for each format of the provider."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.world.agents.endurance.checks import problems
from tests.world.agents.endurance.programs import LONG_RUNNING, LongRunning
from tests.world.agents.endurance.run import UPSTREAMS, LongCase, LongRun
from tests.world.agents.versions import NPM, PYPI

PAGE = Path(__file__).parents[4] / "docs" / "long-sessions.md"
BLOCK = re.compile(r"(<!-- runs -->\n)(.*?)(<!-- end -->)", re.DOTALL)
FAILED = "fails"


@dataclass(frozen=True)
class Result:
    case: LongCase
    problems: Sequence[str]
    calls: int
    summaries: int
    micro_credits: int
    seconds: float

    @classmethod
    def of(cls, run: LongRun) -> "Result":
        sums = len(run.bills), run.task.compactions, run.ledger.micro_credits
        return cls(run.case, list(problems(run)), *sums, run.seconds)


def row_name(running: LongRunning) -> str:
    return f"{running.program.name} {(NPM | PYPI)[running.program.package]}"


def table(results: Sequence[Result], others: Mapping[tuple[str, str], str] = MappingProxyType({})) -> str:
    """Return the table of the results. `others`: (row, format) -> cell of the runs that were not repeated."""
    cells = dict(others) | {(row_name(each.case.running), each.case.upstream.format): _cell(each) for each in results}
    formats = [upstream.format for upstream in UPSTREAMS]
    names = [name for running in LONG_RUNNING if (name := row_name(running)) in {row for row, _ in cells}]
    lines = [["program", *formats], ["---"] * (len(formats) + 1)]
    lines += [[name, *(cells.get((name, each), "-") for each in formats)] for name in names]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(result: Result) -> str:
    if result.problems:
        return f"**{FAILED}**"
    return f"{result.calls} calls, {result.micro_credits / 1_000_000:.2f} credits"


def listed(results: Sequence[Result]) -> str:
    """Return the seconds, the summaries and the problems of each run, and the number of failed ones."""
    lines = [
        f"{each.case.id}: {each.seconds:.0f} s, {each.summaries} summaries\n"
        + "".join(f"  {problem}\n" for problem in each.problems)
        for each in results
    ]
    failed = sum(bool(each.problems) for each in results)
    return "".join(lines) + f"\n{len(results) - failed} passed, {failed} failed\n"


def written(text: str, results: Sequence[Result]) -> str:
    """Return the page with the cells of the results, and its other ones."""
    formats = [upstream.format for upstream in UPSTREAMS]
    others = {(row[0], name): cell for row in rows(text) for name, cell in zip(formats, row[1:], strict=True)}
    return BLOCK.sub(lambda block: f"{block[1]}{table(results, others)}{block[3]}", text)


def rows(text: str) -> list[list[str]]:
    """Return the cells of each row of the page's table, without its head."""
    found = BLOCK.search(text)
    assert found is not None
    lines = found[2].strip().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
