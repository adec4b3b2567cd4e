"""Partitions of the usage records on PostgreSQL, one for each day in UTC. A partition is dropped in milliseconds, which
returns its disk space; the deletion of its rows would not.
"""

from collections.abc import Collection, Iterable
from datetime import date, timedelta

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.store.usage_tables import UsageRow

RECORDS_TABLE = UsageRow.__tablename__
DAY_MICROS = 86_400 * 10**6
DAYS_AHEAD = 2
"""Days after the current one whose partitions are created ahead."""
PARTITION_LOCK = 0x554D475F50415254  # number of a PostgreSQL advisory lock, chosen freely
DROP_LOCK_SECONDS = 2
"""Longest wait for the lock to drop a partition. Reads and writes of records wait behind it."""
EPOCH_DAY = date(1970, 1, 1)

_PARTITIONS = (
    "SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid"  # noqa: S608  names of our own
    f" WHERE inhparent = CAST('{RECORDS_TABLE}' AS regclass)"
)


def day_of(micros: int) -> int:
    """Return the number of days since 1970 of a time in microseconds since 1970."""
    return micros // DAY_MICROS


async def create_partitions(session: AsyncSession, days: Iterable[int]) -> None:
    """Create the missing partitions of days, numbers of days since 1970, in the transaction of the caller."""
    names = {_name(day): day for day in days}
    if not names.keys() - await _existing(session, names):
        return
    await session.execute(select(func.pg_advisory_xact_lock(PARTITION_LOCK)))
    for name in sorted(names.keys() - await _existing(session, names)):
        # Not PARTITION OF, for whose lock reads and writes of the other partitions would have to wait.
        await session.execute(text(f"CREATE TABLE IF NOT EXISTS {name} (LIKE {RECORDS_TABLE} INCLUDING DEFAULTS)"))
        start = names[name] * DAY_MICROS
        bounds = f"FOR VALUES FROM ({start}) TO ({start + DAY_MICROS})"
        await session.execute(text(f"ALTER TABLE {RECORDS_TABLE} ATTACH PARTITION {name} {bounds}"))


async def days_of_partitions(session: AsyncSession) -> list[int]:
    """Return the days that have partitions, as numbers of days since 1970, in ascending order."""
    names = await session.scalars(text(_PARTITIONS))
    return sorted((date.fromisoformat(name[-8:]) - EPOCH_DAY).days for name in names)


async def drop_partition(session: AsyncSession, day: int) -> None:
    """Drop the partition of a day, a number of days since 1970, unless another process has dropped it."""
    await session.execute(text(f"SET LOCAL lock_timeout = '{DROP_LOCK_SECONDS}s'"))
    await session.execute(text(f"DROP TABLE IF EXISTS {_name(day)}"))


def _name(day: int) -> str:
    return f"{RECORDS_TABLE}_{EPOCH_DAY + timedelta(days=day):%Y%m%d}"


async def _existing(session: AsyncSession, names: Collection[str]) -> set[str]:
    query = text(f"{_PARTITIONS} AND relname = ANY(:names)")
    return set(await session.scalars(query, {"names": [*names]}))
