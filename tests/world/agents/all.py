"""Concurrent runs of many cases, a few at a time."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from tests.world.agents.install import Installed
from tests.world.agents.run import Case, Outcome, run


async def run_all(cases: Sequence[Case], programs: Installed, directory: Path, at_once: int) -> list[Outcome]:
    """Run all cases, each program once at a time. Return the outcomes in the order of the cases.

    The sandboxes of two runs of one program may collide: Codex mounts `/tmp/.agents` for the time of a command.
    """
    limit = asyncio.Semaphore(at_once)
    alone = defaultdict[str, asyncio.Lock](asyncio.Lock)

    async def limited(place: int, case: Case) -> Outcome:
        async with alone[case.program.name], limit:
            return await run(case, programs, directory / str(place))

    return await asyncio.gather(*(limited(place, case) for place, case in enumerate(cases)))
