"""Usage records in the database: one for each admitted call, with its key, model, attempts, tokens and cost."""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain
from operator import itemgetter
from types import GenericAlias
from typing import Annotated, Any, TypeAlias, get_type_hints

import msgspec
from sqlalchemy import ColumnElement, FromClause, RowMapping, Table, select, tuple_
from sqlalchemy.exc import DataError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.base.lazy_logger import LazyLogger
from umg_grpc.base.time_units import time_of
from umg_grpc.store.budget_accounts import Charge, LeaseId, lock_accounts, settle
from umg_grpc.store.call_counts import CountedCall, count_upserts
from umg_grpc.store.database import Store, repeated
from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.store.end_user_usage import EndUserCall, end_user_upserts
from umg_grpc.store.insert_statements import in_one_statement, rows_of
from umg_grpc.store.key_selection import EVERY_KEY, KeySelection, with_known_keys
from umg_grpc.store.repeated_background_tasks import reason_of
from umg_grpc.store.row_upserts import batches
from umg_grpc.store.sqlite_connection import run_in_thread
from umg_grpc.store.table_definitions import Base
from umg_grpc.store.usage_partitions import create_partitions, day_of
from umg_grpc.store.usage_parts import CallFilter, Group
from umg_grpc.store.usage_record_pages import Position, positions_of_page
from umg_grpc.store.usage_sum_queries import (
    FOREVER_MICROS,
    HAS_EARLIER_RECORDS,
    UsageBegin,
    UsageSum,
    begin_of_usage,
    conditions_of,
    read_sums,
    spans_of_records,
    tables_of_records,
)
from umg_grpc.store.usage_tables import OF_KEY_AND_AGENT, SUM_COLUMNS, EarlierUsageRow, UsageRow
from umg_grpc.store.usage_totals import MINUTE_MICROS, Amounts, CallGroup, upserts_of

INSERTED_ROWS = 500  # in one transaction
STATEMENT_ROWS = 50  # inserted by one SQLite statement, since each one releases the GIL and waits to get it back
MAX_FOUND = 100
MAX_TEXT_CHARACTERS = 300
MAX_DROPPED = 100
JSON_NULL = msgspec.Raw(b"null")
END_USER_COLUMNS = (
    *("start_micros", "end_user", "key_id", "status"),
    *("input_tokens", "cache_read_tokens", "cache_write_tokens", "long_cache_write_tokens", "audio_input_tokens"),
    *("image_input_tokens", "output_tokens", "reasoning_tokens", "audio_output_tokens", "micro_credits"),
)
"""Columns from which the totals of end users are made: in them, each token is counted once."""

logger = LazyLogger(__name__)


class AttemptRecord(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """Attempt of a call at a channel, as `umg.v1.RequestAttempt`. New fields are added at the end, with a default."""

    channel: str
    model: str
    """Model id at the provider."""
    start_micros: int
    """Microseconds from the arrival of the call to the start of the attempt."""
    duration_micros: int
    status: int
    """HTTP status of the provider's response; 0 without one."""
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
    """Details of a call, returned only with its record alone. New fields are added at the end, with a default."""

    attempts: list[AttemptRecord]
    message: str
    first_output_micros: int | None
    """Microseconds from the call's arrival to the first message of its stream; None for a call without a stream."""
    dropped: list[str]
    """Paths of the fields of the request that the provider was not sent."""
    prices: list[tuple[int, int]] = []
    """Unit, and its micro-credits per million, by which the call was charged."""
    price_conditions: list[str] = []
    """Conditions of the rates that were applied to the prices."""
    requested_model: str = ""
    """Model that the caller requested, if a fallback was called in its place; else ""."""
    fallback_cause: str = ""
    """Cause of the fallback, a key of the config; "" without one."""
    guards: list[str] = []
    """Decisions of the guards, like `request:secrets=masked`."""
    guard_notes: dict[str, str] = {}
    task_id: str = ""
    """Id of the task that the call submitted; "" for any other call."""


class UsageRecord(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """Usage record of one call, as `umg.v1.RequestRecord`. The journal stores it as a JSON array of these fields in
    this order, so that new fields are added at the end, with a default.
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
    """Name of the last channel that was called; "" if there is none."""
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
    """Start of the period of the key's own budget to which the cost is charged, in seconds since 1970 in UTC; None for
    a key without a budget of its own. Not stored in the database.
    """
    budget_holder: str = ""
    """Process with whose lease on the budget the call was admitted; "" if there is none. Not stored in the database."""
    details: CallDetails | None = None
    """None for records of earlier versions."""
    images: int = 0
    video_seconds: int = 0
    videos: int = 0
    image_input_tokens: int = 0
    image_output_tokens: int = 0
    agent: str = ""
    """Program that made the call, a name of the table of agents; "" for an unknown one."""
    characters: int = 0
    audio_seconds: int = 0
    budgets: list[tuple[str, int]] = []
    """Further budgets to which the cost is charged: account, and start of its period. Not stored in the database."""
    end_user: str = ""
    """Id of the end user that the caller sent, without the session that some programs add; "" for none."""
    failure_kind: str = ""
    """Kind of the last failure of a channel, a value of `FailureKind`; "" unless the call failed by it."""
    first_byte_micros: int | None = None
    """Microseconds from the call's arrival to the first message of its stream; None for a call without a stream."""

    @property
    def start_time(self) -> datetime:
        """Time at which the call arrived, in UTC."""
        return time_of(self.start_micros)


class _JournalRecord(UsageRecord, array_like=True, gc=False, kw_only=True):
    """Usage record as read from the journal. Its details are JSON text, as in the database."""

    start_micros: Annotated[int, msgspec.Meta(ge=0, lt=FOREVER_MICROS)]
    details: msgspec.Raw = JSON_NULL  # type: ignore[assignment]  # a record is only moved in this form


_FIELDS = UsageRecord.__struct_fields__
_ABSENT = ("budget_period", "budget_holder", "budgets")  # from the database
RECORD_COLUMNS = tuple(name for name in _FIELDS if name not in _ABSENT)
_ID, _START, _STATUS = (RECORD_COLUMNS.index(name) for name in ("record_id", "start_micros", "status"))
_GROUP_PLACES = itemgetter(*(RECORD_COLUMNS.index(name) for name in OF_KEY_AND_AGENT))
_END_USER_PLACES = itemgetter(*(RECORD_COLUMNS.index(name) for name in END_USER_COLUMNS))
_SUM_PLACES = itemgetter(*(RECORD_COLUMNS.index(name) for name in (*SUM_COLUMNS, "cached")))
_COUNT_PLACES = itemgetter(*(RECORD_COLUMNS.index(name) for name in CountedCall._fields))
_KEY, _COST, _PERIOD, _HOLDER, _BUDGETS, _DETAILS = (
    _FIELDS.index(name) for name in ("key_id", "micro_credits", *_ABSENT, "details")
)
_TABLE: Table = Base.metadata.tables[UsageRow.__tablename__]
encode_record = msgspec.json.Encoder().encode
"""Function that encodes a record for the journal and for the file of the calls in flight."""
_JOURNAL_DECODER = msgspec.json.Decoder(_JournalRecord)
_types = get_type_hints(_JournalRecord, include_extras=True)
_BATCH_DECODER = msgspec.json.Decoder(GenericAlias(list, (GenericAlias(tuple, tuple(map(_types.get, _FIELDS))),)))
decode_details = msgspec.json.Decoder(CallDetails).decode
"""Function that decodes details as the database stores them."""

Values: TypeAlias = tuple[Any, ...]
"""Values of a record in the order of the fields of `UsageRecord`; its details are `msgspec.Raw`."""
Row: TypeAlias = tuple[Any, ...]
"""Values of a record in the order of `RECORD_COLUMNS`; its details are text."""


_EARLIER_RECORD = f"SELECT 1 FROM {EarlierUsageRow.__tablename__} WHERE record_id = ?"  # noqa: S608  our own name
_INSERT_ONE, _INSERT_MANY = (
    f"{rows_of(SQLITE_KIND, _TABLE, RECORD_COLUMNS, [RECORD_COLUMNS] * count)[0]} ON CONFLICT DO NOTHING"
    for count in (1, STATEMENT_ROWS)
)


class UsageRecords:
    """Table of usage records in the database: inserts them from the journal, finds, lists, sums and deletes them."""

    def __init__(
        self, store: Store, note_wanted: Callable[[Mapping[tuple[str, int], int]], None] | None = None
    ) -> None:
        """Use a database. `note_wanted`: called with the result of `settle` for each batch with costs."""
        self._store = store
        self._note_wanted = note_wanted

    async def insert(self, lines: Sequence[bytes]) -> None:
        """Insert records, each a line of the journal, and charge their costs to budgets; records already in the table
        are ignored. Lines that cannot be read are logged. Raise SQLAlchemyError if the database fails.
        """
        for start in range(0, len(lines), INSERTED_ROWS):
            records = _decode(lines[start : start + INSERTED_ROWS])
            try:
                await self._insert(records)
            except (DataError, IntegrityError):  # a record that the database rejects must not block the others
                for record in records:
                    try:
                        await self._insert([record])
                    except (DataError, IntegrityError) as error:
                        reason = reason_of(error)
                        logger.error("the database refuses a usage record", id=record[_ID], reason=reason)

    @repeated
    async def find(self, request_id: str, keys: KeySelection = EVERY_KEY) -> list[UsageRecord]:
        """Return the records of calls of `keys` with a request id, oldest first, at most the newest `MAX_FOUND`; empty
        for none.
        """
        async with self._store.read() as session:
            spans = await spans_of_records(session)
        found = list[UsageRecord]()
        for since, until in spans:
            async with self._store.snapshot() as session:
                for table in await tables_of_records(session):
                    start = table.c.start_micros
                    query = select(*_columns_of(table)).where(table.c.request_id == request_id)
                    if not keys.is_everything:
                        query = query.where(keys.selects(table.c.key_id))
                    query = query.where(start >= since, start < until).order_by(start.desc()).limit(MAX_FOUND)
                    found += [_record_of(row) for row in (await session.execute(query)).mappings()]
            if len(found) >= MAX_FOUND:
                break
        return sorted(found, key=_position_of)[-MAX_FOUND:]

    @repeated
    async def page(self, calls: CallFilter, after: Position | None, size: int) -> list[UsageRecord]:
        """Return up to `size` selected records, newest first. `after`: last record of the previous page, or None."""
        async with self._store.snapshot() as session:
            _, *earlier = await tables_of_records(session)
            calls = replace(calls, keys=await with_known_keys(session, calls.keys))
            positions = await positions_of_page(session, calls, after, size)
            found = await _at(session, positions)
            for table in earlier:
                record_id: ColumnElement[str] = table.c.record_id
                if (await session.connection()).dialect.name != SQLITE_KIND:
                    record_id = record_id.collate("C")  # the earlier table has the order of the database's language
                query = select(*_columns_of(table)).where(*conditions_of(calls, table))
                if after is not None:
                    query = query.where(tuple_(table.c.start_micros, record_id) < tuple_(*after))
                query = query.order_by(table.c.start_micros.desc(), record_id.desc()).limit(size)
                found += [_record_of(row) for row in (await session.execute(query)).mappings()]
        return sorted(found, key=_position_of, reverse=True)[:size]

    @repeated
    async def sums(
        self, by: Sequence[str], calls: CallFilter, *, after: Group = (), limit: int | None = None
    ) -> list[UsageSum]:
        """Return the totals of the selected calls by group, in the order of the groups' keys. `by`: names of
        `ALL_DIMENSIONS` and at most one time span of `SUM_BUCKETS`. `after`: last group of the previous page, or
        empty.
        """
        async with self._store.snapshot() as session:
            calls = replace(calls, keys=await with_known_keys(session, calls.keys))
            return await read_sums(session, by, calls, self._store.clock, after=after, limit=limit)

    @repeated
    async def begin(self) -> UsageBegin:
        """Return the times at which the stored usage begins."""
        async with self._store.snapshot() as session:
            return await begin_of_usage(session)

    async def _insert(self, records: Sequence[Values]) -> None:
        # Of two records with one id the second is the provisional one, which a killed process did not delete.
        first = {record[_ID]: record for record in reversed(records)}
        if not first:
            return
        charged = {
            record[_ID]: accounts for record in first.values() if record[_COST] and (accounts := _accounts(record))
        }
        async with self._store.write() as session:
            if charged:
                await lock_accounts(session, chain.from_iterable(charged.values()))
            inserted = await insert_rows(session, [_row_of(record) for record in first.values()])
            if not charged:
                return
            ids = {row[_ID] for row in inserted}
            costs = Counter[tuple[str, int, str]]()
            for record_id, accounts in charged.items():
                if record_id in ids:
                    record = first[record_id]
                    for account in accounts:
                        costs[*account, record[_HOLDER]] += record[_COST]
            if costs:
                wanted = await settle(session, [Charge(LeaseId(*lease), cost) for lease, cost in costs.items()])
                if self._note_wanted is not None:
                    self._note_wanted(wanted)


async def insert_record(session: AsyncSession, record: UsageRecord) -> None:
    """Insert one record in the caller's transaction, in which its cost is already charged."""
    await insert_rows(session, [_row_of(values) for values in _decode([encode_record(record)])])


async def insert_rows(session: AsyncSession, rows: list[Row]) -> list[Row]:
    """Insert rows with different ids, and add them to the totals. Rows that the database already has are ignored, since
    a journal may repeat records. Return the inserted rows.
    """
    connection = await session.connection()
    dialect = connection.dialect.name
    rows.sort(key=itemgetter(_START, _ID))  # one order, so that two transactions cannot wait for each other
    if dialect == SQLITE_KIND:
        return await run_in_thread(connection, partial(_insert_in_sqlite, rows))
    await create_partitions(session, {day_of(row[_START]) for row in rows})
    if len(await tables_of_records(session)) > 1:
        earlier = select(EarlierUsageRow.record_id).where(EarlierUsageRow.record_id.in_([row[_ID] for row in rows]))
        known = {*await session.scalars(earlier)}
        rows = [row for row in rows if row[_ID] not in known]
    insert, parameters = rows_of(dialect, _TABLE, RECORD_COLUMNS, rows)
    statement = f"{insert} ON CONFLICT DO NOTHING RETURNING record_id"
    inserted = {*(await connection.exec_driver_sql(statement, parameters)).scalars()}
    rows = [row for row in rows if row[_ID] in inserted]
    if rows:
        await connection.exec_driver_sql(*in_one_statement([*_totals_of(dialect, rows)]))
    return rows


def _insert_in_sqlite(rows: Sequence[Row], connection: sqlite3.Connection) -> list[Row]:
    """Insert the rows that an SQLite database does not have yet, and add them to the totals. Return these rows."""
    if connection.execute(HAS_EARLIER_RECORDS).fetchone() == (1,):
        rows = [row for row in rows if not connection.execute(_EARLIER_RECORD, (row[_ID],)).fetchone()]
    connection.execute("SAVEPOINT new_records")
    whole = len(rows) - len(rows) % STATEMENT_ROWS
    inserted = sum(
        connection.execute(_INSERT_MANY, tuple(chain.from_iterable(part))).rowcount
        for part in batches(rows[:whole], STATEMENT_ROWS)
    )
    if rows[whole:]:
        inserted += connection.executemany(_INSERT_ONE, rows[whole:]).rowcount
    if inserted < len(rows):  # a process has ended between the insertion of a batch and its deletion from the journal
        connection.execute("ROLLBACK TO new_records")
        rows = [row for row in rows if connection.execute(_INSERT_ONE, row).rowcount]
    connection.execute("RELEASE new_records")
    for statement, parameters in _totals_of(SQLITE_KIND, rows):
        connection.execute(statement, parameters)
    return [*rows]


def _totals_of(dialect: str, rows: Sequence[Row]) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield the statements that add rows to all totals."""
    yield from upserts_of(dialect, _sums_of(rows))
    yield from end_user_upserts(dialect, _calls_of_end_users(rows))
    yield from count_upserts(dialect, [CountedCall(*_COUNT_PLACES(row)) for row in rows])


def _calls_of_end_users(rows: Iterable[Row]) -> Iterable[EndUserCall]:
    for row in rows:
        start, end_user, key_id, status, *amounts = _END_USER_PLACES(row)
        if end_user:
            *inputs, output, reasoning, audio, micro_credits = amounts
            yield EndUserCall(
                start,
                end_user,
                key_id,
                (1, int(status != "OK"), sum(inputs), output + reasoning + audio, micro_credits),
            )


def _sums_of(rows: Iterable[Row]) -> Iterable[tuple[CallGroup, Amounts]]:
    """Yield the sums of rows by minute and by the columns `OF_KEY_AND_AGENT`."""
    groups = defaultdict[CallGroup, list[Row]](list)
    for row in rows:
        groups[(row[_START] - row[_START] % MINUTE_MICROS, *_GROUP_PLACES(row))].append(row)
    for group, calls in groups.items():
        sums = map(sum, zip(*map(_SUM_PLACES, calls), strict=True))
        yield group, (len(calls), sum(call[_STATUS] != "OK" for call in calls), *sums)


def _row_of(record: Values) -> Row:
    details = record[_DETAILS]
    text = None if details == JSON_NULL else str(details, "utf-8")
    # the fields between them, and that of budgets, are absent from the database
    return (*record[:_PERIOD], text, *record[_DETAILS + 1 : _BUDGETS], *record[_BUDGETS + 1 :])


def _accounts(record: Values) -> list[tuple[str, int]]:
    """Return the accounts of budgets to which the cost of a record is charged."""
    own = [] if record[_PERIOD] is None else [(record[_KEY], record[_PERIOD])]
    return [*own, *record[_BUDGETS]]


def _record_of(row: RowMapping) -> UsageRecord:
    values = {name: row[name] for name in RECORD_COLUMNS}
    details = values["details"]
    values["details"] = None if details is None else decode_details(details)
    return UsageRecord(**values)


async def _at(session: AsyncSession, positions: Sequence[Position]) -> list[UsageRecord]:
    """Return the records of the current table at positions, in any order."""
    if not positions:
        return []
    known, table = {*positions}, UsageRow.__table__
    starts, ids = zip(*positions, strict=True)
    query = select(*_columns_of(table)).where(table.c.start_micros.in_(starts), table.c.record_id.in_(ids))
    found = map(_record_of, (await session.execute(query)).mappings())
    return [record for record in found if _position_of(record) in known]


def _columns_of(table: FromClause) -> list[ColumnElement[Any]]:
    return [table.c[name] for name in RECORD_COLUMNS]


def _position_of(record: UsageRecord) -> Position:
    return record.start_micros, record.record_id


def storable(text: str) -> str:
    """Return a text for a database column: cut to 300 characters, without characters that UTF-8 cannot encode."""
    return text[:MAX_TEXT_CHARACTERS].encode(errors="replace").decode()


def _decode(lines: Sequence[bytes]) -> list[Values]:
    """Return the values of records of the journal. Lines that cannot be read are logged, and left out."""
    with suppress(msgspec.DecodeError):  # earlier versions wrote fewer fields
        found: list[Values] = _BATCH_DECODER.decode(b"[%b]" % b",".join(lines))
        return found
    return list(_decode_each(lines))


def _decode_each(lines: Iterable[bytes]) -> Iterable[Values]:
    for line in lines:
        try:
            yield msgspec.structs.astuple(_JOURNAL_DECODER.decode(line))
        except msgspec.DecodeError as error:
            logger.error("a usage record of the journal cannot be read", reason=str(error), bytes=len(line))
