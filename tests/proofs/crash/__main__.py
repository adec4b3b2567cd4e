"""Command `python -m tests.proofs.crash [--tasks N] [--kills N] [--seconds N] [--seed N]`: runs the crash test on SQLite, and
with two gateways on PostgreSQL. The exit code states whether nothing was lost, sent twice or charged wrongly.
"""

import argparse
import asyncio
import sys

from tests.proofs.crash.judge import Outcome
from tests.proofs.crash.run import Plan, run
from tests.support.proofs_in_two_settings import Setting, prove

SHOWN = 10


def report(title: str, outcome: Outcome) -> bool:
    """Print the figures of a run. Return whether it had no fault."""
    faults = list(outcome.faults())
    ends = ", ".join(f"{count} {end}" for end, count in outcome.ends.most_common())
    lines = [
        f"{title}: {len(outcome.task_ids)} tasks, {outcome.kills} kills: {ends}",
        f"  submissions at the providers: {sum(outcome.submissions.values())}, most of one task"
        f" {max(outcome.submissions.values(), default=0)}",
        f"  ledger: {outcome.balance.spent} micro-credits spent, {outcome.balance.held} held",
        *(f"  FAULT: {fault}" for fault in faults[:SHOWN]),
        "  holds" if not faults else f"  DOES NOT HOLD: {len(faults)} faults",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
    return not faults


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.crash", description="Crash test of video tasks.")
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120, help="time of the kills")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sizes = {"tasks": given.tasks, "kills": given.kills, "seconds": given.seconds, "seed": given.seed}

    def holds(setting: Setting) -> bool:
        plan = Plan(**sizes, database=setting.database, gateways=setting.gateways)
        return report(setting.title, asyncio.run(run(plan, setting.directory)))

    prove("crash", holds)


if __name__ == "__main__":
    main()
