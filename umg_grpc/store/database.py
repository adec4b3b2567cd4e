"""The connection pool of the one database, and its opening."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, OperationalError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from umg_grpc.store.migrate import NewerDatabaseError, migrate

SQLITE = "sqlite"
SQLITE_FILE = "umg.db"
STATEMENTS = 32  # that a connection to SQLite keeps compiled: a large one takes 100 KB
BUSY_SECONDS = 30  # that SQLite waits for another process's write
WAL_RETRY_SECONDS = 0.02  # for the one lock that SQLite does not wait for by itself, whatever its timeout
CONNECT_SECONDS = 5
# After which a connection whose other side is silent is broken; the kernel alone would take a quarter of an hour.
SILENCE_MILLISECONDS = 10_000
MIGRATION_LOCK = 0x554D475F4D494752  # of PostgreSQL's advisory locks: any number that is ours
MIGRATION_LOCK_SECONDS = 60


class StoreError(Exception):
    """The database cannot be used; the text tells the operator why, without the password."""


class Store:
    """Sessions on the database, from `open_store` to `aclose`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._readers = async_sessionmaker(engine, expire_on_commit=False)
        # SQLite must know at once that a transaction will write: one that reads first may find that it cannot go on.
        self._writers = async_sessionmaker(engine.execution_options(sqlite_begin="IMMEDIATE"), expire_on_commit=False)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncSession]:
        """A session that only reads. What happens to the database meanwhile raises SQLAlchemyError."""
        async with self._readers() as session:
            yield session

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncSession]:
        """A session whose changes are committed at its end, all or, on any exception, none."""
        async with self._writers.begin() as session:
            yield session

    async def aclose(self) -> None:
        """Closes every connection."""
        await self._engine.dispose()


async def open_store(database: str, data_dir: Path) -> Store:
    """The store, with the schema of this version.

    `database` is as in the config: `sqlite`, which is a file in `data_dir`, or a PostgreSQL URL. Any number of
    processes may open it at once: one of them migrates and the others wait. (Different databases are opened one after
    the other in a process; alembic's context is global.) Raises StoreError.
    """
    if database == SQLITE:
        place = str(data_dir / SQLITE_FILE)
        engine = _sqlite_engine(data_dir)
    else:
        url = _postgresql_url(database)
        place = f"{url.host or url.query.get('host', 'localhost')}/{url.database or ''}"
        engine = _postgresql_engine(url)
    try:
        await _migrate(engine)
    except NewerDatabaseError as error:
        await engine.dispose()
        raise StoreError(f"the database {place} {error}") from None
    except (SQLAlchemyError, OSError, TimeoutError) as error:
        await engine.dispose()
        cause = error.orig if hasattr(error, "orig") and error.orig else error
        raise StoreError(f"cannot open the database {place}: {str(cause).strip()}") from error
    return Store(engine)


async def _migrate(engine: AsyncEngine) -> None:
    if engine.dialect.name == SQLITE:
        await _use_wal(engine)
    async with engine.execution_options(sqlite_begin="IMMEDIATE").begin() as connection:
        if engine.dialect.name != SQLITE:
            await connection.execute(text(f"SET LOCAL lock_timeout = '{MIGRATION_LOCK_SECONDS}s'"))
            await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
        await connection.run_sync(migrate)


async def _use_wal(engine: AsyncEngine) -> None:
    """Lets readers and the writer of this file go on beside each other, which stays with the file."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + BUSY_SECONDS
    async with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        while True:
            try:
                await connection.execute(text("PRAGMA journal_mode=WAL"))
                return
            except OperationalError as error:
                if "locked" not in str(error.orig) or loop.time() > deadline:
                    raise
            await asyncio.sleep(WAL_RETRY_SECONDS)


def _sqlite_engine(data_dir: Path) -> AsyncEngine:
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot make the data dir {data_dir}: {error.strerror}") from None
    try:
        (data_dir / SQLITE_FILE).touch(mode=0o600)  # its neighbours, which SQLite makes, get the same mode
    except OSError as error:
        raise StoreError(f"cannot make the database in {data_dir}: {error.strerror}") from None
    url = URL.create("sqlite+aiosqlite", database=str(data_dir / SQLITE_FILE))
    # The driver would begin transactions by rules of its own, and none for DDL; so it begins none, and we do.
    connect_args = {"isolation_level": None, "timeout": BUSY_SECONDS, "cached_statements": STATEMENTS}
    engine = create_async_engine(url, connect_args=connect_args, hide_parameters=True)

    @event.listens_for(engine.sync_engine, "connect")
    def configure(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute("PRAGMA synchronous=NORMAL")  # with WAL: safe when the process dies, and whole after a power cut
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        if options.get("isolation_level") != "AUTOCOMMIT":
            connection.exec_driver_sql(f"BEGIN {options.get('sqlite_begin', 'DEFERRED')}")

    return engine


def _postgresql_url(database: str) -> URL:
    try:
        url = make_url(database)
    except ArgumentError:
        raise StoreError("the database must be `sqlite` or postgresql://USER:PASSWORD@HOST:PORT/DATABASE") from None
    return url.set(drivername="postgresql+psycopg")


def _postgresql_engine(url: URL) -> AsyncEngine:
    return create_async_engine(
        url,
        connect_args={
            "connect_timeout": CONNECT_SECONDS,
            "tcp_user_timeout": SILENCE_MILLISECONDS,
            "prepare_threshold": None,  # statements prepared on a connection do not survive a pooler between us
            "application_name": "umg",
        },
        pool_pre_ping=True,  # after an outage the pool holds connections that are dead
        pool_timeout=CONNECT_SECONDS,
        hide_parameters=True,  # in errors, which are logged: they are what callers said
    )
