"""Time of the database, by which all processes that share it compare stored times. SQL statements have it as an
expression. In the process it is the last measured time plus the time since then, by the monotonic clock. A process
whose wall clock is wrong, or jumps, writes and compares the same times as all others.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Protocol

from sqlalchemy import BigInteger, ColumnElement, Float, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from umg_grpc.store.database_constants import READY_SECONDS, TRUSTED_SECONDS
from umg_grpc.store.table_definitions import UtcTime

MEASURE_SECONDS = 60.0
"""Age from which on a measurement is replaced by any other one, also by one with a slow response."""
JUMP_SECONDS = 600.0
"""Seconds after a jump of the machine's clock in which nothing is deleted or given up because of its age."""
PRECISE_SECONDS = 0.05
"""Half round trip of a measurement that is good enough to replace an earlier one."""

CURRENT_MICROS = {
    # Subqueries, which PostgreSQL evaluates once for each statement: a condition can then use an index.
    "postgresql": "(SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT))",
    "sqlite": "(CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)",
}
"""SQL expressions of the current time in microseconds since 1970, by dialect; for statements in text."""


class _CurrentMicros(FunctionElement[int]):
    """SQL expression of the database's current time in microseconds since 1970."""

    type = BigInteger()
    inherit_cache = True


class _CurrentTime(FunctionElement[datetime]):
    """SQL expression of the database's current time plus its argument, a number of seconds."""

    type = UtcTime()
    inherit_cache = True


@compiles(_CurrentMicros, "postgresql")
@compiles(_CurrentMicros, "sqlite")
def _micros(_element: _CurrentMicros, compiler: SQLCompiler, **_: object) -> str:
    return CURRENT_MICROS[compiler.dialect.name]


@compiles(_CurrentTime, "postgresql")
def _time_on_postgresql(element: _CurrentTime, compiler: SQLCompiler, **arguments: object) -> str:
    return f"(SELECT clock_timestamp() + make_interval(secs => {compiler.process(element.clauses, **arguments)}))"


@compiles(_CurrentTime, "sqlite")
def _time_on_sqlite(element: _CurrentTime, compiler: SQLCompiler, **arguments: object) -> str:
    # in the form in which SQLAlchemy stores times, which are compared as texts
    shift = f"{compiler.process(element.clauses, **arguments)} || ' seconds'"
    return f"strftime('%Y-%m-%d %H:%M:%f000', 'now', {shift})"


class Clock(Protocol):
    """Interface of the clock of a database: the current time in SQL statements and in the process."""

    @property
    def skew_seconds(self) -> float:
        """Seconds by which the wall clock of this process is ahead of the database's clock."""
        ...

    @property
    def is_trusted(self) -> bool:
        """Whether the skew is small enough for deletions by age (`TRUSTED_SECONDS`)."""
        ...

    @property
    def problem(self) -> str:
        """Message for operators if the process is not ready because of the skew (`READY_SECONDS`), else ""."""
        ...

    def now(self) -> float:
        """Return the current time in seconds since 1970."""
        ...

    def sql_micros(self, seconds: float = 0.0) -> ColumnElement[int]:
        """Return the SQL expression of the current time plus a number of seconds, in microseconds since 1970."""
        ...

    def sql_time(self, seconds: float = 0.0) -> ColumnElement[datetime]:
        """Return the SQL expression of the current time plus a number of seconds, for columns of the type `UtcTime`."""
        ...


class DatabaseClock:
    """Clock of PostgreSQL. SQL statements read the server's clock; the process uses the last measurement of it, and its
    own wall clock before the first measurement.
    """

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Create the clock. `wall`: returns this machine's Unix seconds; `monotonic`: seconds that never jump."""
        self._wall = wall
        self.monotonic = monotonic
        self._offset: float | None = None  # database's time less that of the monotonic clock
        self._uncertainty = 0.0
        self._measured_at = 0.0

    @property
    def skew_seconds(self) -> float:
        return self._wall() - self.now()

    @property
    def is_trusted(self) -> bool:
        return self._certain_skew <= TRUSTED_SECONDS

    @property
    def problem(self) -> str:
        if self._certain_skew <= READY_SECONDS:
            return ""
        skew = self.skew_seconds
        found = f"clock: {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} that of the database"
        return f"{found}; synchronize both machines by NTP (chrony, systemd-timesyncd)"

    @property
    def _certain_skew(self) -> float:
        return abs(self.skew_seconds) - self._uncertainty

    def now(self) -> float:
        return self._wall() if self._offset is None else self.monotonic() + self._offset

    def measured(self, database_time: float, sent: float, received: float) -> None:
        """Take a measurement of the database's time. `sent`, `received`: monotonic times of query and response, between
        which the database read its clock. A slow response replaces a quick one only if the two contradict each other,
        or if the quick one is old.
        """
        offset, uncertainty = database_time - (sent + received) / 2, (received - sent) / 2
        if (
            self._offset is None
            or uncertainty <= max(PRECISE_SECONDS, self._uncertainty)
            or abs(offset - self._offset) > uncertainty
            or received - self._measured_at >= MEASURE_SECONDS
        ):
            self._offset, self._uncertainty, self._measured_at = offset, uncertainty, received

    def sql_micros(self, seconds: float = 0.0) -> ColumnElement[int]:
        return _shifted(_CurrentMicros(), seconds)

    def sql_time(self, seconds: float = 0.0) -> ColumnElement[datetime]:
        return _CurrentTime(literal(seconds, Float()))


class MachineClock:
    """Clock of SQLite, which runs in the process: the machine's clock, in milliseconds as in SQLite. After a jump
    against the monotonic clock it is not trusted for some time, since it may jump back.
    """

    skew_seconds = 0.0
    problem = ""

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._offset = wall() - monotonic()
        self._jumped_at = -inf

    @property
    def is_trusted(self) -> bool:
        """Whether the clock has not jumped within the last `JUMP_SECONDS`."""
        self.check()
        return self._monotonic() - self._jumped_at >= JUMP_SECONDS

    def check(self) -> None:
        """Notice a jump of the clock since the last check. A clock that is slowly corrected differs by less."""
        now = self._monotonic()
        offset = self._wall() - now
        if abs(offset - self._offset) > TRUSTED_SECONDS:
            self._jumped_at = now
        self._offset = offset

    def now(self) -> float:
        return int(self._wall() * 1000) / 1000

    def sql_micros(self, seconds: float = 0.0) -> ColumnElement[int]:
        return _shifted(_CurrentMicros(), seconds)

    def sql_time(self, seconds: float = 0.0) -> ColumnElement[datetime]:
        return _CurrentTime(literal(seconds, Float()))


class GivenClock:
    """Clock whose time a function returns, also in SQL statements."""

    skew_seconds = 0.0
    is_trusted = True
    problem = ""

    def __init__(self, utc: Callable[[], datetime]) -> None:
        self._utc = utc

    def now(self) -> float:
        return self._utc().timestamp()

    def sql_micros(self, seconds: float = 0.0) -> ColumnElement[int]:
        return _shifted(literal(round(self.now() * 1e6), BigInteger()), seconds)

    def sql_time(self, seconds: float = 0.0) -> ColumnElement[datetime]:
        return literal(self._utc() + timedelta(seconds=seconds), UtcTime())


def _shifted(micros: ColumnElement[int], seconds: float) -> ColumnElement[int]:
    return micros + int(seconds * 1e6) if seconds else micros


def utc_of(clock: Clock) -> datetime:
    """Return the current time of a clock in UTC."""
    return datetime.fromtimestamp(clock.now(), UTC)
