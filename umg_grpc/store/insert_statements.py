"""Rows of an INSERT statement, as SQL with the driver's parameters. SQLAlchemy would convert the values of each row."""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from types import MappingProxyType

import msgspec
from sqlalchemy import Table

from umg_grpc.store.database_constants import SQLITE_KIND

_CASTS: Mapping[type, str] = MappingProxyType({str: "", int: "::bigint", bool: "::boolean"})


def rows_of(
    dialect: str, table: Table, columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> tuple[str, tuple[object, ...]]:
    """Return an INSERT statement up to its rows, and its parameters. PostgreSQL gets all rows as one JSON text, and
    inserts them in their order: this takes a tenth of the time of one parameter for each value.
    """
    head, expanded = _texts_of(table, tuple(columns))
    if dialect == SQLITE_KIND:
        row = f"({', '.join('?' * len(columns))})"
        return f"{head} VALUES {', '.join([row] * len(rows))}", tuple(chain.from_iterable(rows))
    return f"{head} {expanded}", (msgspec.json.encode(rows).decode(),)


def in_one_statement(statements: Sequence[tuple[str, tuple[object, ...]]]) -> tuple[str, tuple[object, ...]]:
    """Return a statement of PostgreSQL that executes statements of different tables, and its parameters. Each by itself
    is a round trip, and more work for the drivers than for the database.
    """
    (first, parameters), *others = statements
    # PostgreSQL executes the statement itself, then its parts from the last to the first: in the order of versions that
    # sent one statement after the other, so that none waits for another one
    others.reverse()
    parts = ", ".join(f"part_{number} AS ({statement})" for number, (statement, _) in enumerate(others))
    values = (*chain.from_iterable(given for _, given in others), *parameters)
    return (f"WITH {parts} {first}" if parts else first), values


@cache
def _texts_of(table: Table, columns: tuple[str, ...]) -> tuple[str, str]:
    """Return the beginning of an INSERT statement, and the query of PostgreSQL that expands a JSON array of rows. Rows
    are arrays, as JSON in binary form: objects with names, or text that is parsed for each value, take longer.
    """
    values = (f"(r->>{place}){_CASTS[table.c[name].type.python_type]}" for place, name in enumerate(columns))
    # the names are those of our tables
    return (
        f"INSERT INTO {table.name} ({', '.join(columns)})",
        f"SELECT {', '.join(values)} FROM jsonb_array_elements(%s::jsonb) r",  # noqa: S608
    )
