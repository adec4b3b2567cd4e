"""Inserts of rows that replace existing rows with the same keys, by the fastest way that each database has."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from sqlalchemy import Dialect
from sqlalchemy.ext.asyncio import AsyncConnection

from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.store.table_definitions import RetainedRow

STATEMENT_ROWS = 20  # rows written by one SQLite statement

Value = TypeVar("Value")
Upsert = Callable[[AsyncConnection, Sequence[RetainedRow]], Awaitable[None]]


def upsert_into(row: type[RetainedRow], dialect: Dialect) -> Upsert:
    """Return a function that inserts rows of a class into its table. A row replaces one with the same keys."""
    table = RetainedRow.metadata.tables[row.__tablename__]
    keys, names = list(table.primary_key.columns), [column.name for column in table.columns]
    changed = [column.name for column in table.columns if not column.primary_key]
    if dialect.name != SQLITE_KIND:
        from sqlalchemy.dialects import postgresql  # here: each database takes 2 MB

        full = postgresql.insert(table)
        upsert = full.on_conflict_do_update(index_elements=keys, set_={name: full.excluded[name] for name in changed})

        async def upsert_each(connection: AsyncConnection, rows: Sequence[RetainedRow]) -> None:
            await connection.execute(upsert, [{name: getattr(row, name) for name in names} for row in rows])

        return upsert_each

    from sqlalchemy.dialects import sqlite

    # Few statements, since Python's SQLite driver releases the GIL at each one, and in a busy process its thread waits
    # long to get it back.
    lite = sqlite.insert(table)
    single = lite.on_conflict_do_update(index_elements=keys, set_={name: lite.excluded[name] for name in changed})
    one, places = str(single.compile(dialect=dialect)), f"({', '.join('?' for _ in names)})"
    before, after = one.split(places)
    many = f"{before}{', '.join([places] * STATEMENT_ROWS)}{after}"
    stored = [(column.name, column.type.dialect_impl(dialect).bind_processor(dialect)) for column in table.columns]

    def values_of(rows: Sequence[RetainedRow]) -> tuple[object, ...]:
        return tuple(
            getattr(row, name) if to is None else to(getattr(row, name)) for row in rows for name, to in stored
        )

    async def upsert_groups(connection: AsyncConnection, rows: Sequence[RetainedRow]) -> None:
        whole = len(rows) - len(rows) % STATEMENT_ROWS
        groups, rest = batches(rows[:whole], STATEMENT_ROWS), batches(rows[whole:], 1)
        for statement, parts in ((many, groups), (one, rest)):
            if values := [values_of(part) for part in parts]:
                await connection.exec_driver_sql(statement, values)

    return upsert_groups


def batches(values: Sequence[Value], size: int) -> Iterable[Sequence[Value]]:
    """Return the values in parts of `size` values; the last part may be shorter."""
    return (values[start : start + size] for start in range(0, len(values), size))
