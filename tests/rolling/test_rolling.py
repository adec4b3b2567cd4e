"""A short rolling upgrade from the commit before; `make rolling` runs a long one, with a migration of the database."""

import sys
from pathlib import Path

import pytest

from tests.rolling.load import PLAIN, RPC, STREAM
from tests.rolling.run import Plan, nginx, upgrade
from tests.rolling.versions import CURRENT, extract, previous_commit
from tests.support.databases import Postgres
from tests.support.redis import RedisServer


async def test_a_rolling_upgrade_loses_no_call(tmp_path: Path, postgres: Postgres, redis_server: RedisServer) -> None:
    if nginx() is None:
        pytest.skip("nginx is not installed")
    revision = previous_commit()
    old = extract(revision, tmp_path) if revision else CURRENT
    sys.stdout.write(f"from {old.name}\n" if revision else "no history in this clone: the same version on both sides\n")
    plan = Plan(old, CURRENT, postgres.create(f"{tmp_path.name}_rolling"), redis_server.url, callers=1, calls=2)
    outcome = await upgrade(plan, tmp_path)
    assert outcome.tally.lost == []
    assert outcome.exits == [0, 0]
    assert outcome.served.keys() == {"gateway 1", "gateway 2"}
    assert all(outcome.tally.ended[kind] > 8 for kind in (PLAIN, STREAM, RPC))
