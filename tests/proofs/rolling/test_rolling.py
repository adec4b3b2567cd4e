"""A short rolling upgrade from the commit before; `make rolling` runs a long one, with a migration of the database."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.proofs.rolling.load import TEXT_KINDS
from tests.proofs.rolling.run import Plan, upgrade
from tests.proofs.rolling.versions import CURRENT, extract, next_version, previous_commit
from tests.support.databases import Postgres, create_database
from tests.support.proxies import program
from tests.support.redis import RedisServer
from umg_grpc.store.database_constants import SQLITE_FILE


async def test_a_rolling_upgrade_loses_no_call(tmp_path: Path, postgres: Postgres, redis_server: RedisServer) -> None:
    if program("nginx") is None:
        pytest.skip("nginx is not installed")
    revision = previous_commit()
    old = extract(revision, tmp_path) if revision else CURRENT
    sys.stdout.write(f"from {old.name}\n" if revision else "no history in this clone: the same version on both sides\n")
    plan = Plan(old, CURRENT, postgres.create(f"{tmp_path.name}_rolling"), redis_server.url, callers=1, calls=2)
    outcome = await upgrade(plan, tmp_path)
    assert outcome.tally.failures == []
    assert outcome.exits == [0, 0]
    assert outcome.served.keys() == {"gateway 1", "gateway 2"}
    assert all(outcome.tally.answered[kind] > 8 for kind in TEXT_KINDS)


def test_the_next_version_adds_a_column_to_the_database(tmp_path: Path) -> None:
    version, data = next_version(tmp_path), tmp_path / "data"
    asyncio.run(create_database(data))  # with the migrations of this version
    create = (*version.program, "keys", "create", "first", "--data", str(data))
    subprocess.run(create, env={**os.environ, **version.environment}, check=True, capture_output=True)
    with closing(sqlite3.connect(data / SQLITE_FILE)) as connection:
        columns = connection.execute("SELECT name FROM pragma_table_info('api_keys')").fetchall()
    assert ("next_version",) in columns
