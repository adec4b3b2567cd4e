"""Tables of numbers of calls: by duration, for percentiles, and by reason and kind of the failure."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import BigInteger, Column, SmallInteger, Table
from sqlalchemy.types import TypeEngine

from umg_grpc.store.table_definitions import Base
from umg_grpc.store.usage_tables import (
    AGENT_COLUMN,
    DAY_BUCKET,
    HOUR_BUCKET,
    ID_TYPE,
    KEPT_HOURS,
    KEPT_MINUTES,
    MINUTE_BUCKET,
    NAME_TYPE,
    Totals,
)

FIRST_BYTE, WHOLE_CALL, FAILED_CALL = range(3)
"""Measures of durations: of successful calls to the first message of their streams, and to their ends; of failed calls
to their ends.
"""
CALLS_COLUMN, STEP_COLUMNS = "calls", ("measure", "step")
OF_PROGRAM = ("model", "channel", AGENT_COLUMN)
OF_KEY_AND_PROGRAM = ("key_id", *OF_PROGRAM)
FAILURE_COLUMNS = ("reason", "failure_kind")


def _table(name: str, keys: Sequence[str]) -> Table:
    """Return a table of numbers of calls by the columns `keys`, in whose order the rows are stored."""
    types: dict[str, TypeEngine[Any]] = {"start_micros": BigInteger(), "key_id": ID_TYPE}
    types |= dict.fromkeys(STEP_COLUMNS, SmallInteger())
    return Table(
        name,
        Base.metadata,
        *(Column(key, types.get(key, NAME_TYPE), primary_key=True, autoincrement=False) for key in keys),
        Column(CALLS_COLUMN, BigInteger, nullable=False),
        # the key is the row, without another copy of it
        info={"postgresql": {"with": {"fillfactor": 70}}, "sqlite": {"with_rowid": False}},
    )


def _durations(name: str, bucket: str, columns: Sequence[str] = (), kept: timedelta | None = None) -> Totals:
    """Return a table of durations. Its order is that of its most frequent query: of one key, or of a span of time."""
    keys = ("key_id",) if "key_id" in columns else ()
    others = (column for column in columns if column not in keys)
    return Totals(_table(name, (*keys, "start_micros", *STEP_COLUMNS, *others)), bucket, columns, kept)


DURATION_TABLES = (
    _durations("call_duration_minutes", MINUTE_BUCKET, kept=KEPT_MINUTES),
    _durations("call_duration_hours", HOUR_BUCKET, kept=KEPT_HOURS),
    _durations("call_duration_days", DAY_BUCKET),
    _durations("call_duration_program_days", DAY_BUCKET, OF_PROGRAM),
    _durations("call_duration_key_days", DAY_BUCKET, OF_KEY_AND_PROGRAM),
)
"""Numbers of calls by duration (`duration_steps.py`). With models or keys there are about as many rows as calls in an
hour, so that only days are counted by them; shorter spans are read from the records.
"""
FAILURE_HOURS = Totals(
    _table("call_failure_hours", ("start_micros", *OF_KEY_AND_PROGRAM, *FAILURE_COLUMNS)),
    HOUR_BUCKET,
    (*OF_KEY_AND_PROGRAM, *FAILURE_COLUMNS),
    KEPT_HOURS,
)
COUNT_TABLES = (*DURATION_TABLES, FAILURE_HOURS)
"""All of these tables, in the order in which a transaction writes them."""
