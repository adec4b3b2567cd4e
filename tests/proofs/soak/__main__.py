"""Command `python -m tests.proofs.soak [soak] [cancellations] [overload] [--seconds N] [--rate N] [--seed N]`: runs the long tests
and prints all figures. The exit code states whether they are as demanded.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import uvloop

from tests.proofs.soak import cancellations, overload, soak
from tests.proofs.soak.report import Report

RUNS = SOAK, CANCELLATIONS, OVERLOAD = ("soak", "cancellations", "overload")
LEAVING = 2000


async def run(chosen: Sequence[str], plan: soak.Plan, directory: Path) -> list[Report]:
    """Run the chosen tests. Return the reports, and print each as soon as it is complete."""
    reports = list[Report]()

    def show(report: Report) -> None:
        sys.stdout.write(f"{report}\n")
        sys.stdout.flush()
        reports.append(report)

    if OVERLOAD in chosen:
        for case in overload.CASES:
            show(overload.report(await overload.overloaded(case, _below(directory, case.name), overload.Plan())))
    if CANCELLATIONS in chosen:
        show(
            cancellations.report(
                await cancellations.run_cancellations(LEAVING, _below(directory, CANCELLATIONS), plan.seed)
            )
        )
    if SOAK in chosen:
        show(soak.report(await soak.soaked(plan, _below(directory, SOAK))))
    return reports


def _below(directory: Path, name: str) -> Path:
    made = directory / name
    made.mkdir()
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.proofs.soak", description="Soak, cancelled calls and overload."
    )
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"of {', '.join(RUNS)}; all by default")
    parser.add_argument("--seconds", type=float, default=600, help="length of the soak")
    parser.add_argument("--rate", type=float, help="calls a second; by default 60 %% of what the machine reaches")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if unknown := set(given.runs) - set(RUNS):
        parser.error(f"no such run: {', '.join(sorted(unknown))}")
    plan = soak.Plan(seconds=given.seconds, rate=given.rate, seed=given.seed)
    with tempfile.TemporaryDirectory() as directory:
        reports = uvloop.run(run(given.runs or RUNS, plan, Path(directory)))
    sys.exit(0 if all(report.holds for report in reports) else 1)


if __name__ == "__main__":
    main()
