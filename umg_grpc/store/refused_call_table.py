"""Table of records of refused calls in the database: inserts, finds, lists and deletes them."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import RowMapping, Table, delete, insert, select, tuple_

from umg_grpc.store.database import Store, repeated
from umg_grpc.store.key_selection import EVERY_KEY, KeySelection
from umg_grpc.store.table_definitions import Base
from umg_grpc.store.usage_parts import CallFilter
from umg_grpc.store.usage_record_pages import Position
from umg_grpc.store.usage_record_table import MAX_FOUND, CallDetails, UsageRecord
from umg_grpc.store.usage_sum_queries import conditions_of
from umg_grpc.store.usage_tables import RefusedCallRow

_TABLE: Table = Base.metadata.tables[RefusedCallRow.__tablename__]
_RECORD_FIELDS = tuple(name for name in _TABLE.columns.keys() if name not in {"message", "calls"})  # noqa: SIM118


class RefusedCall(NamedTuple):
    """Record of a call, and the number of refused calls that it counts; 0 for an admitted call."""

    record: UsageRecord
    calls: int


class RefusedCalls:
    """Records of refused calls in the database of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def insert(self, refused: Sequence[RefusedCall]) -> None:
        """Insert records. Raise SQLAlchemyError if the database fails."""
        async with self._store.write() as session:
            await session.execute(insert(_TABLE), [_row_of(each) for each in refused])

    @repeated
    async def find(self, request_id: str, keys: KeySelection = EVERY_KEY) -> list[RefusedCall]:
        """Return the newest records of calls of `keys` with a request id, at most `MAX_FOUND`."""
        query = select(_TABLE).where(_TABLE.c.request_id == request_id)
        if not keys.is_everything:
            query = query.where(keys.selects(_TABLE.c.key_id))
        async with self._store.read() as session:
            rows = await session.execute(query.order_by(_TABLE.c.start_micros.desc()).limit(MAX_FOUND))
            return [_refused(row) for row in rows.mappings()]

    @repeated
    async def page(self, calls: CallFilter, after: Position | None, size: int) -> list[RefusedCall]:
        """Return up to `size` selected records, newest first. `after`: last record of the previous page, or None."""
        if calls.only.get("end_user"):  # the record of a refused call has none
            return []
        query = select(_TABLE).where(*conditions_of(calls, _TABLE))
        if after is not None:
            query = query.where(tuple_(_TABLE.c.start_micros, _TABLE.c.record_id) < tuple_(*after))
        query = query.order_by(_TABLE.c.start_micros.desc(), _TABLE.c.record_id.desc()).limit(size)
        async with self._store.read() as session:
            return [_refused(row) for row in (await session.execute(query)).mappings()]

    async def delete_before(self, micros: int) -> None:
        """Delete the records of calls that arrived before a time in microseconds since 1970."""
        async with self._store.write() as session:
            await session.execute(delete(_TABLE).where(_TABLE.c.start_micros < micros))


def _row_of(refused: RefusedCall) -> dict[str, object]:
    record = refused.record
    message = record.details.message if record.details is not None else ""
    return {**{name: getattr(record, name) for name in _RECORD_FIELDS}, "message": message, "calls": refused.calls}


def _refused(row: RowMapping) -> RefusedCall:
    details = CallDetails(attempts=[], message=row["message"], first_output_micros=None, dropped=[])
    return RefusedCall(UsageRecord(**{name: row[name] for name in _RECORD_FIELDS}, details=details), row["calls"])
