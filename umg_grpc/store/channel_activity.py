"""Calls of channels in the last hour, and the failed attempts at them: read from totals and from the newest records."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from sqlalchemy import BigInteger, ColumnElement, cast, func, select

from umg_grpc.store.database import Store, repeated
from umg_grpc.store.usage_record_table import decode_details
from umg_grpc.store.usage_tables import MINUTE_BUCKET, OF_CHANNEL, TOTAL_TABLES, UsageRow
from umg_grpc.store.usage_totals import MINUTE_MICROS

HOUR_MICROS = 60 * MINUTE_MICROS
MAX_RECORDS = 5000
"""Most records of calls with failed attempts that are read, the newest first."""
SCANNED_RECORDS = 200_000
"""Most records of the hour among which they are looked for, the newest ones."""
OTHER_KIND = "other"
"""Kind of a failed attempt without a kind."""
_MINUTES = next(
    each.table.c for each in TOTAL_TABLES if each.bucket == MINUTE_BUCKET and tuple(each.columns) == OF_CHANNEL
)


class FailedAttempts(NamedTuple):
    """Failed attempts of one kind at a channel: their number, and time and message of the last."""

    attempts: int
    last_micros: int
    last_message: str


class CalledChannel(NamedTuple):
    """Calls of a channel in the last hour, the failed ones, and failed attempts by kind."""

    calls: int
    failed: int
    failures: dict[str, FailedAttempts]


class ChannelActivityReader:
    """Reader of the calls of the last hour. Its methods raise SQLAlchemyError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @repeated
    async def channels(self) -> dict[str, CalledChannel]:
        """Return the calls of each channel that was called."""
        since = self._since()
        sums = (_MINUTES.channel, _sum(_MINUTES.requests), _sum(_MINUTES.failed))
        minutes = select(*sums).where(_MINUTES.start_micros >= since, _MINUTES.channel != "").group_by(_MINUTES.channel)
        row = UsageRow
        columns = (row.start_micros, row.status, row.attempts, row.details)
        newest = select(*columns).where(row.start_micros >= since).order_by(row.start_micros.desc())
        read = newest.limit(SCANNED_RECORDS).subquery().c
        is_failed = ((read.status != "OK") | (read.attempts > 1)) & read.details.is_not(None)
        failed = select(read.start_micros, read.details).where(is_failed).order_by(read.start_micros.desc())
        async with self._store.read() as session:
            calls = {channel: (int(calls), int(failed)) for channel, calls, failed in await session.execute(minutes)}
            failures = _failures(
                (start, details) for start, details in await session.execute(failed.limit(MAX_RECORDS))
            )
        return {
            channel: CalledChannel(*calls.get(channel, (0, 0)), failures.get(channel, {}))
            for channel in calls.keys() | failures.keys()
        }

    @repeated
    async def models(self) -> dict[str, int]:
        """Return the number of calls of each public model that was called."""
        calls = select(_MINUTES.model, _sum(_MINUTES.requests)).where(_MINUTES.start_micros >= self._since())
        async with self._store.read() as session:
            return {model: int(number) for model, number in await session.execute(calls.group_by(_MINUTES.model))}

    def _since(self) -> int:
        then = round(self._store.clock.now() * 1e6) - HOUR_MICROS
        return then - then % MINUTE_MICROS


def _failures(rows: Iterable[tuple[int, str | None]]) -> dict[str, dict[str, FailedAttempts]]:
    """Return the failed attempts by channel and kind. `rows`: arrival and details of calls, newest first."""
    found = defaultdict[str, dict[str, FailedAttempts]](dict)
    for start_micros, details in rows:
        try:
            attempts = decode_details(details or "").attempts
        except msgspec.DecodeError:  # of a newer version
            continue
        for each in reversed(attempts):
            if not each.reason or each.reason == "CANCELLED":
                continue
            kinds, kind = found[each.channel], each.kind or OTHER_KIND
            last = kinds.get(kind, FailedAttempts(0, start_micros + each.start_micros, each.message))
            kinds[kind] = last._replace(attempts=last.attempts + 1)
    return found


def _sum(column: ColumnElement[int]) -> ColumnElement[int]:
    return cast(func.coalesce(func.sum(column), 0), BigInteger)
