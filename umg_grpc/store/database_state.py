"""Read-only inspection of a database, for `umg doctor`: its schema version and its clock."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from umg_grpc.store.database_constants import SQLITE_FILE, SQLITE_KIND, StoreError
from umg_grpc.store.schema_version import VERSION_TABLE


@dataclass(frozen=True)
class DatabaseState:
    """Schema version and clock difference of a database."""

    schema: str
    """Name of the newest migration of the database; "" for a database without the gateway's tables."""
    skew_seconds: float
    """Seconds by which this machine's clock is ahead of the database's; 0 for SQLite, which uses this clock."""


async def database_state(database: str, data_dir: Path) -> DatabaseState:
    """Return a database's schema version and clock difference, without migrating it. Raise StoreError if it is away."""
    if database == SQLITE_KIND:
        return DatabaseState(_sqlite_schema(data_dir / SQLITE_FILE), 0.0)
    from umg_grpc.store.database import postgresql_state  # here: slow to import, and SQLite needs the driver alone

    return DatabaseState(*await postgresql_state(database))


def _sqlite_schema(file: Path) -> str:
    """Return the newest migration of an SQLite file; "" without the file or the gateway's tables. Raise StoreError."""
    if not file.exists():
        return ""
    try:
        with closing(sqlite3.connect(file)) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE name = ?", (VERSION_TABLE,)).fetchall()
            if not found:
                return ""
            query = f"SELECT max(version_num) FROM {VERSION_TABLE}"  # noqa: S608  a name of our own
            [(schema,)] = connection.execute(query).fetchall()
            return schema or ""
    except sqlite3.Error as error:
        raise StoreError(str(error)) from None
