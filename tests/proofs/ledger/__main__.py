"""Command `python -m tests.proofs.ledger [--calls N] [--seed N]`: runs the proof on SQLite, and on PostgreSQL with two replicas,
and prints the sums of each key, project and
organisation. The exit code states whether they are equal.
"""

import argparse
import asyncio
import sys

from tests.proofs.ledger.judge import Account, Verdict
from tests.proofs.ledger.run import Plan, run
from tests.support.proofs_in_two_settings import Setting, prove

KILLS = 10
SHOWN = 10
COLUMNS = ("key", "calls", "charged", "killed", "served", "ledger", "balance", "drift")


def report(title: str, verdict: Verdict) -> str:
    """Return the table of the keys. Amounts are micro-credits."""
    named: list[tuple[int | str, Account]] = [*enumerate(verdict.accounts), *verdict.levels.items()]
    rows = [
        (
            *(number, each.calls, each.charged_calls, each.killed_calls, each.served, each.ledger),
            *("-" if each.balance is None else each.balance, each.drift),
        )
        for number, each in named
    ]
    of_keys = rows[: len(verdict.accounts)]
    total = ("all", *(sum(row[column] for row in of_keys) for column in range(1, 6)), "", sum(row[7] for row in rows))
    lines = ["".join(f"{value!s:>11}" for value in row) for row in (COLUMNS, *rows, total)]
    outcomes = ", ".join(f"{count} {outcome.value}" for outcome, count in verdict.outcomes.most_common())
    faults = [f"FAULT: {fault}" for fault in verdict.faults[:SHOWN]]
    return "\n".join([f"\n{title}: {outcomes}", *lines, *faults, "holds" if verdict.holds else "DOES NOT HOLD"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.ledger", description="Proof of the ledger.")
    parser.add_argument("--calls", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()

    def holds(setting: Setting) -> bool:
        plan = Plan(given.calls, KILLS, setting.gateways, given.seed)
        verdict = asyncio.run(run(plan, setting.database, setting.directory))
        sys.stdout.write(report(setting.title, verdict) + "\n")
        sys.stdout.flush()
        return verdict.holds

    prove("ledger", holds)


if __name__ == "__main__":
    main()
