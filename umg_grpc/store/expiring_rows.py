"""Tables whose rows are stored for a limited time: rows are written in batches, and deleted by age and total size."""

import asyncio
import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import structlog
from sqlalchemy import delete, select
from sqlalchemy.exc import DataError, IntegrityError
from structlog.typing import FilteringBoundLogger

from umg_grpc.store.database import Store, repeated, repeated_idempotent
from umg_grpc.store.database_time import Clock
from umg_grpc.store.expired_row_sweep import Bounds, ExpiredRowSweep
from umg_grpc.store.repeated_background_tasks import Background, reason_of
from umg_grpc.store.row_upserts import Upsert, batches, upsert_into
from umg_grpc.store.table_definitions import RetainedRow

BATCH_ROWS = 200
BATCH_BYTES = 8 * 2**20
WAITING_BYTES = 64 * 2**20  # maximum size of pending rows while the database is unavailable; further rows are rejected
CLOSE_SECONDS = 5.0
SWEEP_SECONDS = 60.0

logger: FilteringBoundLogger = structlog.get_logger(__name__)

Row = TypeVar("Row", bound=RetainedRow)

_Key = tuple[str, str]


@dataclass(slots=True)
class _Waiting(Generic[Row]):
    """Row that is to be written. `futures`: one for each waiting call; its result is whether the row was written."""

    row: Row
    futures: list["asyncio.Future[bool]"] = field(default_factory=list)

    def resolve(self, written: bool) -> None:
        for future in self.futures:
            if not future.done():
                future.set_result(written)
        self.futures.clear()


class Retained(Generic[Row]):
    """Access to one table of rows with a limited lifetime, written in the background from `start` to `aclose`. One task
    writes all pending rows of a process in one transaction, since an SQLite file has one writer at a time, and many
    waiting writers are slow. Rows that cannot be written while the database is unavailable are written later. Reads
    raise the errors of the database.
    """

    def __init__(self, store: Store, table: type[Row], bounds: Bounds, clock: Clock) -> None:
        self._store = store
        self._table = table
        self._bounds = bounds
        self._clock = clock
        self._sweep = ExpiredRowSweep(store, table, bounds, clock)
        self._upsert_rows: Upsert | None = None
        self._waiting: dict[_Key, _Waiting[Row]] = {}
        self._writing: dict[_Key, _Waiting[Row]] = {}
        self._waiting_bytes = 0
        self._rejected_count = 0  # rows rejected since the database became unavailable
        self._away = False
        self._writer: Background | None = None
        self._sweeper: Background | None = None
        self._unswept_bytes = 0
        smallest = min((bound for bound in (bounds.owner_bytes, bounds.total_bytes) if bound), default=0)
        self._early_sweep_bytes = max(smallest // 8, 1) if smallest else 0

    @property
    def waiting(self) -> int:
        """Number of rows that are not written yet."""
        return len(self._waiting) + len(self._writing)

    @property
    def may_lack_rows(self) -> bool:
        """Whether rows of other processes may be missing, because the database is or was unavailable to them."""
        return self._store.reconnection.may_lack_rows

    def start(self) -> None:
        """Start the background tasks that write queued rows and delete expired rows."""
        if self._writer is None:
            name = self._table.__tablename__
            self._writer = Background(f"writing {name}", self._write, at_end=True)
            self._sweeper = Background(f"sweeping {name}", self.sweep, every=SWEEP_SECONDS)
            if self._waiting:
                self._writer.wake()

    async def aclose(self) -> None:
        """Write the queued rows within a bounded time, and stop the background tasks. Unwritten rows are lost."""
        writer, sweeper, self._writer, self._sweeper = self._writer, self._sweeper, None, None
        for background in (sweeper, writer):
            if background is not None:
                await background.aclose(CLOSE_SECONDS)
        if lost := len(self._waiting):
            logger.warning("rows are lost: the database did not take them", table=self._table.__tablename__, rows=lost)
        for waiting in self._waiting.values():
            waiting.resolve(written=False)

    def add(self, row: Row) -> bool:
        """Queue a row, which replaces an older one. Return False if it is too large (`Bounds`), or too many wait."""
        return self._enqueue(row) is not None

    async def put(self, row: Row, seconds: float) -> bool:
        """Queue a row. Return whether it was written within `seconds`; False at once if the database is unavailable."""
        waiting = self._enqueue(row)
        return waiting is not None and await self._wait_written([waiting], seconds)

    async def flushed(self, seconds: float) -> bool:
        """Return whether all pending rows are written within `seconds`; False at once while the database is away."""
        return await self._wait_written([*self._writing.values(), *self._waiting.values()], seconds)

    async def get(self, owner: str, object_id: str) -> Row | None:
        """Return the row with this id that belongs to the key `owner`; None if it does not exist or has expired."""
        return next(iter(await self.find(owner, [object_id])), None)

    @repeated
    async def find(self, owner: str, object_ids: Collection[str]) -> list[Row]:
        """Return the unexpired rows with these ids that belong to the key `owner`, in any order."""
        now, found, rest = self._clock.now(), list[Row](), list[str]()
        for object_id in object_ids:
            key = (owner, object_id)
            if (waiting := self._waiting.get(key) or self._writing.get(key)) is not None:
                found += [waiting.row] if waiting.row.expire_time.timestamp() > now else []
            else:
                rest.append(object_id)
        for ids in batches(rest, BATCH_ROWS):
            table = self._table
            live = table.expire_time > self._clock.sql_time()
            query = select(table).where(table.owner == owner, table.object_id.in_(ids), live)
            async with self._store.read() as session:
                found.extend(await session.scalars(query))
        return found

    async def delete(self, owner: str, object_id: str) -> bool:
        """Delete the row with this id that belongs to the key `owner`. Return whether it existed."""
        await self.flushed(CLOSE_SECONDS)  # otherwise a write in flight could restore the row
        waiting = self._waiting.pop((owner, object_id), None)
        if waiting is not None:
            self._waiting_bytes -= waiting.row.size_bytes
            waiting.resolve(written=False)
        return await self._delete(owner, object_id) or waiting is not None

    async def sweep(self) -> None:
        """Delete expired rows, and rows above the maximum sizes."""
        self._unswept_bytes = 0
        await self._sweep.run()

    # --- writing

    def _enqueue(self, row: Row) -> "_Waiting[Row] | None":
        size, bound = row.size_bytes, self._bounds.owner_bytes or self._bounds.total_bytes
        if (bound and size > bound) or self._waiting_bytes + size > WAITING_BYTES:
            self._rejected_count += 1
            if self._rejected_count == 1:
                logger.warning("a row is not stored", table=self._table.__tablename__, bytes=size, bound=bound)
            return None
        key = (row.owner, row.object_id)
        waiting = self._waiting.get(key)
        if waiting is None:
            waiting = self._waiting[key] = _Waiting(row)
        else:
            self._waiting_bytes -= waiting.row.size_bytes
            waiting.row = row
        self._waiting_bytes += size
        if self._writer is not None:
            self._writer.wake()
        return waiting

    async def _wait_written(self, rows: Sequence["_Waiting[Row]"], seconds: float) -> bool:
        if not rows:
            return True
        if self._away or self._writer is None:
            return False
        futures = list[asyncio.Future[bool]]()
        for waiting in rows:
            future = asyncio.get_running_loop().create_future()
            waiting.futures.append(future)
            futures.append(future)
        await asyncio.wait(futures, timeout=seconds)
        return all(future.done() and future.result() for future in futures)

    async def _write(self) -> None:
        while self._waiting:
            await self._write_batch(self._next_batch())

    def _next_batch(self) -> Sequence["_Waiting[Row]"]:
        size = 0
        for key in list(itertools.islice(self._waiting, BATCH_ROWS)):
            waiting = self._writing[key] = self._waiting.pop(key)
            size += waiting.row.size_bytes
            if size >= BATCH_BYTES:
                break
        self._waiting_bytes -= size
        # In the order of their keys, so that two processes that write the same rows do not deadlock.
        return [self._writing[key] for key in sorted(self._writing)]

    async def _write_batch(self, batch: Sequence["_Waiting[Row]"]) -> None:
        try:
            try:
                await self._upsert([waiting.row for waiting in batch])
                self._complete(batch, written=True)
            except (DataError, IntegrityError):  # a row that the database rejects must not block the others
                for waiting in batch:
                    await self._write_alone(waiting)
        except BaseException:
            self._away = True
            for key, waiting in self._writing.items():
                waiting.resolve(written=False)
                if key not in self._waiting:
                    self._waiting_bytes += waiting.row.size_bytes
            self._waiting = self._writing | self._waiting
            self._writing = {}
            raise
        if self._away or self._rejected_count:
            logger.info("rows are written again", table=self._table.__tablename__, refused=self._rejected_count)
        self._away, self._rejected_count = False, 0

    async def _write_alone(self, waiting: "_Waiting[Row]") -> None:
        written = False
        try:
            await self._upsert([waiting.row])
            written = True
        except (DataError, IntegrityError) as error:
            logger.error("the database refuses a row", table=self._table.__tablename__, reason=reason_of(error))
        self._complete([waiting], written=written)

    def _complete(self, batch: Iterable["_Waiting[Row]"], *, written: bool) -> None:
        for waiting in batch:
            row = waiting.row
            del self._writing[row.owner, row.object_id]
            self._unswept_bytes += row.size_bytes
            waiting.resolve(written)
        if self._sweeper is not None and 0 < self._early_sweep_bytes <= self._unswept_bytes:
            self._sweeper.wake()

    @repeated_idempotent
    async def _upsert(self, rows: Sequence[Row]) -> None:
        async with self._store.write() as session:
            if self._upsert_rows is None:
                self._upsert_rows = upsert_into(self._table, session.get_bind().dialect)
            await self._upsert_rows(await session.connection(), rows)

    @repeated
    async def _delete(self, owner: str, object_id: str) -> bool:
        table = self._table
        deleted = delete(table).where(table.owner == owner, table.object_id == object_id)
        async with self._store.write() as session:
            return bool(await session.scalar(deleted.returning(table.expire_time > self._clock.sql_time())))


class RetainedStore(Generic[Row]):
    """Base class of stores whose rows have a limited lifetime, usable from `start` to `aclose`."""

    def __init__(self, rows: Retained[Row]) -> None:
        self._rows: Retained[Row] = rows

    @property
    def waiting_writes(self) -> int:
        """Number of rows that are not written to the database yet."""
        return self._rows.waiting

    def start(self) -> None:
        """Start the background tasks that write queued rows to the database and delete expired rows."""
        self._rows.start()

    async def aclose(self) -> None:
        """Write the pending rows, and stop the background tasks."""
        await self._rows.aclose()

    async def sweep(self) -> None:
        """Delete the rows that have expired or exceed the maximum size, as a background task does every minute."""
        await self._rows.sweep()
