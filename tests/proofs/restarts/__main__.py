"""Command `python -m tests.proofs.restarts [--restarts N] [--away SECONDS] [--crash]`: restarts PostgreSQL under the calls of
two gateways, and prints the calls of each kind. The exit code states whether all were answered.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

from tests.proofs.restarts.run import KINDS, Plan, run
from tests.support.databases import Postgres
from tests.support.load import Tally


def report(tally: Tally) -> str:
    """Return the table of the calls, and the errors of failed calls."""
    lines = [f"{'calls':22}{'answered':>10}{'failed':>8}{'slowest s':>11}"]
    for kind in KINDS:
        failed, slowest = len(tally.failed[kind]), tally.slowest_seconds[kind]
        lines.append(f"{kind:22}{tally.answered[kind]:>10}{failed:>8}{slowest:>11.2f}")
    errors = {error for failed in tally.failed.values() for error in failed}
    return "\n".join([*lines, *(f"FAULT: {error}" for error in sorted(errors))])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.proofs.restarts", description="Restarts of PostgreSQL under load."
    )
    parser.add_argument("--restarts", type=int, default=12)
    parser.add_argument("--away", type=float, default=0.3, help="seconds between end and start of the server")
    parser.add_argument("--crash", action="store_true", help="end the server as a crash does")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="umg-restarts-"))
    postgres = Postgres(Path(tempfile.mkdtemp(prefix="umg-postgres-")))
    try:
        plan = Plan(given.restarts, given.away, immediate=given.crash)
        tally = asyncio.run(run(plan, postgres, folder))
    finally:
        postgres.close()
        shutil.rmtree(folder)
    sys.stdout.write(f"{report(tally)}\n")
    sys.exit(any(tally.failed.values()))


main()
