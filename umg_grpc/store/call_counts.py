"""Numbers of calls by duration and by failure: statements that add calls, in the transaction that inserts records."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from umg_grpc.store.call_count_tables import (
    CALLS_COLUMN,
    DURATION_TABLES,
    FAILED_CALL,
    FAILURE_HOURS,
    FIRST_BYTE,
    WHOLE_CALL,
)
from umg_grpc.store.duration_steps import step_of
from umg_grpc.store.insert_statements import rows_of
from umg_grpc.store.usage_tables import Totals
from umg_grpc.store.usage_totals import start_of

INSERTED_ROWS = 2000  # by one statement


class CountedCall(NamedTuple):
    """Values of the record of a call by which it is counted; the names are those of the columns."""

    start_micros: int
    key_id: str
    model: str
    channel: str
    agent: str
    status: str
    reason: str
    failure_kind: str
    duration_micros: int
    first_byte_micros: int | None


class _Duration(NamedTuple):
    """Call with one of its durations."""

    start_micros: int
    key_id: str
    model: str
    channel: str
    agent: str
    measure: int
    step: int


def count_upserts(dialect: str, calls: Sequence[CountedCall]) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield statements with their parameters that add calls to all tables. Their rows are in a fixed order, so that two
    transactions cannot wait for each other.
    """
    durations = [each for call in calls for each in _durations_of(call)]
    for totals in DURATION_TABLES:
        yield from _upserts(dialect, totals, durations)
    yield from _upserts(dialect, FAILURE_HOURS, [call for call in calls if call.status != "OK"])


def _durations_of(call: CountedCall) -> Iterable[_Duration]:
    group = call.start_micros, call.key_id, call.model, call.channel, call.agent
    if call.status != "OK":
        yield _Duration(*group, FAILED_CALL, step_of(call.duration_micros))
        return
    yield _Duration(*group, WHOLE_CALL, step_of(call.duration_micros))
    if call.first_byte_micros is not None:
        yield _Duration(*group, FIRST_BYTE, step_of(call.first_byte_micros))


def _upserts(
    dialect: str, totals: Totals, calls: Sequence[CountedCall] | Sequence[_Duration]
) -> Iterator[tuple[str, tuple[object, ...]]]:
    if not calls:
        return
    columns = [name for name in totals.table.columns.keys() if name != CALLS_COLUMN]  # noqa: SIM118
    places = [calls[0]._fields.index(name) for name in columns]
    start = columns.index("start_micros")
    counted = Counter[tuple[object, ...]]()
    for call in calls:
        group = [call[place] for place in places]
        group[start] = start_of(totals.bucket, call.start_micros)
        counted[tuple(group)] += 1
    rows = sorted((*group, number) for group, number in counted.items())
    for part in (rows[first : first + INSERTED_ROWS] for first in range(0, len(rows), INSERTED_ROWS)):
        insert, parameters = rows_of(dialect, totals.table, (*columns, CALLS_COLUMN), part)
        yield f"{insert} {_on_conflict(totals.table.name, tuple(columns))}", parameters


@cache
def _on_conflict(table: str, keys: tuple[str, ...]) -> str:
    total = f"{CALLS_COLUMN} = {table}.{CALLS_COLUMN} + excluded.{CALLS_COLUMN}"
    return f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {total}"
