"""The short form of `make soak`: of a minute, and without a word on times, which say more of the machine here."""

from pathlib import Path

import pytest

from tests.soak import leavers, overload, soak
from tests.soak.__main__ import LEAVING
from tests.soak.report import Report

MINUTE = soak.Plan(seconds=60, rate=100, warmup_seconds=10)
"""At a rate that a machine reaches which does something else besides."""
SHORT = overload.Plan(ramp=2, seconds=3)


def sound(report: Report) -> None:
    """Shows all of a report of which something does not hold."""
    assert not report.broken(timed=False), str(report)


async def test_a_minute_with_a_faulty_provider_goes_unnoticed_and_leaves_nothing_behind(tmp_path: Path) -> None:
    sound(soak.report(await soak.soaked(MINUTE, tmp_path)))


async def test_two_thousand_callers_that_leave_leave_nothing_behind(tmp_path: Path) -> None:
    sound(leavers.report(await leavers.left(LEAVING, tmp_path)))


@pytest.mark.parametrize("case", overload.CASES, ids=lambda case: case.name)
async def test_what_is_too_much_is_refused_and_the_rest_is_right(case: overload.Case, tmp_path: Path) -> None:
    sound(overload.report(await overload.overloaded(case, tmp_path, SHORT)))
