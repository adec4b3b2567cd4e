"""Facts from the database by which the rules of alerts decide: sums of recent usage, open circuit breakers, and
notifications of callers that were given up. Every query reads totals, or rows by an index.
"""

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Column, ColumnElement, Executable, Select, cast, delete, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from umg_grpc.base.shown_urls import shown_url
from umg_grpc.store.alert_tables import ChannelOutageRow
from umg_grpc.store.callback_outbox import is_in_state, receiver_of
from umg_grpc.store.database import Store, repeated
from umg_grpc.store.database_time import Clock
from umg_grpc.store.table_definitions import TaskCallback
from umg_grpc.store.usage_tables import HOUR_BUCKET, MINUTE_BUCKET, OF_CHANNEL, TOTAL_TABLES
from umg_grpc.v1 import pb

MINUTE_SECONDS, HOUR_SECONDS, WEEK_HOURS = 60, 3600, 168
SILENT_SECONDS = 300
"""Seconds after which a process that reports no more has ended, or is away from the database."""
MAX_OUTAGES = 1000
MAX_GIVEN_UP = 10_000
_TABLES = {each.bucket: each.table.c for each in TOTAL_TABLES if tuple(each.columns) == OF_CHANNEL}
MINUTE_COLUMNS, HOUR_COLUMNS = _TABLES[MINUTE_BUCKET], _TABLES[HOUR_BUCKET]
_INPUT_COLUMNS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "long_cache_write_tokens")


class SpentHour(NamedTuple):
    """Micro-credits of the last hour, and those of the week before it."""

    last: int
    before: int
    hours: int
    """Hours of this week since the first call in it, at most 168."""

    @property
    def mean(self) -> float:
        """Micro-credits of the mean hour of the week before."""
        return self.before / self.hours if self.hours else 0.0


class CountedCalls(NamedTuple):
    """Calls of a model, and the failed ones of them."""

    model: str
    calls: int
    failed: int


class CachedInput(NamedTuple):
    """Input tokens of a model, and those of them that the provider read from a cache."""

    model: str
    tokens: int
    cached: int

    @property
    def share(self) -> float:
        """Cached share; 0 without tokens."""
        return self.cached / self.tokens if self.tokens else 0.0


class ChannelOutage(NamedTuple):
    """Circuit breaker of a channel and a provider's model that is not closed, since a time in microseconds."""

    channel: str
    model: str
    since_micros: int


class CalledModel(NamedTuple):
    """Model that a channel was called for, and the number of the calls."""

    model: str
    channel: str
    calls: int


class AlertFacts:
    """Reader of the facts, and writer of the circuit breakers of this process. Its methods raise SQLAlchemyError."""

    def __init__(self, store: Store, process: str, clock: Clock | None = None) -> None:
        """Read from a database. `process`: unique name of this process; `clock`: None for that of the database."""
        self._store = store
        self._process = process
        self._clock = clock or store.clock
        self._week: dict[str, tuple[int, Sequence[tuple[Any, ...]]]] = {}
        """Text of a query about the week before the last hour -> the hour in which it was made, and its rows."""

    @repeated
    async def spent_hour(self) -> SpentHour:
        """Return the cost of the last 60 minutes, and of the 168 whole hours before them."""
        begin, is_before = self._last_hour()
        last = select(_sum(MINUTE_COLUMNS.micro_credits)).where(MINUTE_COLUMNS.start_micros >= begin)
        before = select(_sum(HOUR_COLUMNS.micro_credits), func.min(HOUR_COLUMNS.start_micros)).where(is_before)
        async with self._store.read() as session:
            now = int(await session.scalar(last) or 0)
            ((spent, first),) = await self._of_week(session, before)
            return SpentHour(now, int(spent), (begin - first) // (HOUR_SECONDS * 10**6) if first is not None else 0)

    @repeated
    async def counted_calls(self, minutes: int) -> Sequence[CountedCalls]:
        """Return the calls of each model in the last `minutes`."""
        calls = (MINUTE_COLUMNS.model, _sum(MINUTE_COLUMNS.requests), _sum(MINUTE_COLUMNS.failed))
        since = self._micros_ago(minutes * MINUTE_SECONDS, MINUTE_SECONDS)
        query = select(*calls).where(MINUTE_COLUMNS.start_micros >= since).group_by(MINUTE_COLUMNS.model)
        async with self._store.read() as session:
            return [CountedCalls._make(row) for row in await session.execute(query)]

    @repeated
    async def cached_input(self) -> tuple[Sequence[CachedInput], dict[str, CachedInput]]:
        """Return the input of each model in the last hour, and by model that of the week before it."""
        begin, is_before = self._last_hour()
        last = _cached_input(MINUTE_COLUMNS).where(MINUTE_COLUMNS.start_micros >= begin)
        before = _cached_input(HOUR_COLUMNS).where(is_before)
        async with self._store.read() as session:
            now = [CachedInput._make(row) for row in await session.execute(last)]
            return now, {row[0]: CachedInput._make(row) for row in await self._of_week(session, before)}

    @repeated
    async def called_models(self) -> Sequence[CalledModel]:
        """Return the models and channels that were called in the last 24 hours."""
        since = self._micros_ago(24 * HOUR_SECONDS, HOUR_SECONDS)
        query = select(HOUR_COLUMNS.model, HOUR_COLUMNS.channel, _sum(HOUR_COLUMNS.requests)).where(
            HOUR_COLUMNS.start_micros >= since, HOUR_COLUMNS.channel != ""
        )
        async with self._store.read() as session:
            grouped = query.group_by(HOUR_COLUMNS.model, HOUR_COLUMNS.channel)
            return [CalledModel._make(row) for row in await session.execute(grouped)]

    @repeated
    async def given_up_callbacks(self) -> Counter[str]:
        """Return the number of notifications about video tasks that were given up, by the server of their callers."""
        query = select(TaskCallback.url).where(is_in_state(pb.TASK_CALLBACK_STATE_GIVEN_UP)).limit(MAX_GIVEN_UP)
        async with self._store.read() as session:
            return Counter(receiver_of(shown_url(url)) for url in await session.scalars(query))

    @repeated
    async def outages(self) -> Sequence[ChannelOutage]:
        """Return the circuit breakers that are not closed in some process that still reports, each once."""
        table = ChannelOutageRow
        query = (
            select(table.channel, table.model, func.min(table.since_micros))
            .where(table.seen_micros > self._clock.sql_micros(-SILENT_SECONDS))
            .group_by(table.channel, table.model)
        )
        async with self._store.read() as session:
            return [ChannelOutage._make(row) for row in await session.execute(query)]

    @repeated
    async def report_outages(self, outages: Sequence[ChannelOutage]) -> None:
        """Replace the circuit breakers that this process has reported, and delete those of silent processes."""
        table, now = ChannelOutageRow, round(self._clock.now() * 1e6)
        silent = table.seen_micros <= self._clock.sql_micros(-SILENT_SECONDS)
        async with self._store.write() as session:
            await session.execute(delete(table).where((table.process == self._process) | silent))
            session.add_all(
                table(**each._asdict(), process=self._process, seen_micros=now) for each in outages[:MAX_OUTAGES]
            )

    async def _of_week(self, session: AsyncSession, query: Executable) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a query about the week, which changes once an hour."""
        key, hour = str(query), self._micros_ago(HOUR_SECONDS, HOUR_SECONDS)
        known = self._week.get(key)
        if known is None or known[0] != hour:
            self._week[key] = known = hour, [tuple(row) for row in await session.execute(query)]
        return known[1]

    def _last_hour(self) -> tuple[int, ColumnElement[bool]]:
        """Return the beginning of the last 60 minutes, and the condition of the 168 whole hours before them."""
        end = self._micros_ago(HOUR_SECONDS, HOUR_SECONDS)
        week = WEEK_HOURS * HOUR_SECONDS * 10**6
        is_before = (HOUR_COLUMNS.start_micros >= end - week) & (HOUR_COLUMNS.start_micros < end)
        return self._micros_ago(HOUR_SECONDS, MINUTE_SECONDS), is_before

    def _micros_ago(self, seconds: int, unit: int) -> int:
        """Return the start of the minute or hour (`unit`) `seconds` ago."""
        then = int(self._clock.now()) - seconds
        return (then - then % unit) * 10**6


def _sum(column: ColumnElement[int]) -> ColumnElement[int]:
    return cast(func.coalesce(func.sum(column), 0), BigInteger)


def _cached_input(table: "ReadOnlyColumnCollection[str, Column[Any]]") -> "Select[Any]":
    tokens = reduce(add, (func.coalesce(table[name], 0) for name in _INPUT_COLUMNS))
    return select(table.model, _sum(tokens), _sum(table.cache_read_tokens)).group_by(table.model)
