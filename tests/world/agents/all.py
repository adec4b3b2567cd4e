"""Concurrent runs of many cases, a few at a time."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from tests.world.agents.install import Installed
from tests.world.agents.run import Case, Outcome, run

Found = TypeVar("Found")


async def run_all(cases: Sequence[Case], programs: Installed, directory: Path, at_once: int) -> list[Outcome]:
    """Run all cases, each program once at a time. Return the outcomes in the order of the cases."""
    runs = [
        (case.program.name, partial(run, case, programs, directory / str(place))) for place, case in enumerate(cases)
    ]
    return await each_alone(runs, at_once)


async def each_alone(runs: Sequence[tuple[str, Callable[[], Awaitable[Found]]]], at_once: int) -> list[Found]:
    """Make runs, each program once at a time. Return their results in order. `runs`: names of programs with their runs.

    The sandboxes of two runs of one program may collide: Codex mounts `/tmp/.agents` for the time of a command.
    """
    limit = asyncio.Semaphore(at_once)
    alone = defaultdict[str, asyncio.Lock](asyncio.Lock)

    async def limited(program: str, make: Callable[[], Awaitable[Found]]) -> Found:
        async with alone[program], limit:
            return await make()

    return await asyncio.gather(*(limited(program, make) for program, make in runs))
