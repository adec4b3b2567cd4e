"""A short run of the restarts; `make restarts` is the long one."""

from pathlib import Path

from tests.restarts.run import KINDS, Plan, run
from tests.support.databases import Postgres


async def test_no_call_fails_while_the_database_restarts(tmp_path: Path, postgres: Postgres) -> None:
    tally = await run(Plan(restarts=1, callers=1, calls=5), postgres, tmp_path)
    assert dict(tally.failed) == {kind: [] for kind in KINDS}
