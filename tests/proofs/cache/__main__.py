"""Command `python -m tests.proofs.cache [--agent NAME] [--model ID] [--parts N]`: replays recorded conversations of agents
at simulated providers, directly and through gateways, and prints the cached share of their prompts and their cost.
"""

import argparse
import asyncio
import logging
import sys
import tempfile
from itertools import count
from pathlib import Path

import structlog

from tests.proofs.cache.measurements import Measured, measure_all, pairs, table
from tests.support.databases import Postgres

PARTS = 24


async def run(given: argparse.Namespace, directory: Path, postgres: Postgres) -> list[Measured]:
    """Run the chosen pairs. Print each as soon as it is measured."""
    numbers, found = count(), list[Measured]()

    async def new_database() -> str:
        return await postgres.create_prepared(f"cache_{next(numbers)}")

    chosen = [
        pair
        for pair in pairs()
        if (not given.agent or pair.agent.name in given.agent)
        and (not given.model or pair.upstream.model in given.model)
    ]
    async for each in measure_all(chosen, given.parts, directory, new_database):
        found.append(each)
        sys.stderr.write(f"{each.pair.id}: {each.one.share:.1%} of {each.goal:.1%}\n")
    return found


def main() -> None:
    """Parse the command line, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.cache", description="Prompt caches of agents.")
    parser.add_argument("--agent", action="append", choices=list(dict.fromkeys(pair.agent.name for pair in pairs())))
    parser.add_argument(
        "--model", action="append", choices=list(dict.fromkeys(pair.upstream.model for pair in pairs()))
    )
    parser.add_argument("--parts", type=int, default=PARTS, help="calls of tools in each conversation")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    postgres = Postgres(Path(tempfile.mkdtemp(prefix="umg-postgres-")))
    try:
        with tempfile.TemporaryDirectory() as directory:
            found = asyncio.run(run(given, Path(directory), postgres))
    finally:
        postgres.close()
    sys.stdout.write(table(found))


if __name__ == "__main__":
    main()
