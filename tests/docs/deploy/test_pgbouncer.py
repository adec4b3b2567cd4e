"""PgBouncer between two gateways and PostgreSQL, in transaction mode: each transaction may get another connection."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from tests.proofs.restarts.run import KINDS, Plan, run
from tests.support.databases import Postgres

CONFIG = """
[databases]
* = host={postgres} user=umg
[pgbouncer]
unix_socket_dir = {folder}
unix_socket_mode = 0777
listen_port = 6432
auth_type = any
pool_mode = transaction
default_pool_size = 3
server_login_retry = 1
"""
PROGRAM = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
needs_pgbouncer = pytest.mark.skipif(PROGRAM is None, reason="pgbouncer is not installed (Debian: pgbouncer)")


@pytest.fixture
async def pooler(postgres: Postgres) -> AsyncIterator[str]:
    """Run PgBouncer in front of the server. Yield the directory of its socket."""
    assert PROGRAM
    folder = Path(tempfile.mkdtemp(prefix="umg-pgbouncer-"))  # short: it is part of a socket's path
    config = folder / "pgbouncer.ini"
    config.write_text(CONFIG.format(postgres=postgres.directory, folder=folder))
    user = postgres.directory.owner()  # which may read the socket of the server
    if os.geteuid() == 0:  # which it refuses
        shutil.chown(folder, user)
        shutil.chown(config, user)
    process = await asyncio.create_subprocess_exec(
        *(PROGRAM, "-q", str(config)), user=user if os.geteuid() == 0 else None, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(30):
            while not (folder / ".s.PGSQL.6432").exists():
                assert process.returncode is None
                await asyncio.sleep(0.02)  # it reports nothing when it listens
        yield str(folder)
    finally:
        process.terminate()
        await process.wait()
        shutil.rmtree(folder)


@needs_pgbouncer
async def test_two_gateways_serve_all_calls_through_a_pooler(tmp_path: Path, postgres: Postgres, pooler: str) -> None:
    name = tmp_path.name.replace("-", "_")
    postgres.create(name)
    database = f"postgresql://umg@/{name}?host={pooler}&port=6432"
    tally = await run(Plan(restarts=1, callers=1, calls=3, patient=True), postgres, tmp_path, database)
    assert dict(tally.failed) == {kind: [] for kind in KINDS}
    async with await psycopg.AsyncConnection.connect(postgres.url(name)) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
        [(connections,)] = await (await connection.execute(query, [name])).fetchall()
    assert connections <= 3  # the calls shared the connections of the pooler
