"""Command `python -m tests.world.agents.endurance [--program NAME] [--upstream FORMAT] [--write]`: runs the long task of
each program at a provider of each format, and prints a table.
"""

import argparse
import asyncio
import logging
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import structlog

from tests.world.agents.all import each_alone
from tests.world.agents.endurance.page import PAGE, Result, listed, table, written
from tests.world.agents.endurance.programs import LONG_RUNNING
from tests.world.agents.endurance.run import UPSTREAMS, LongCase, run
from tests.world.agents.install import Installed, installed


async def run_all(cases: Sequence[LongCase], programs: Installed, directory: Path, at_once: int) -> list[Result]:
    """Run all cases, each program once at a time. Return the results in the order of the cases."""

    async def checked(place: int, case: LongCase) -> Result:
        found = Result.of(await run(case, programs, directory / str(place)))
        sys.stderr.write(f"{case.id}: {'failed' if found.problems else 'passed'}, {found.seconds:.0f} s\n")
        return found

    runs = [(case.running.program.name, partial(checked, place, case)) for place, case in enumerate(cases)]
    return await each_alone(runs, at_once)


def main() -> None:
    """Parse the command line, and print the results."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.world.agents.endurance", description="Long tasks of coding agents against the gateway."
    )
    parser.add_argument("--program", action="append", choices=[each.program.name for each in LONG_RUNNING])
    parser.add_argument("--upstream", action="append", choices=[each.format for each in UPSTREAMS])
    parser.add_argument("--at-once", type=int, default=2, help="programs that run at the same time")
    parser.add_argument("--write", action="store_true", help="write the table into docs/long-sessions.md")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    cases = [
        LongCase(running, upstream)
        for upstream in UPSTREAMS
        for running in LONG_RUNNING
        if (not given.program or running.program.name in given.program)
        and (not given.upstream or upstream.format in given.upstream)
    ]
    with tempfile.TemporaryDirectory() as directory:
        results = asyncio.run(run_all(cases, installed(), Path(directory), given.at_once))
    sys.stdout.write(table(results) + listed(results))
    if given.write:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    sys.exit(1 if any(each.problems for each in results) else 0)


if __name__ == "__main__":
    main()
