"""Deletion of the rows of a table by age and total size, by several processes at the same time."""

import itertools
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

from sqlalchemy import Select, delete, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.store.database import Store, repeated
from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.store.database_time import Clock
from umg_grpc.store.table_definitions import RetainedRow

BATCH_ROWS = 200
BATCHES_AT_ONCE = 5  # maximum number of batches deleted in one transaction, since other writers wait for it
SWEEP_LOCK = 0x554D475F53574550  # number of a PostgreSQL advisory lock, chosen freely

Row = TypeVar("Row", bound=RetainedRow)


@dataclass(frozen=True)
class Bounds:
    """Maximum total size, in bytes, of the rows of one caller and of all callers together; 0 is no limit. Rows beyond
    it are deleted periodically, and the first to expire goes first, so that the size may exceed it for a while.
    """

    owner_bytes: int
    total_bytes: int


class _SweptRow(NamedTuple):
    """Columns of a row that a deletion needs: owner, id, time at which it expires, and size in bytes."""

    owner: str
    object_id: str
    expire_time: datetime
    size_bytes: int


class ExpiredRowSweep(Generic[Row]):
    """Deletion of the rows of one table that have expired, or exceed the maximum sizes."""

    def __init__(self, store: Store, table: type[Row], bounds: Bounds, clock: Clock) -> None:
        self._store = store
        self._table = table
        self._bounds = bounds
        self._clock = clock

    async def run(self) -> None:
        """Delete expired rows, and those above the maximum sizes by expiry. Do nothing while the clock is wrong."""
        if not self._clock.is_trusted:
            return
        table, now = self._table, self._clock.sql_time()
        expired = select(table).where(table.expire_time <= now)
        live = select(table).where(table.expire_time > now)  # another sweep may be deleting the expired ones
        while await self._remove_oldest(expired) == BATCH_ROWS:
            pass
        if not (self._bounds.owner_bytes or self._bounds.total_bytes):
            return
        sizes = select(table.owner, func.sum(table.size_bytes)).group_by(table.owner)
        async with self._store.read() as session:
            owners = {owner: int(size) for owner, size in await session.execute(sizes)}
        if bound := self._bounds.owner_bytes:
            for owner, size in owners.items():
                if size > bound:
                    await self._shrink(live.where(table.owner == owner), bound)
        if (bound := self._bounds.total_bytes) and sum(owners.values()) > bound:
            await self._shrink(live, bound)

    async def _shrink(self, rows: Select[Row], bound: int) -> None:
        while await self._shrink_step(rows, bound):
            pass

    @repeated
    async def _shrink_step(self, rows: Select[Row], bound: int) -> bool:
        """Delete some of the selected rows if they have more than `bound` bytes. Sum and deletion are in one
        transaction, since two processes could otherwise delete the same excess twice.
        """
        async with self._store.write() as session:
            await self._lock_sweeps(session)
            size = await session.scalar(rows.with_only_columns(func.sum(self._table.size_bytes)))
            excess = int(size or 0) - bound
            for _ in range(BATCHES_AT_ONCE):
                oldest = await self._oldest(session, rows) if excess > 0 else []
                if not oldest:
                    return False
                sizes = itertools.accumulate((row.size_bytes for row in oldest), initial=0)
                chosen = [row for row, before in zip(oldest, sizes, strict=False) if before < excess]
                await self._remove(session, chosen)
                excess -= sum(row.size_bytes for row in chosen)
            return excess > 0

    @repeated
    async def _remove_oldest(self, rows: Select[Row]) -> int:
        """Delete up to `BATCH_ROWS` of the selected rows. Return the number of deleted rows."""
        async with self._store.read() as session:
            oldest = await self._oldest(session, rows)
        if oldest:
            async with self._store.write() as session:
                # another sweep that has counted these rows would delete as many newer ones instead
                await self._lock_sweeps(session)
                await self._remove(session, oldest)
        return len(oldest)

    async def _lock_sweeps(self, session: AsyncSession) -> None:
        if session.get_bind().dialect.name != SQLITE_KIND:  # SQLite has only one writer
            await session.execute(select(func.pg_advisory_xact_lock(SWEEP_LOCK)))

    async def _oldest(self, session: AsyncSession, rows: Select[Row]) -> list[_SweptRow]:
        table = self._table
        query = rows.with_only_columns(table.owner, table.object_id, table.expire_time, table.size_bytes)
        found = await session.execute(query.order_by(table.expire_time).limit(BATCH_ROWS))
        return [_SweptRow(*columns) for columns in found]

    async def _remove(self, session: AsyncSession, rows: Collection[_SweptRow]) -> None:
        table = self._table
        keys = [(row.owner, row.object_id) for row in rows]
        keys += keys[-1:] * (BATCH_ROWS - len(keys))  # a constant number of keys needs one compiled statement
        seen = table.expire_time <= max(row.expire_time for row in rows)  # excludes rows that were written again since
        await session.execute(delete(table).where(tuple_(table.owner, table.object_id).in_(keys), seen))
