"""Move of the usage records of earlier versions to the table with partitions and totals, in small pieces. Until it is
complete, reads use the earlier table too, to which an earlier version still writes during a rolling upgrade.
"""

from sqlalchemy import delete, func, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.store.database import Store
from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.store.usage_record_table import RECORD_COLUMNS, Row, insert_rows
from umg_grpc.store.usage_sum_queries import tables_of_records
from umg_grpc.store.usage_tables import EarlierUsageRow

MOVED_ROWS = 500  # in one transaction
MOVE_LOCK = 0x554D475F4D4F5645  # number of a PostgreSQL advisory lock, chosen freely
TRUNCATE_LOCK_SECONDS = 2
_START = RECORD_COLUMNS.index("start_micros")


class EarlierUsageRecords:
    """Mover of the usage records of earlier versions, newest first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._oldest_moved: int | None = None  # to skip the index entries of moved rows, which remain for a while

    async def move_some(self) -> bool:
        """Move up to `MOVED_ROWS` records, unless another process is moving some. Return whether more may be left."""
        async with self._store.read() as session:
            is_partitioned = (await session.connection()).dialect.name != SQLITE_KIND
            if len(await tables_of_records(session)) == 1:
                return False
        async with self._store.write() as session:
            if is_partitioned and not await session.scalar(select(func.pg_try_advisory_xact_lock(MOVE_LOCK))):
                return True
            rows = await _take(session, self._oldest_moved)
            await insert_rows(session, rows)
        if len(rows) == MOVED_ROWS:
            self._oldest_moved = min(row[_START] for row in rows)
            return True
        self._oldest_moved = None
        if is_partitioned:
            await _return_space(self._store)
        return False


async def _take(session: AsyncSession, start_micros: int | None) -> list[Row]:
    """Delete and return the newest records that began at `start_micros` or earlier; None for any time."""
    table = EarlierUsageRow
    newest = select(table.record_id).order_by(table.start_micros.desc()).limit(MOVED_ROWS)
    if start_micros is not None:
        newest = newest.where(table.start_micros <= start_micros)
    columns = [getattr(table, name) for name in RECORD_COLUMNS]
    deletion = delete(table).where(table.record_id.in_(newest)).returning(*columns)
    found = await session.execute(deletion, execution_options={"synchronize_session": False})
    return [tuple(row) for row in found]


async def _return_space(store: Store) -> None:
    """Return the disk space of the moved records, so that searches no longer spend time on it."""
    name = EarlierUsageRow.__tablename__
    async with store.write() as session:
        await session.execute(text(f"SET LOCAL lock_timeout = '{TRUNCATE_LOCK_SECONDS}s'"))
        await session.execute(text(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE"))  # an earlier version may write
        if len(await tables_of_records(session)) == 1:
            await session.execute(text(f"TRUNCATE {name}"))
