"""Command `python -m tests.proofs.chaos [--event TEXT] [--proxy NAME] [--seed N] [--write]`: runs the events behind each
proxy, prints the table, and writes it into `docs/chaos.md`. The exit code states whether all events hold.
"""

import argparse
import asyncio
import sys

from tests.proofs.chaos.cluster import PROXIES, servers
from tests.proofs.chaos.events import EVENTS
from tests.proofs.chaos.page import Row, table, write
from tests.proofs.chaos.run import Plan, run
from tests.support.proxies import program

SHOWN = 8


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.chaos", description="Events under load.")
    parser.add_argument("--event", default="", help="only events with this text in their names")
    parser.add_argument("--proxy", choices=[*PROXIES], help="default: all that are installed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="write the table into docs/chaos.md")
    given = parser.parse_args()
    rows = list[Row]()
    names = [name for name in PROXIES if given.proxy in {None, name} and program(name.lower()) is not None]
    events = [event for event in EVENTS if given.event in event.name]
    with servers() as running:
        for event in events:
            for proxy in names:
                verdict = asyncio.run(run(event, proxy, Plan(seed=given.seed), running))
                rows.append(Row(event, proxy, verdict))
                faults, failures = verdict.faults[:SHOWN], verdict.failures[:SHOWN]
                lines = [*(f"  FAULT: {fault}" for fault in faults), *(f"  failed: {failed}" for failed in failures)]
                sys.stdout.write("\n".join([table(rows[-1:]).splitlines()[-1], *lines]) + "\n")
                sys.stdout.flush()
    sys.stdout.write(f"\n{table(rows)}")
    if given.write:
        write(rows)
    sys.exit(0 if all(row.verdict.holds for row in rows) else 1)


if __name__ == "__main__":
    main()
