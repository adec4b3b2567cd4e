"""Start of Codex through the gateway, and at a plain server of responses: its requests, and the time until the first answer.

`python -m tests.world.agents.codex_start` prints the medians of several starts of each.
"""

import argparse
import asyncio
import logging
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from tests.world.agents.cases import settings_of
from tests.world.agents.install import Installed, installed
from tests.world.agents.programs import BY_NAME
from tests.world.agents.run import Case, served, worked
from tests.world.agents.scenarios import BY_NAME as SCENARIO

RUNS = 7
CODEX = BY_NAME["Codex"]


@dataclass(frozen=True)
class Start:
    """One start of Codex, with a question as its work."""

    requests: Sequence[tuple[str, str, int]]
    """Method, path and status of each request, in order."""
    first_request: float
    """Seconds from the start of the process to its first request."""
    first_answer: float
    """Seconds from the start of the process to the end of the first answer of the model."""
    problems: Sequence[str]


async def start(programs: Installed, data: Path, *, gateway: bool, websockets: bool = False) -> Start:
    """Run Codex once. `gateway`: False for the provider itself, which is a plain server of responses. `websockets`:
    `supports_websockets` in the settings of Codex; neither server has WebSockets.
    """
    [usual] = settings_of(CODEX)
    if websockets:
        usual = replace(
            usual, files={path: f"{text}supports_websockets = true\n" for path, text in usual.files.items()}
        )
    case = Case(CODEX, usual, SCENARIO["question"], usual.format, gateway=gateway)
    async with served(case, data) as (recorder, _):
        finished = await worked(case, programs, data, recorder)
    first = next(each for each in recorder.exchanges if each.method == "POST" and each.status == 200)
    return Start(
        [(each.method, each.path, each.status) for each in recorder.exchanges],
        min(each.began for each in recorder.exchanges) - finished.began,
        first.ended - finished.began,
        list(case.scenario.problems(CODEX, finished)),
    )


async def starts(programs: Installed, data: Path, runs: int, *, websockets: bool) -> tuple[list[Start], list[Start]]:
    """Return the starts at the plain server and through the gateway, one of each in turn."""
    plain, ours = list[Start](), list[Start]()
    for number in range(runs):
        plain.append(await start(programs, data / f"plain-{number}", gateway=False, websockets=websockets))
        ours.append(await start(programs, data / f"gateway-{number}", gateway=True, websockets=websockets))
    return plain, ours


def main() -> None:
    """Parse the command line, and print the medians."""
    parser = argparse.ArgumentParser(prog="python -m tests.world.agents.codex_start", description="Starts of Codex.")
    parser.add_argument("--runs", type=int, default=RUNS)
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    for websockets in (False, True):
        with tempfile.TemporaryDirectory() as directory:
            found = asyncio.run(starts(installed(), Path(directory), given.runs, websockets=websockets))
        for name, each in zip(("plain server", "gateway"), found, strict=True):
            sys.stdout.write(f"{name}{', supports_websockets' * websockets}: {_line(each)}\n")


def _line(found: Sequence[Start]) -> str:
    request, answer = (
        statistics.median(values)
        for values in ([each.first_request for each in found], [each.first_answer for each in found])
    )
    requests = ", ".join(f"{method} {path} {status}" for method, path, status in found[0].requests)
    return f"first request {request:.3f} s, first answer {answer:.3f} s; {requests}"


if __name__ == "__main__":
    main()
