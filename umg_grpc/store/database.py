"""Database connection pool: opens and migrates the database, and opens sessions for reads and writes."""

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import msgspec
from sqlalchemy import URL, Connection, NullPool, event, make_url, select, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine

from umg_grpc.base.lazy_logger import LazyLogger
from umg_grpc.store.database_constants import SQLITE_FILE, SQLITE_KIND, StoreError
from umg_grpc.store.database_outages import Reconnection, UnconfirmedCommitError, is_lost
from umg_grpc.store.database_time import Clock, DatabaseClock, MachineClock
from umg_grpc.store.repeated_background_tasks import reason_of
from umg_grpc.store.schema_migration import NewerDatabaseError, NoDatabaseError, migrate, schema_of
from umg_grpc.store.sqlite_connection import BUSY_SECONDS, Connector

WAL_RETRY_SECONDS = 0.02  # interval of retries for the only lock for which SQLite's own timeout has no effect
CONNECT_SECONDS = 5
# Time after which a connection without acknowledgement from the server is closed; the kernel's default is 15 minutes.
SILENCE_MILLISECONDS = 10_000
# Time after which PostgreSQL ends a transaction in which its process does nothing. A frozen process, or one without
# network, would else keep its locks, for example on the account of a budget.
IDLE_TRANSACTION_MILLISECONDS = 5000
MIGRATION_LOCK = 0x554D475F4D494752  # number of a PostgreSQL advisory lock, chosen freely
MIGRATION_LOCK_SECONDS = 60

logger = LazyLogger(__name__)


class Store:
    """Database of the gateway, SQLite or PostgreSQL, open from `open_store` to `aclose`; source of sessions. If a
    PostgreSQL server accepts no connection, for example during its restart, a session waits for up to two seconds.
    """

    def __init__(
        self, engine: AsyncEngine, connector: Connector | None = None, prober: AsyncEngine | None = None
    ) -> None:
        """Use a SQLAlchemy engine. `connector`: factory of SQLite's connections, whose threads `aclose` waits for.
        `prober`: engine that finds the end of an outage, with a new connection for each use; None uses `engine`.
        """
        self._engine = engine
        self._connector = connector
        self._measured = DatabaseClock()
        self.clock: Clock = MachineClock() if engine.dialect.name == SQLITE_KIND else self._measured
        """Time of the database, in SQL statements and in this process."""
        self._was_trusted = True
        self._prober = prober or engine
        self.reconnection = Reconnection(self._probe)
        """State of the connections to the database; for SQLite, whose file is always there, it never changes."""
        self._waits = engine.dialect.name != SQLITE_KIND
        self._readers = async_sessionmaker(engine, expire_on_commit=False)
        # each transaction of SQLite reads one snapshot
        isolation = {} if engine.dialect.name == SQLITE_KIND else {"isolation_level": "REPEATABLE READ"}
        self._snapshots = async_sessionmaker(engine.execution_options(**isolation), expire_on_commit=False)
        # SQLite must take the write lock when a transaction begins: one that reads first may fail at its first write.
        self._writers = async_sessionmaker(engine.execution_options(sqlite_begin="IMMEDIATE"), expire_on_commit=False)
        # It has one writer at a time. Others poll for its lock with growing pauses, here they wait in order.
        self._turn = asyncio.Lock() if engine.dialect.name == SQLITE_KIND else nullcontext()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncSession]:
        """Open a session for reads only. Raises SQLAlchemyError if the database fails."""
        async with self._connected(self._readers) as session:
            yield session

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncSession]:
        """Open a read-only session whose reads all see the database as at the first one. Raises SQLAlchemyError."""
        async with self._connected(self._snapshots) as session:
            yield session

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncSession]:
        """Open a session whose changes are committed at its end or, after any exception, rolled back. Raises
        SQLAlchemyError: UnconfirmedCommitError if the changes may be stored all the same.
        """
        async with self._turn, self._connected(self._writers) as session:
            began = time.monotonic()
            try:
                yield session
                await session.flush()
                if time.monotonic() - began > IDLE_TRANSACTION_MILLISECONDS / 2000:
                    # The server may have ended it. A failure of the commit would leave open whether it is stored.
                    await session.execute(text("SELECT 1"))
            except BaseException:
                await session.rollback()  # new objects can be added again then
                raise
            try:
                await session.commit()
            except DBAPIError as error:
                await session.rollback()
                if not is_lost(error):
                    raise
                self.reconnection.mark_away(error)
                raise UnconfirmedCommitError(reason_of(error)) from error

    async def check(self) -> None:
        """Read the database's time for `clock` now. Raises SQLAlchemyError or OSError if it does not answer."""
        try:
            async with self._readers() as session:
                await _measure(await session.connection(), self._measured)
        except DBAPIError as error:
            if self._waits:
                self.reconnection.mark_away(error)
            raise
        if self.clock.is_trusted != self._was_trusted:
            self._was_trusted = self.clock.is_trusted
            if self._was_trusted:
                logger.info("the clock is right again")
            else:
                postponed = "old data is not deleted and no video task given up until the clock is right"
                logger.error(self.clock.problem or "the clock of this machine has jumped", postponed=postponed)

    async def aclose(self) -> None:
        """Close all connections."""
        await self.reconnection.aclose()
        await self._engine.dispose()
        if self._connector is not None:
            await self._connector.aclose()

    @asynccontextmanager
    async def _connected(self, sessions: "async_sessionmaker[AsyncSession]") -> AsyncIterator[AsyncSession]:
        """Open a session that already has a connection. During a restart of the database it waits for one."""
        async with sessions() as session:
            if not self._waits:
                yield session
                return
            await self._connect(session)
            try:
                yield session
            except DBAPIError as error:
                if is_lost(error):
                    self.reconnection.mark_away(error)
                raise

    async def _connect(self, session: AsyncSession) -> None:
        end = self.reconnection.end_of_wait()
        while True:
            await self.reconnection.wait(end)
            try:
                await session.connection()
            except (DBAPIError, OSError) as error:  # nothing was sent yet, so that each kind may be repeated
                self.reconnection.mark_away(error)
                await session.rollback()
            else:
                return

    async def _probe(self) -> None:
        async with self._prober.connect() as connection:
            await connection.execute(text("SELECT 1"))


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Repository(Protocol):
    """Class whose methods use a `Store`."""

    _store: Store


Of = TypeVar("Of", bound=Repository)


def repeated(
    method: Callable[Concatenate[Of, Parameters], Awaitable[Result]],
) -> Callable[Concatenate[Of, Parameters], Awaitable[Result]]:
    """Decorate a repository's method that opens one session. If the connection is lost before the commit, the database
    has none of its changes, and the method is called once more; if it is lost in the commit, the error is raised. For
    reads, and for changes that must not be made twice, for example an amount that is added.
    """
    return _repeated(method, _is_lost)


def repeated_idempotent(
    method: Callable[Concatenate[Of, Parameters], Awaitable[Result]],
) -> Callable[Concatenate[Of, Parameters], Awaitable[Result]]:
    """Decorate a method of a repository as `repeated` does, but repeat it also if the connection is lost during the
    commit. The database may then have the changes already: they must have the same result if they are made twice.
    """
    return _repeated(method, lambda error: isinstance(error, UnconfirmedCommitError) or _is_lost(error))


def repeated_after_conflict(
    method: Callable[Concatenate[Of, Parameters], Awaitable[Result]],
) -> Callable[Concatenate[Of, Parameters], Awaitable[Result]]:
    """Decorate a method of a repository that inserts a row if there is none, and else changes it: another process may
    insert it at the same moment. The method is then called once more, and finds that row.
    """
    return _repeated(method, lambda error: isinstance(error, IntegrityError))


def _repeated(
    method: Callable[Concatenate[Of, Parameters], Awaitable[Result]], may_repeat: Callable[[SQLAlchemyError], bool]
) -> Callable[Concatenate[Of, Parameters], Awaitable[Result]]:
    @functools.wraps(method)
    async def repeat(self: Of, /, *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        try:
            return await method(self, *arguments, **named)
        except SQLAlchemyError as error:
            if not may_repeat(error):
                raise
        return await method(self, *arguments, **named)

    return repeat


def _is_lost(error: SQLAlchemyError) -> bool:
    return isinstance(error, DBAPIError) and is_lost(error)


async def open_store(database: str, data_dir: Path, *, create: bool = True) -> Store:
    """Open the database, and migrate it to the schema of this version. Raise StoreError if that is not possible.
    `database`: value of the config, `sqlite` for a file in `data_dir`, or a PostgreSQL URL. `create`: whether to create
    a missing database. Several processes may open a database at the same time: one migrates it, the others wait. Within
    one process only one call may run at a time, since alembic has one global context.
    """
    if database == SQLITE_KIND:
        place = str(data_dir / SQLITE_FILE)
        if not create and not (data_dir / SQLITE_FILE).exists():
            raise _no_database(str((data_dir / SQLITE_FILE).absolute()))
        connector = Connector(data_dir / SQLITE_FILE)
        engine = _sqlite_engine(data_dir, connector)
        store = Store(engine, connector)
    else:
        url = _postgresql_url(database)
        place = f"{url.host or url.query.get('host', 'localhost')}/{url.database or ''}"
        engine = _postgresql_engine(url)
        store = Store(engine, prober=_postgresql_engine(url, pooled=False))
    try:
        await _migrate(engine, create=create)
        await store.check()
    except NoDatabaseError:
        await store.aclose()
        raise _no_database(place) from None
    except NewerDatabaseError as error:
        await store.aclose()
        raise StoreError(f"the database {place} {error}") from None
    except (SQLAlchemyError, OSError, TimeoutError) as error:
        await store.aclose()
        cause = error.orig if hasattr(error, "orig") and error.orig else error
        raise StoreError(f"cannot open the database {place}: {str(cause).strip()}") from error
    return store


async def postgresql_state(database: str) -> tuple[str, float]:
    """Return a PostgreSQL database's newest migration and clock difference. The migration is "" without the gateway's
    tables; the difference is in seconds, positive if this machine is ahead. Raise StoreError if it cannot be reached.
    """
    clock = DatabaseClock()
    engine = _postgresql_engine(_postgresql_url(database))
    try:
        async with engine.connect() as connection:
            schema = await connection.run_sync(schema_of)
            await _measure(connection, clock)
            return schema, clock.skew_seconds
    except (SQLAlchemyError, OSError, TimeoutError) as error:
        raise StoreError(reason_of(error)) from None
    finally:
        await engine.dispose()


async def _measure(connection: AsyncConnection, clock: DatabaseClock) -> None:
    sent = clock.monotonic()
    micros = await connection.scalar(select(clock.sql_micros()))
    clock.measured((micros or 0) / 1e6, sent, clock.monotonic())


def _no_database(place: str) -> StoreError:
    flags = "give the gateway's folder with --data, or its config with --config"
    return StoreError(f"there is no database at {place}: {flags} (`umg serve` creates the database)")


async def _migrate(engine: AsyncEngine, *, create: bool) -> None:
    if engine.dialect.name == SQLITE_KIND:
        await _use_wal(engine)
    async with engine.execution_options(sqlite_begin="IMMEDIATE").begin() as connection:
        if engine.dialect.name != SQLITE_KIND:
            await connection.execute(text(f"SET LOCAL lock_timeout = '{MIGRATION_LOCK_SECONDS}s'"))
            await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
        await connection.run_sync(migrate, create=create)


async def _use_wal(engine: AsyncEngine) -> None:
    """Switch the SQLite file permanently to a write-ahead log, so that readers and a writer do not block each other."""
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


def _sqlite_engine(data_dir: Path, connector: Connector) -> AsyncEngine:
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot make the data dir {data_dir}: {error.strerror}") from None
    try:
        (data_dir / SQLITE_FILE).touch(mode=0o600)  # SQLite creates its other files with the same mode
    except OSError as error:
        raise StoreError(f"cannot make the database in {data_dir}: {error.strerror}") from None
    url = URL.create("sqlite+aiosqlite", database=str(data_dir / SQLITE_FILE))
    engine = create_async_engine(
        url, async_creator=connector.connect, json_deserializer=msgspec.json.decode, hide_parameters=True
    )

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


def _postgresql_engine(url: URL, *, pooled: bool = True) -> AsyncEngine:
    connect_args = {
        "connect_timeout": CONNECT_SECONDS,
        "tcp_user_timeout": SILENCE_MILLISECONDS,
        "prepare_threshold": None,  # prepared statements do not work through a connection pooler
        "application_name": "umg",
    }
    if not pooled:
        return create_async_engine(url, connect_args=connect_args, poolclass=NullPool, hide_parameters=True)
    engine = create_async_engine(
        url,
        connect_args=connect_args,
        json_deserializer=msgspec.json.decode,
        pool_pre_ping=True,  # after an outage the pool has broken connections
        pool_timeout=CONNECT_SECONDS,
        hide_parameters=True,  # errors are logged, and the parameters are callers' content
    )

    @event.listens_for(engine.sync_engine, "connect")
    def limit_idle_transactions(connection: DBAPIConnection, record: object) -> None:
        cursor = connection.cursor()  # a statement, since a connection pooler refuses options of the connection
        cursor.execute(f"SET idle_in_transaction_session_timeout = {IDLE_TRANSACTION_MILLISECONDS}")
        cursor.close()
        connection.commit()

    @event.listens_for(engine.sync_engine, "connect")
    def replace_nul(connection: DBAPIConnection, record: object) -> None:
        from umg_grpc.store.postgresql_texts import StorableTextDumper  # psycopg is imported with PostgreSQL only

        connection.driver_connection.adapters.register_dumper(str, StorableTextDumper)

    return engine
