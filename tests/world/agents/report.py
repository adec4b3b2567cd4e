"""Table of the outcomes: a row for each program with its settings, a column for each scenario and provider."""

from collections.abc import Sequence

from tests.world.agents.run import Case, Outcome
from tests.world.agents.versions import NPM, PYPI


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the rows, then each problem, then the count."""
    ways = list(dict.fromkeys(outcome.case.way for outcome in outcomes))
    rows = dict[str, dict[str, list[str]]]()
    for outcome in outcomes:
        cells = rows.setdefault(_row(outcome.case), {})
        mark = outcome.case.scenario.name
        cells.setdefault(outcome.case.way, []).append(f"**{mark} fails**" if outcome.problems else mark)
    lines = [["program", *ways], ["---"] * (len(ways) + 1)]
    lines += [[row, *(", ".join(cells.get(way, ["-"])) for way in ways)] for row, cells in rows.items()]
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    failed = [outcome for outcome in outcomes if outcome.problems]
    problems = "".join(
        f"\n{outcome.case.id}\n" + "".join(f"  {each}\n" for each in outcome.problems) for outcome in failed
    )
    return f"{text}{problems}\n{len(outcomes) - len(failed)} passed, {len(failed)} failed\n"


def _row(case: Case) -> str:
    version = (NPM | PYPI)[case.program.package]
    return f"{case.program.name} {version}, {case.settings.format}, {case.model or case.settings.model}"
