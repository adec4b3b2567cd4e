"""Command `python -m tests.proofs.rolling [--from REVISION] [--calls N] [--callers N] [--rounds N]`: upgrades two gateways on
PostgreSQL and Redis from a commit to this version with one more migration. The exit code states whether no call was lost.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

from tests.proofs.rolling.run import Outcome, Plan, upgrade
from tests.proofs.rolling.versions import CURRENT, Version, extract, next_version, previous_commit
from tests.support.databases import Postgres
from tests.support.redis import RedisServer


def report(old: Version, new: Version, outcome: Outcome) -> str:
    tally = outcome.tally
    lines = [
        f"from {old.name} to {new.name}, in {outcome.seconds:.0f} s",
        *(
            f"  {kind}: {n} complete, the slowest in {tally.slowest_seconds[kind]:.2f} s"
            for kind, n in tally.answered.items()
        ),
        f"  exit codes {outcome.exits}, ends in {', '.join(f'{seconds:.1f} s' for seconds in outcome.drain_seconds)}",
        f"  requests by gateway: {dict(outcome.served)}, of these {outcome.retried} after a refused connection",
        f"  lost: {len(tally.failures)}",
        *(f"    {lost}" for lost in tally.failures[:10]),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.rolling", description="Rolling upgrade under load.")
    parser.add_argument("--from", dest="revision", help="commit to upgrade from; default: the one before the current")
    parser.add_argument("--calls", type=int, default=100, help="calls of each kind between two steps")
    parser.add_argument("--callers", type=int, default=4, help="callers of each kind")
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="umg-rolling-"))
    folder.chmod(0o755)  # PostgreSQL runs as another user
    (folder / "postgres").mkdir()
    (folder / "redis").mkdir()
    postgres, redis = Postgres(folder / "postgres"), RedisServer(folder / "redis")
    try:
        redis.start()
        revision = given.revision or previous_commit()
        old = extract(revision, folder) if revision else CURRENT
        sizes = {"callers": given.callers, "calls": given.calls, "rounds": given.rounds}
        new = next_version(folder)
        plan = Plan(old, new, postgres.create("rolling"), redis.url, **sizes)
        outcome = asyncio.run(upgrade(plan, folder))
    finally:
        redis.stop()
        postgres.stop()
        shutil.rmtree(folder)
    sys.stdout.write(report(old, new, outcome))
    sys.exit(1 if outcome.tally.failures or any(outcome.exits) else 0)


if __name__ == "__main__":
    main()
