"""Rows of an INSERT statement, as SQL with the driver's parameters. SQLAlchemy would convert the values of each row."""

from collections.abc import Sequence
from itertools import chain

import msgspec

from umg_grpc.store.database_constants import SQLITE_KIND


def rows_of(
    dialect: str, table: str, columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> tuple[str, tuple[object, ...]]:
    """Return the part of an INSERT statement after its column names, and its parameters. PostgreSQL gets all rows as
    one JSON text, and inserts them in their order: this takes a tenth of the time of one parameter for each value.
    """
    if dialect == SQLITE_KIND:
        row = f"({', '.join('?' * len(columns))})"
        return f"VALUES {', '.join([row] * len(rows))}", tuple(chain.from_iterable(rows))
    text = msgspec.json.encode([dict(zip(columns, row, strict=True)) for row in rows]).decode()
    # the names are those of our tables
    return f"SELECT {', '.join(columns)} FROM json_populate_recordset(NULL::{table}, %s::json)", (text,)  # noqa: S608
