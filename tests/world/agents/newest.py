"""Command `python -m tests.world.agents.newest [--release PACKAGE=VERSION]`: runs the scenarios and the long task of each
program of npm with a release newer than `versions.py`, installed beside the usual ones, and prints their tables.
"""

import argparse
import asyncio
import logging
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import structlog

from scripts.vendors.downloads import DownloadError
from tests.world.agents import cases
from tests.world.agents.all import run_all
from tests.world.agents.endurance import __main__ as endurance
from tests.world.agents.endurance.page import listed
from tests.world.agents.endurance.programs import LONG_RUNNING
from tests.world.agents.endurance.run import UPSTREAMS, LongCase
from tests.world.agents.install import installed_releases, newer_releases
from tests.world.agents.report import table
from tests.world.agents.versions import NPM


async def passed(releases: Mapping[str, str], directory: Path, at_once: int) -> bool:
    """Run the releases, and print their results. Return whether nothing failed."""
    programs = installed_releases(releases)
    chosen = [case for case in cases.every_case() if case.program.package in releases]
    outcomes = await run_all(chosen, programs, directory / "scenarios", at_once)
    sys.stdout.write(table(outcomes))
    long = [LongCase(each, upstream) for upstream in UPSTREAMS for each in LONG_RUNNING]
    chosen_long = [case for case in long if case.running.program.package in releases]
    results = await endurance.run_all(chosen_long, programs, directory / "long", at_once)
    sys.stdout.write(listed(results))
    return not any(each.problems for each in outcomes) and not any(each.problems for each in results)


def main() -> int:
    """Parse the command line, and run. Return the exit status: 1 if a run failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.world.agents.newest", description="New releases of coding agents against the gateway."
    )
    parser.add_argument("--release", action="append", type=_release, help="PACKAGE=VERSION instead of the newest ones")
    parser.add_argument("--at-once", type=int, default=2, help="programs that run at the same time")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        releases = dict(given.release) if given.release else newer_releases()
    except DownloadError as error:
        sys.exit(f"the newest releases of agents are unknown: {error}")
    if not releases:
        sys.stdout.write("no agent has a newer release\n")
        return 0
    for package, version in releases.items():
        sys.stdout.write(f"{package} {NPM[package]} -> {version}\n")
    with tempfile.TemporaryDirectory() as directory:
        return 0 if asyncio.run(passed(releases, Path(directory), given.at_once)) else 1


def _release(text: str) -> tuple[str, str]:
    package, _, version = text.rpartition("=")
    if package not in NPM or not version:
        raise argparse.ArgumentTypeError(f"expected PACKAGE=VERSION with a package of {', '.join(NPM)}")
    return package, version


if __name__ == "__main__":
    sys.exit(main())
