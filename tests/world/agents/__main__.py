"""Command `python -m tests.world.agents [--program NAME] [--scenario NAME] [--upstream FORMAT] [--few]`: runs the programs
and prints a table, and without options also long sessions of Codex, the libraries of the page and Open WebUI.
"""

import argparse
import asyncio
import logging
import sys
import tempfile
from pathlib import Path

import structlog

from tests.pairs.table import TEXT_PROVIDERS
from tests.world.agents import cases, long_sessions, open_webui, programs, scenarios
from tests.world.agents.all import run_all
from tests.world.agents.install import installed, installed_libraries
from tests.world.agents.libraries import failed_lines
from tests.world.agents.report import table


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.world.agents", description="Coding agents against the gateway."
    )
    parser.add_argument("--program", action="append", choices=list(programs.BY_NAME))
    parser.add_argument("--scenario", action="append", choices=list(scenarios.BY_NAME))
    parser.add_argument("--upstream", action="append", choices=list(TEXT_PROVIDERS), help="format of the provider")
    parser.add_argument("--few", action="store_true", help="only those that the tests run")
    parser.add_argument("--at-once", type=int, default=2, help="programs that run at the same time")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    chosen = [
        case
        for case in (cases.few_cases() if given.few else cases.every_case())
        if (not given.program or case.program.name in given.program)
        and (not given.scenario or case.scenario.name in given.scenario)
        and (not given.upstream or case.upstream in given.upstream)
    ]
    with tempfile.TemporaryDirectory() as directory:
        outcomes = asyncio.run(run_all(chosen, installed(), Path(directory), given.at_once))
    sys.stdout.write(table(outcomes))
    failed = any(outcome.problems for outcome in outcomes)
    if not (given.program or given.scenario or given.upstream or given.few):
        failed = asyncio.run(_report_sessions()) or failed
        failed = asyncio.run(_report_libraries()) or failed
    sys.exit(1 if failed else 0)


async def _report_sessions() -> bool:
    """Run the long sessions of Codex, and print their results. Return whether one failed."""
    found, programs = False, installed()
    for session in long_sessions.SESSIONS:
        with tempfile.TemporaryDirectory() as directory:
            problems = await long_sessions.problems_of(session, programs, Path(directory))
        sys.stdout.write(f"Codex compacts, {session.id}: {'; '.join(problems) or 'ended its work'}\n")
        found = found or bool(problems)
    return found


async def _report_libraries() -> bool:
    """Run the lines of the libraries and of Open WebUI, and print their results. Return whether one failed."""
    found = False
    with tempfile.TemporaryDirectory() as directory:
        async for name, output in failed_lines(installed_libraries(), Path(directory)):
            sys.stdout.write(f"{name}: {output or 'answered'}\n")
            found = found or bool(output)
    for section in open_webui.CONNECTIONS:
        with tempfile.TemporaryDirectory() as directory:
            failure = await open_webui.failed_run(section, Path(directory))
        sys.stdout.write(f"{open_webui.NAME}, {section}: {failure or 'answered'}\n")
        found = found or bool(failure)
    return found


if __name__ == "__main__":
    main()
