"""Many runs, a few at a time."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from tests.agents.install import Installed
from tests.agents.run import Case, Outcome, run


async def run_all(cases: Sequence[Case], programs: Installed, directory: Path, at_once: int) -> list[Outcome]:
    """The outcomes in the order of the cases."""
    limit = asyncio.Semaphore(at_once)

    async def limited(place: int, case: Case) -> Outcome:
        async with limit:
            return await run(case, programs, directory / str(place))

    return await asyncio.gather(*(limited(place, case) for place, case in enumerate(cases)))
