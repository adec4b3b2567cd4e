"""Usage records in the database: one for each admitted call, with its key, model, attempts, tokens and cost."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain
from operator import itemgetter
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec
from sqlalchemy import BigInteger, ColumnElement, RowMapping, case, delete, func, literal_column, select, tuple_
from sqlalchemy.exc import DataError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from umg_grpc.lazy_logger import LazyLogger
from umg_grpc.store.budget_accounts import Charge, LeaseId, lock_accounts, settle
from umg_grpc.store.database import Store, repeated
from umg_grpc.store.database_kinds import SQLITE
from umg_grpc.store.repeated_work import reason_of
from umg_grpc.store.tables import UsageRow

INSERTED_ROWS = 500  # in one statement, of which SQLite allows 32,766 parameters
SWEEP_ROWS = 1000  # deleted in one transaction, since other writers wait for it
ROW_BYTES = 768
"""Size of a row with its indexes, rounded up."""
MAX_FOUND = 100
MAX_TEXT_CHARACTERS = 300
MAX_DROPPED = 100
NULL = msgspec.Raw(b"null")

logger = LazyLogger(__name__)


class AttemptRecord(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """One attempt of a call at a channel, as `umg.v1.RequestAttempt`. A new field comes last and has a default."""

    channel: str
    model: str
    """Model id at the provider."""
    start_micros: int
    """Microseconds from the arrival of the call to the start of the attempt."""
    duration_micros: int
    status: int
    """HTTP status of the provider's answer; 0 without one."""
    request_id: str
    """Request id of the provider; "" without one."""
    reason: str
    """Name of the `ErrorReason` of the failure, without its prefix; "" unless the attempt failed."""
    kind: str = ""
    """Kind of the failure, a value of `FailureKind`; "" unless the attempt failed."""
    code: str = ""
    message: str = ""
    protocol: str = ""
    """Protocol that was used in place of the usual one of the channel, with the reason; "" for the usual one."""


class CallDetails(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """Details of a call that are returned only when its record is read by itself, not in lists. A new field comes last
    and has a default.
    """

    attempts: list[AttemptRecord]
    message: str
    """Error message for the caller; "" unless the call failed."""
    first_output_micros: int | None
    """Microseconds from the arrival of the call to the first message of its stream; None for a call without a
    stream.
    """
    dropped: list[str]
    """Paths of the fields of the request that the provider was not sent."""
    prices: list[tuple[int, int]] = []
    """Unit, and its micro-credits per million, by which the call was charged."""
    price_conditions: list[str] = []
    """Conditions of the rates that were applied to the prices."""


class UsageRecord(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """Usage record of one call, as `umg.v1.RequestRecord`. In the journal it is a JSON array of these fields.

    The order of the fields is that of the array: a new field comes last and has a default.
    """

    record_id: str
    """Unique id of the record. Request ids are not unique: callers choose them."""
    request_id: str
    key_id: str
    operation: str
    """`ModelOperation` in lower case without its prefix, for example `generate`."""
    method: str
    """Method without its package, for example `GenerationService/StreamGenerate`."""
    face: str
    model: str = ""
    channel: str = ""
    """Name of the last channel that was called; "" for none."""
    start_micros: int
    """Arrival of the call, in microseconds since 1970 in UTC."""
    duration_micros: int = 0
    status: str = "OK"
    """Name of the gRPC status with which the call ended."""
    reason: str = ""
    """`ErrorReason` without its prefix; "" unless the call failed."""
    attempts: int = 0
    cached: bool = False
    """Whether the response came from the response cache and cost nothing."""
    estimated: bool = False
    """Whether the gateway estimated the tokens, since the provider did not report them."""
    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    long_cache_write_tokens: int = 0
    audio_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    audio_output_tokens: int = 0
    searches: int = 0
    micro_credits: int = 0
    budget_period: int | None = None
    """Start of the budget period to which the cost is charged, in seconds since 1970 in UTC; None for a key without a
    budget. Not stored in the database.
    """
    budget_holder: str = ""
    """Name of the process with whose lease on the budget the call was admitted; "" for none. Not stored in the
    database.
    """
    details: CallDetails | None = None
    """None for records of earlier versions."""
    images: int = 0
    video_seconds: int = 0
    videos: int = 0
    image_input_tokens: int = 0
    image_output_tokens: int = 0

    @property
    def start_time(self) -> datetime:
        """Time at which the call arrived, in UTC."""
        return time_of(self.start_micros)


class _JournalRecord(UsageRecord, array_like=True, gc=False, kw_only=True):
    """Usage record as read from the journal. Its details are JSON text, as the database stores them."""

    details: msgspec.Raw = NULL  # type: ignore[assignment]  # a record is only moved in this form


COUNTS = (
    *("input_tokens", "cache_read_tokens", "cache_write_tokens", "long_cache_write_tokens", "audio_input_tokens"),
    *("output_tokens", "reasoning_tokens", "audio_output_tokens", "searches"),
    *("images", "video_seconds", "videos", "image_input_tokens", "image_output_tokens"),
)
"""Fields of a record that count units, for example tokens. Each token is counted in exactly one of them."""
SUMS = (*COUNTS, "micro_credits")
_ABSENT = ("budget_period", "budget_holder")  # from the database
_COLUMNS = tuple(name for name in UsageRecord.__struct_fields__ if name not in _ABSENT)
_PLACES = itemgetter(*(UsageRecord.__struct_fields__.index(name) for name in _COLUMNS))
_DETAILS = _COLUMNS.index("details")
encode_record = msgspec.json.Encoder().encode
"""Function that encodes a record for the journal and for the file of the calls in flight."""
_JOURNAL_DECODER = msgspec.json.Decoder(_JournalRecord)
_DETAILS_DECODER = msgspec.json.Decoder(CallDetails)

MINUTE, HOUR, DAY, MONTH = "minute", "hour", "day", "month"
BUCKET_MICROS: Mapping[str, int] = MappingProxyType({MINUTE: 60 * 10**6, HOUR: 3600 * 10**6, DAY: 86_400 * 10**6})
"""Microseconds of each time span of constant length, by which usage can be grouped; spans begin in UTC."""
BUCKETS = (*BUCKET_MICROS, MONTH)
DIMENSIONS: Mapping[str, InstrumentedAttribute[str]] = MappingProxyType(
    {
        "key": UsageRow.key_id,
        "model": UsageRow.model,
        "operation": UsageRow.operation,
        "channel": UsageRow.channel,
    }
)
"""Name -> column, for the columns by which usage can be grouped and selected."""

Position: TypeAlias = tuple[int, str]
"""Position of a record in the order of the arrivals: its start in microseconds, and its id."""
Group: TypeAlias = tuple[int | str, ...]
"""Key of a group of usage records: the value of each column by which they are grouped, in order; for a time span its
start in microseconds since 1970.
"""


@dataclass(frozen=True)
class CallFilter:
    """Selection of usage records by time, by columns (key, model, channel and others) and by failure; all criteria must
    match.
    """

    since: datetime
    """Earliest time of arrival of the selected calls, inclusive."""
    until: datetime | None = None
    """Latest time of arrival of the selected calls, exclusive; None for no limit."""
    only: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Column name in `DIMENSIONS` -> selected values; an empty collection selects all values."""
    failed: bool = False
    """Whether only failed calls are selected."""


@dataclass(frozen=True)
class UsageSum:
    """Totals of the usage records of one group: number of calls, number of failed calls, and sums of their counts."""

    group: Group
    requests: int
    failed: int
    sums: Mapping[str, int]
    """Name in `SUMS` -> sum, for example `input_tokens`."""


@dataclass(frozen=True)
class Swept:
    """Result of the deletion of old records."""

    deleted_early: int
    """Number of records that were deleted before the end of their time, since all together were too large."""
    begin: datetime
    """Arrival of the oldest record that this deletion kept."""


class UsageRecords:
    """Table of usage records in the database: inserts them from the journal, finds, lists, sums and deletes them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def insert(self, lines: Sequence[bytes]) -> None:
        """Insert records, each a line of the journal, and charge their costs to budgets; records already in the table
        are ignored. Lines that cannot be read are logged. Raise SQLAlchemyError if the database fails.
        """
        for start in range(0, len(lines), INSERTED_ROWS):
            records = list(_decode(lines[start : start + INSERTED_ROWS]))
            try:
                await self._insert(records)
            except (DataError, IntegrityError):  # a record that the database rejects must not block the others
                for record in records:
                    try:
                        await self._insert([record])
                    except (DataError, IntegrityError) as error:
                        reason = reason_of(error)
                        logger.error("the database refuses a usage record", id=record.record_id, reason=reason)

    @repeated
    async def find(self, request_id: str) -> list[UsageRecord]:
        """Return the records with a request id, oldest first, but only the newest `MAX_FOUND`; empty if there
        are none.
        """
        table = UsageRow
        columns = [getattr(table, name) for name in _COLUMNS]
        query = select(*columns).where(table.request_id == request_id).order_by(table.start_micros.desc())
        async with self._store.read() as session:
            found = await session.execute(query.limit(MAX_FOUND))
            return [_record_of(row) for row in reversed(found.mappings().all())]

    @repeated
    async def page(self, calls: CallFilter, after: Position | None, size: int) -> list[UsageRecord]:
        """Return up to `size` selected records, newest first. `after`: last record of the previous page; None for the
        first page.
        """
        table = UsageRow
        columns = [getattr(table, name) for name in _COLUMNS]
        query = select(*columns).where(*_conditions(calls))
        if after is not None:
            query = query.where(tuple_(table.start_micros, table.record_id) < tuple_(*after))
        query = query.order_by(table.start_micros.desc(), table.record_id.desc()).limit(size)
        async with self._store.read() as session:
            return [_record_of(row) for row in (await session.execute(query)).mappings()]

    @repeated
    async def sums(
        self, by: Sequence[str], calls: CallFilter, *, after: Group = (), limit: int | None = None
    ) -> list[UsageSum]:
        """Return the totals of the selected calls by group, in the order of the groups' keys.

        `by`: columns to group by, names of `DIMENSIONS` and at most one time span of `BUCKETS`. `after`: last group of
        the previous page; empty for the first page. `limit`: maximum number of groups; None for all.
        """
        table = UsageRow
        failed = func.sum(case((table.status == "OK", 0), else_=1))
        async with self._store.read() as session:
            dialect = (await session.connection()).dialect.name
            groups = [DIMENSIONS[name] if name in DIMENSIONS else _bucket_start(name, dialect) for name in by]
            select_sums = select(*groups, func.count(), failed, *(func.sum(getattr(table, name)) for name in SUMS))
            selected = select_sums.where(*_conditions(calls))
            if after:
                selected = selected.where(tuple_(*groups) > tuple_(*after))
            rows = (await session.execute(selected.group_by(*groups).order_by(*groups).limit(limit))).all()
        return [_sum_of(row, len(by)) for row in rows if row[len(by)]]

    async def sweep(self, ttl: int, max_bytes: int | None) -> Swept:
        """Delete the records of calls that arrived more than `ttl` seconds ago, and the oldest records above a total
        size of `max_bytes` (None for no limit).
        """
        table, clock = UsageRow, self._store.clock
        newest = select(table.start_micros).order_by(table.start_micros.desc())
        async with self._store.read() as session:
            expired = await session.scalar(select(clock.sql_micros() - ttl * 10**6)) or 0
            oldest_to_keep = 0
            if max_bytes is not None:
                oldest_to_keep = await session.scalar(newest.offset(max(max_bytes // ROW_BYTES, 1) - 1).limit(1)) or 0
        await self._delete(table.start_micros < expired)
        deleted_early = await self._delete(table.start_micros < oldest_to_keep)
        return Swept(deleted_early, time_of(oldest_to_keep))

    async def _delete(self, condition: ColumnElement[bool]) -> int:
        """Delete the records that match the condition, in several transactions. Return their number."""
        matching, number = select(UsageRow.record_id).where(condition).limit(SWEEP_ROWS), 0
        while True:
            async with self._store.write() as session:
                ids = (await session.scalars(matching)).all()
                await session.execute(delete(UsageRow).where(UsageRow.record_id.in_(ids)))
            number += len(ids)
            if len(ids) < SWEEP_ROWS:
                return number

    async def _insert(self, records: Sequence[_JournalRecord]) -> None:
        if not records:
            return
        charged = [record for record in records if record.budget_period is not None and record.micro_credits]
        async with self._store.write() as session:
            if charged:
                await _settle(session, charged)
            connection = await session.connection()
            values = tuple(chain.from_iterable(map(_row_of, records)))
            await connection.exec_driver_sql(_insert_statement(connection.dialect.name, len(records)), values)


async def insert_record(session: AsyncSession, record: UsageRecord) -> None:
    """Insert one record in the transaction of the caller, which has charged its cost already."""
    connection = await session.connection()
    stored = _JOURNAL_DECODER.decode(msgspec.json.encode(record))
    await connection.exec_driver_sql(_insert_statement(connection.dialect.name, 1), _row_of(stored))


async def _settle(session: AsyncSession, records: Sequence[UsageRecord]) -> None:
    """Charge the costs of records to budgets, except of records that are in the database already: a journal may repeat
    them.

    Of two records with one id only the first is charged: the second is the provisional record of a process that was
    killed before it deleted it.
    """
    charges = {record.record_id: record for record in reversed(records)}
    accounts = [(record.key_id, record.budget_period or 0) for record in records]
    await lock_accounts(session, accounts)
    known = await session.scalars(select(UsageRow.record_id).where(UsageRow.record_id.in_(charges)))
    for record_id in known:
        del charges[record_id]
    leases = [
        Charge(LeaseId(record.key_id, record.budget_period or 0, record.budget_holder), record.micro_credits)
        for record in charges.values()
    ]
    await settle(session, leases)


def _row_of(record: "_JournalRecord") -> tuple[object, ...]:
    """Return the values of a record in the order of the table's columns."""
    values = list(_PLACES(msgspec.structs.astuple(record)))
    values[_DETAILS] = None if record.details == NULL else str(record.details, "utf-8")
    return tuple(values)


def _record_of(row: RowMapping) -> UsageRecord:
    values = {name: row[name] for name in _COLUMNS}
    details = values["details"]
    values["details"] = None if details is None else _DETAILS_DECODER.decode(details)
    return UsageRecord(**values)


def storable(text: str) -> str:
    """Return a text as it can be stored in a database column: cut to 300 characters, and with characters that UTF-8
    cannot encode replaced.
    """
    return text[:MAX_TEXT_CHARACTERS].encode(errors="replace").decode()


def micros_of(time: datetime) -> int:
    """Return a time as microseconds since 1970 in UTC."""
    return (time - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def _conditions(calls: CallFilter) -> list[ColumnElement[bool]]:
    table = UsageRow
    found = [table.start_micros >= micros_of(calls.since)]
    if calls.until is not None:
        found.append(table.start_micros < micros_of(calls.until))
    if calls.failed:
        found.append(table.status != "OK")
    return found + [DIMENSIONS[name].in_(values) for name, values in calls.only.items() if values]


def _bucket_start(bucket: str, dialect: str) -> ColumnElement[int]:
    """Return the SQL expression for the start of the time span to which a call belongs, in microseconds since 1970.
    `bucket`: name of the time span, one of `BUCKETS`. `dialect`: `sqlite` or `postgresql`.

    Its numbers are literals: PostgreSQL does not recognize an expression with parameters as the one in GROUP BY.
    """
    if bucket in BUCKET_MICROS:
        return literal_column(f"start_micros - start_micros % {BUCKET_MICROS[bucket]}", BigInteger)
    return literal_column(_MONTH_START[dialect == SQLITE], BigInteger)


_MONTH_START = (
    "CAST(extract(epoch FROM date_trunc('month', to_timestamp(start_micros / 1000000) AT TIME ZONE 'UTC')) AS BIGINT)"
    " * 1000000",
    "CAST(strftime('%s', start_micros / 1000000, 'unixepoch', 'start of month') AS INTEGER) * 1000000",
)
"""SQL expressions for the start of the month in which a call arrived: for PostgreSQL and for SQLite."""


def time_of(micros: int) -> datetime:
    """Return microseconds since 1970 as a time in UTC."""
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)


def _sum_of(row: Sequence[Any], dimensions: int) -> UsageSum:
    requests, failed, *sums = map(int, row[dimensions:])
    return UsageSum(tuple(row[:dimensions]), requests, failed, dict(zip(SUMS, sums, strict=True)))


def _decode(lines: Iterable[bytes]) -> Iterable[_JournalRecord]:
    for line in lines:
        try:
            yield _JOURNAL_DECODER.decode(line)
        except msgspec.DecodeError as error:
            logger.error("a usage record of the journal cannot be read", reason=str(error), bytes=len(line))


def _insert_statement(dialect: str, rows: int) -> str:
    """Return one INSERT statement for `rows` rows: for each statement SQLite's driver takes Python's global lock.

    It uses the driver's placeholders, because SQLAlchemy would convert the parameters of each row.
    """
    row = "(" + ", ".join(["?" if dialect == SQLITE else "%s"] * len(_COLUMNS)) + ")"
    names, values = ", ".join(_COLUMNS), ", ".join([row] * rows)
    return f"INSERT INTO {UsageRow.__tablename__} ({names}) VALUES {values} ON CONFLICT (record_id) DO NOTHING"  # noqa: S608  names of our own
