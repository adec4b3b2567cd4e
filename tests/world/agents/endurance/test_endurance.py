"""Short form of `python -m tests.world.agents.endurance`: two programs with some turns, which have all that a long run has."""

import asyncio
from pathlib import Path

from tests.world.agents.endurance.checks import problems
from tests.world.agents.endurance.page import FAILED, PAGE, row_name, rows
from tests.world.agents.endurance.programs import BY_NAME, LONG_RUNNING
from tests.world.agents.endurance.run import FULL, UPSTREAMS, LongCase, run
from tests.world.agents.endurance.task import Plan
from tests.world.agents.install import installed
from tests.world.sdk.runner import installed_or_skipped

SHORT = Plan(turns=15, unavailable_at=3, cut_at=5, restarted_at=8, lines=7)
BY_FORMAT = {upstream.format: upstream for upstream in UPSTREAMS}
CASES = [
    LongCase(BY_NAME["Claude Code"], BY_FORMAT["chat"], SHORT),
    LongCase(BY_NAME["Codex"], BY_FORMAT["messages"], SHORT),
]


async def test_a_program_loses_nothing_in_a_session_with_failures_a_summary_and_a_restart(tmp_path: Path) -> None:
    programs = installed_or_skipped(installed)
    runs = await asyncio.gather(*(run(case, programs, tmp_path / str(at)) for at, case in enumerate(CASES)))
    assert {found.case.id: list(problems(found)) for found in runs} == {case.id: [] for case in CASES}


def test_a_long_session_has_a_hundred_turns_with_two_hundred_calls() -> None:
    assert (FULL.turns, FULL.parts) == (100, 200)


def test_the_page_has_every_program_in_its_version_with_every_format() -> None:
    found = rows(PAGE.read_text(encoding="utf-8"))
    assert [row[0] for row in found] == [row_name(each) for each in LONG_RUNNING]
    assert all(len(row) == len(UPSTREAMS) + 1 for row in found)
    assert not any(FAILED in cell or cell == "-" for row in found for cell in row)
