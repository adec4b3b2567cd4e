"""SQLite connections for SQLAlchemy. Each has a thread, which executes a statement and reads its rows in one step."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, Self, TypeAlias, TypeVar
from weakref import WeakSet

import aiosqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

Returned = TypeVar("Returned")
Description: TypeAlias = tuple[tuple[str, None, None, None, None, None, None], ...]
"""Column descriptions of a result in Python's database API: tuples of which only the first item, the name, is set."""
Result: TypeAlias = tuple[Description | None, list[Any], int, int | None]
"""Result of a statement: column descriptions (None: no rows), rows, number of changed ones, id of the last inserted."""

CACHED_STATEMENTS = 32  # compiled statements cached by a connection; a large one takes 100 KB
BUSY_SECONDS = 30  # longest time that SQLite waits for another process's write
CLOSE_SECONDS = 5  # longest wait for the statement of a cancelled caller
CONNECTION_SETTINGS = (
    "PRAGMA foreign_keys=ON",
    "PRAGMA synchronous=NORMAL",  # with WAL: no loss if the process dies, no corruption after a power cut
)


class Cursor:
    """Database cursor that executes a statement and reads all its rows in one step of the connection's thread. A cursor
    of aiosqlite takes four steps (open, execute, read, close), and a step takes longer than most statements. Only the
    methods exist that SQLAlchemy calls for queries whose rows are read all at once.
    """

    def __init__(self, run: Callable[[Callable[[sqlite3.Connection], Result]], Awaitable[Result]]) -> None:
        """Create a cursor. `run`: calls a function with the SQLite connection in its thread; returns the result."""
        self._run = run
        self._rows: list[Any] = []
        self.description: Description | None = None
        self.rowcount = -1
        self.lastrowid: int | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def execute(self, sql: str, parameters: Iterable[Any] | None = None) -> Self:
        """Execute the statement with values for its placeholders, and read all its rows. Return the cursor itself."""
        return await self._step(sqlite3.Cursor.execute, sql, parameters or ())

    async def executemany(self, sql: str, parameters: Iterable[Iterable[Any]]) -> Self:
        """Execute the statement `sql` once for each set of values for its placeholders. Return the cursor itself."""
        return await self._step(sqlite3.Cursor.executemany, sql, parameters)

    async def fetchall(self) -> list[Any]:
        """Return the rows of the last statement. A second call returns an empty list."""
        rows, self._rows = self._rows, []
        return rows

    async def close(self) -> None:
        """Do nothing: the cursor of SQLite is closed after each statement."""

    async def _step(self, execute: Callable[..., object], sql: str, parameters: Iterable[Any]) -> Self:
        found = await self._run(partial(_result, execute, sql, parameters))
        self.description, self._rows, self.rowcount, self.lastrowid = found
        return self


class SqliteConnection(aiosqlite.Connection):
    """Connection to an SQLite file, whose transactions are begun and ended by explicit statements only."""

    def __init__(self, file: Path) -> None:
        super().__init__(partial(_open, file), iter_chunk_size=64)
        self.thread: Thread = self._thread
        self.thread.daemon = True

    def cursor(self) -> Cursor:  # type: ignore[override]  # SQLAlchemy uses no more of one than this has
        """Return a new cursor, a context manager for `async with`."""
        return Cursor(self.run)

    async def run(self, step: Callable[[sqlite3.Connection], Returned]) -> Returned:
        """Run a function in the thread of the connection. Return its result."""
        result: Returned = await self._execute(step, self._conn)  # type: ignore[no-untyped-call]
        return result


async def run_in_thread(connection: AsyncConnection, step: Callable[[sqlite3.Connection], Returned]) -> Returned:
    """Run a function with several statements in the thread of an SQLite connection, in the transaction of the caller.
    Return its result. Raise DBAPIError: a handover between the threads takes longer than most statements.
    """
    driver = (await connection.get_raw_connection()).driver_connection
    if not isinstance(driver, SqliteConnection):
        raise TypeError(driver)
    try:
        return await driver.run(step)
    except sqlite3.Error as error:
        raise DBAPIError.instance(None, None, error, sqlite3.Error) from error


class Connector:
    """Factory of the connections to one SQLite file; `aclose` waits until their threads have ended."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._threads = WeakSet[Thread]()

    async def connect(self) -> aiosqlite.Connection:
        """Open a connection to the file, with its own thread. Raise sqlite3.Error if that is not possible."""
        connection = SqliteConnection(self._file)
        self._threads.add(connection.thread)
        await connection
        try:
            await connection.run(_configure)
        except BaseException:  # also if the caller is cancelled
            connection.stop()
            raise
        return connection

    async def aclose(self) -> None:
        """Wait until the threads of all closed connections have ended. The thread of a cancelled caller first ends its
        statement, and passes the result to the event loop; this must happen before the loop ends.
        """
        for thread in [*self._threads]:
            if thread.is_alive():
                await asyncio.to_thread(thread.join, CLOSE_SECONDS)


def _open(file: Path) -> sqlite3.Connection:
    # The driver begins transactions by its own rules, and none for DDL: `isolation_level` turns that off.
    return sqlite3.connect(file, isolation_level=None, timeout=BUSY_SECONDS, cached_statements=CACHED_STATEMENTS)


def _configure(connection: sqlite3.Connection) -> None:
    for setting in CONNECTION_SETTINGS:
        connection.execute(setting).close()


def _result(
    execute: Callable[..., object], sql: str, parameters: Iterable[Any], connection: sqlite3.Connection
) -> Result:
    cursor = connection.cursor()
    try:
        execute(cursor, sql, parameters)
        rows = cursor.fetchall() if cursor.description else []
        return cursor.description, rows, cursor.rowcount, cursor.lastrowid
    finally:
        cursor.close()
