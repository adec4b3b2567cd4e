"""Short form of `make soak`: it takes seconds, and judges no times, which depend more on the machine here."""

from pathlib import Path

import pytest

from tests.proofs.soak import cancellations, overload, soak
from tests.proofs.soak.report import Report
from umg_grpc.service.resilience.call_start_queue import ALWAYS_STARTED

SHORT_SOAK = soak.Plan(seconds=6, rate=100, at_once=ALWAYS_STARTED // 2, warmup_seconds=8)
"""Plan of a load that is no overload of a busy machine either: a gateway serves that many calls at once, however slowly."""
SHORT_OVERLOAD = overload.Plan(ramp=1, half=0.3, onset=0.5, seconds=1.5)
LONGER_OVERLOAD = overload.Plan(ramp=1, half=0.3, seconds=3)
"""Plan for a limit that the gateway measures: on a busy machine it takes a while to notice that it is exceeded."""
MEASURED = "processor"
LEAVING = 4 * cancellations.AT_ONCE


def sound(report: Report) -> None:
    """Fail with the whole report if a figure fails its demand; timed figures are not judged."""
    assert not report.broken(timed=False), str(report)


async def test_a_while_with_a_faulty_provider_goes_unnoticed_and_leaves_nothing_behind(tmp_path: Path) -> None:
    sound(soak.report(await soak.soaked(SHORT_SOAK, tmp_path)))


async def test_hundreds_of_callers_that_leave_leave_nothing_behind(tmp_path: Path) -> None:
    sound(cancellations.report(await cancellations.run_cancellations(LEAVING, tmp_path)))


@pytest.mark.parametrize("case", overload.CASES, ids=lambda case: case.name)
async def test_excess_calls_are_refused_and_the_others_are_answered_correctly(
    case: overload.Case, tmp_path: Path
) -> None:
    plan = LONGER_OVERLOAD if case.name == MEASURED else SHORT_OVERLOAD
    sound(overload.report(await overload.overloaded(case, tmp_path, plan)))
