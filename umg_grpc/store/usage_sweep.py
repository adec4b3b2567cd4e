"""Deletion of old usage: of records by age and total size, and of totals by age."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, delete, func, select, tuple_

from umg_grpc.base.time_units import time_of
from umg_grpc.store.call_count_tables import COUNT_TABLES
from umg_grpc.store.database import Store
from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.store.end_user_usage import sweep_end_users
from umg_grpc.store.usage_partitions import (
    DAY_MICROS,
    DAYS_AHEAD,
    create_partitions,
    day_of,
    days_of_partitions,
    drop_partition,
)
from umg_grpc.store.usage_tables import DAY_BUCKET, TOTAL_TABLES, UsageRow
from umg_grpc.store.usage_totals import start_of

SWEEP_ROWS = 1000  # deleted in one transaction, since other writers wait for it
ROW_BYTES = 1024
"""Size of a row with its indexes, rounded up: 965 bytes on PostgreSQL for the records with which `python -m
tests.proofs.usage_scale` fills a database, of which 482 are the row and 159 the largest index; less on SQLite.
"""
TOTALS_MARGIN_MICROS = 3600 * 10**6
"""Time for which totals are kept longer than they are read, since the clocks of processes differ."""


@dataclass(frozen=True)
class Swept:
    """Result of the deletion of old usage."""

    deleted_early: int
    """Number of records that were deleted before the end of their time, since all together were too large."""
    begin: datetime
    """Arrival of the oldest record that this deletion kept."""


async def sweep_usage(store: Store, ttl: int, max_bytes: int | None, totals_ttl: int) -> Swept:
    """Delete the records of calls that arrived more than `ttl` seconds ago, and the totals of calls more than
    `totals_ttl` seconds ago. Also delete the oldest records while their total size exceeds `max_bytes`. PostgreSQL
    drops the records of a day together, when all of them are old enough.
    """
    start = UsageRow.start_micros
    async with store.read() as session:
        is_partitioned = (await session.connection()).dialect.name != SQLITE_KIND
        now = int(await session.scalar(select(store.clock.sql_micros())) or 0)
        oldest_to_keep = 0
        if max_bytes is not None:
            newest = select(start).order_by(start.desc()).offset(max(max_bytes // ROW_BYTES, 1) - 1)
            oldest_to_keep = await session.scalar(newest.limit(1)) or 0
    expired = now - ttl * 10**6
    if is_partitioned:
        await _drop_days_before(store, expired)
        async with store.write() as session:
            await create_partitions(session, range(day_of(now), day_of(now) + DAYS_AHEAD + 1))
    else:
        await _delete(store, start < expired)
    deleted_early = 0
    if oldest_to_keep > expired:
        await _delete(store, start < expired)  # the rest of the day
        async with store.read() as session:
            deleted_early = await session.scalar(select(func.count()).where(start < oldest_to_keep)) or 0
        if is_partitioned:
            await _drop_days_before(store, oldest_to_keep)
        await _delete(store, start < oldest_to_keep)
    for totals in (
        *COUNT_TABLES,
        *reversed(TOTAL_TABLES),
    ):  # totals of agents first: they are subtracted from those of all calls
        kept = min(totals_ttl, totals_ttl if totals.kept is None else int(totals.kept.total_seconds()))
        bound = start_of(totals.bucket, now - kept * 10**6 - TOTALS_MARGIN_MICROS)
        async with store.write() as session:
            await session.execute(delete(totals.table).where(totals.table.c.start_micros < bound))
    await sweep_end_users(store, start_of(DAY_BUCKET, now - totals_ttl * 10**6 - TOTALS_MARGIN_MICROS))
    return Swept(deleted_early, time_of(oldest_to_keep))


async def _drop_days_before(store: Store, micros: int) -> None:
    """Drop the partitions of the days that end before a time, in microseconds since 1970."""
    async with store.read() as session:
        days = [day for day in await days_of_partitions(session) if (day + 1) * DAY_MICROS <= micros]
    for day in days:
        async with store.write() as session:
            await drop_partition(session, day)


async def _delete(store: Store, condition: ColumnElement[bool]) -> None:
    """Delete the records that match the condition, in several transactions."""
    matching = select(UsageRow.start_micros, UsageRow.record_id).where(condition).limit(SWEEP_ROWS)
    matches = tuple_(UsageRow.start_micros, UsageRow.record_id).in_(matching)
    deletion = delete(UsageRow).where(matches).returning(UsageRow.record_id)
    while True:
        async with store.write() as session:
            deleted = (await session.scalars(deletion, execution_options={"synchronize_session": False})).all()
        if len(deleted) < SWEEP_ROWS:
            return
