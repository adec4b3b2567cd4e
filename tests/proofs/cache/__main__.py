"""Command `python -m tests.proofs.cache [--agent NAME] [--model ID] [--parts N] [--one] [--write] [--programs]`: agents read a text at
simulated providers, directly and through gateways; prints the cached share of their prompts and their cost. The agents
are recorded conversations, with `--programs` the programs themselves.
"""

import argparse
import asyncio
import logging
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import structlog

from tests.proofs.cache.measurements import Measured, Pair, measure, pairs, recorded_pairs
from tests.proofs.cache.page import PAGE, PROGRAMS, RECORDED, table, written
from tests.proofs.cache.programs import PROGRAMS as AGENTS
from tests.proofs.cache.programs import ProgramSubject
from tests.support.databases import Postgres
from tests.world.agents.install import installed

PARTS = 24


async def run(chosen: Iterable[Pair], parts: int, directory: Path, postgres: Postgres | None) -> list[Measured]:
    """Run pairs one after the other. `postgres`: None to leave out the runs with several replicas and accounts."""
    found = list[Measured]()
    for number, pair in enumerate(chosen):
        several = None if postgres is None else partial(postgres.create_prepared, f"cache_{number}")
        found.append(await measure(pair, parts, directory / str(number), several))
        sys.stderr.write(f"{pair.id}: {found[-1].one.share:.2%} of {found[-1].goal:.2%}\n")
    return found


def main() -> None:
    """Parse the command line, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.cache", description="Prompt caches of agents.")
    parser.add_argument("--programs", action="store_true", help="the programs themselves, which npm installs")
    parser.add_argument("--agent", action="append", help="name of an agent")
    parser.add_argument("--model", action="append", help="id of the provider's model")
    parser.add_argument("--parts", type=int, default=PARTS, help="calls of tools of each agent")
    parser.add_argument("--one", action="store_true", help="only one gateway and one account")
    parser.add_argument("--write", action="store_true", help="write the table into docs/prompt-caches.md")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    every = pairs(ProgramSubject(each, installed()) for each in AGENTS) if given.programs else recorded_pairs()
    chosen = [
        pair
        for pair in every
        if (not given.agent or pair.agent.name in given.agent)
        and (not given.model or pair.upstream.model in given.model)
    ]
    postgres = None if given.one else Postgres(Path(tempfile.mkdtemp(prefix="umg-postgres-")))
    try:
        with tempfile.TemporaryDirectory() as directory:
            found = asyncio.run(run(chosen, given.parts, Path(directory), postgres))
    finally:
        if postgres is not None:
            postgres.close()
    sys.stdout.write(table(found))
    if given.write:
        name = PROGRAMS if given.programs else RECORDED
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), name, found), encoding="utf-8")


if __name__ == "__main__":
    main()
