"""Usage log: one record of each call, written to a local file at once, and to the database in the background.

A record passes through three places, each of which stores it until the next one has it: a memory-mapped file of the
calls in flight; a journal file, to which several records are appended by one system call; and the database. If the
journal refuses records, for example since the disk is full, they stay in memory until the database or the journal has
them.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.access.budget_reservations import Budgets
from umg_grpc.access.refused_call_log import RefusedCallLog
from umg_grpc.base.lazy_logger import LazyLogger
from umg_grpc.config.config_values import UsageRetention
from umg_grpc.store import Store
from umg_grpc.store.budget_accounts import BudgetAccounts
from umg_grpc.store.in_flight_record_file import NO_SLOT, OpenRecords, forget, records_of
from umg_grpc.store.process_locks import USAGE_DIRECTORY, ProcessLocks
from umg_grpc.store.repeated_background_tasks import Background
from umg_grpc.store.usage_record_migration import EarlierUsageRecords
from umg_grpc.store.usage_record_table import UsageRecord, UsageRecords, encode_record
from umg_grpc.store.usage_sweep import sweep_usage
from umg_grpc.store.write_ahead_journal import DISK_FAILED, Journal

WRITE_SECONDS = 0.8
"""Time after which the database has a record, unless a write takes longer than the one before; then up to the second
that docs/chaos.md states for a machine which is lost with its data folder.
"""
SWEEP_SECONDS = 600.0
MOVE_SECONDS = 0.25  # between two pieces of the records of earlier versions
SEARCH_SECONDS = 60.0  # between two searches for them, since during a rolling upgrade an earlier version writes some
CLOSE_SECONDS = 5.0
JOURNAL_RECORDS = 64  # appended to the journal by one system call
WRITTEN_RECORDS = 500  # of those in memory, to the journal or the database at a time
MEMORY_BYTES = 64 * 2**20
"""Maximum size of the records that neither the journal nor the database has taken; further ones are lost."""
SILENT_SECONDS = 5.0
"""Duration of a write after which the database counts as one that takes no records."""
RETURN_SECONDS = 5.0  # between two searches for leases of processes that have ended

logger = LazyLogger(__name__)


class UsageLog:
    """Writer of the usage records of a process, from `start` to `aclose`.

    As soon as `add` returns, the record survives the end of this process. `add` waits for neither the database nor the
    disk. Records that did not reach the database, also those of a killed process, are written later by any process with
    the same data directory.
    """

    def __init__(
        self,
        store: Store,
        data: Path,
        retention: UsageRetention,
        now: Callable[[], datetime],
        count_lost: Callable[[int, str], None] = lambda _count, _reason: None,
        count_deleted_early: Callable[[int], None] = lambda _count: None,
        sweep_seconds: float = SWEEP_SECONDS,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        """Open the journal file. Raise OSError if its directory cannot be written. `count_lost`: called with the number
        of lost records and the reason why the journal refused them. `count_deleted_early`: called with the number of
        records that were deleted before their time, since all together were too large. `memory_bytes`: maximum size of
        the records that neither the journal nor the database takes.
        """
        self._prefix = secrets.token_hex(8)
        try:
            self._processes = ProcessLocks(data / USAGE_DIRECTORY, self._prefix)
            self._journal = Journal(data / USAGE_DIRECTORY, owner=f"{self._prefix}-")
            self.open_records = OpenRecords(data / USAGE_DIRECTORY, self._prefix)
            """Records of the calls in flight, which are charged if this process is killed before `add`."""
        except OSError as error:
            remedy = "let the gateway write there, select another folder by --data, or set `usage: {enabled: false}`"
            raise OSError(
                f"cannot write usage records to {data / USAGE_DIRECTORY}: {error.strerror or error}; {remedy}"
            ) from None
        self._directory = data / USAGE_DIRECTORY
        self._store = store
        self._retention = retention
        self._count_deleted_early = count_deleted_early
        self._sweep_seconds = sweep_seconds
        accounts = BudgetAccounts(store)
        self.budgets = Budgets(accounts, self._prefix, self._processes.directory_id, store.clock, time.monotonic)
        """Budgets of the keys, which the records are charged to."""
        self._records = UsageRecords(store, self.budgets.note_wanted)
        self._return_at = 0.0
        self._now = now
        self.clock = store.clock
        """Clock of the database, for the times of the records."""
        self.new_ids = map(f"{self._prefix}-{{:012x}}".format, count())
        """Ids for records, unique among all processes, in ascending order."""
        self.refused = RefusedCallLog(store, self.new_ids)
        """Log of the calls that are refused before their admission, which have no usage."""
        self._completed = list[tuple[bytes, int]]()  # records that are not in the journal yet, with their slots
        self._writing = list[tuple[bytes, int]]()  # that are being inserted without the journal
        self._memory_bytes = 0
        self._max_memory_bytes = memory_bytes
        self._count_lost = count_lost
        self._lost = 0
        self._late_since: float | None = None
        """Time at which the write to the database began that runs or has failed; None after a success."""
        self._failed = False
        """Whether the last write to the database failed."""
        self._writer: Background | None = None
        self._sweeper: Background | None = None
        self._earlier = EarlierUsageRecords(store)
        self._mover: Background | None = None

    def start(self) -> None:
        """Start to write the records to the database in the background, first those of processes that have ended."""
        self._writer = Background(
            "writing usage records", self._write, every=WRITE_SECONDS, with_steps=True, at_end=True
        )
        self._sweeper = Background("sweeping usage records", self._sweep, every=self._sweep_seconds)
        self._mover = Background("moving usage records of earlier versions", self._move, every=MOVE_SECONDS)
        self._writer.wake()
        self.refused.start()
        self.budgets.start()

    async def aclose(self) -> None:
        """Write the records to the database within a bounded time, and stop; the next start writes the rest."""
        backgrounds = self._mover, self._sweeper, self._writer
        self._mover = self._sweeper = self._writer = None
        for background in backgrounds:
            if background is not None:
                await background.aclose(CLOSE_SECONDS)
        await self.refused.aclose(CLOSE_SECONDS)
        await self.budgets.aclose(CLOSE_SECONDS)
        while self._append_completed():
            pass
        self._journal.close()
        if missing := sum(slot == NO_SLOT for _, slot in self._completed):  # the others are in the file of open calls
            self._lose(missing)
        complete = self.open_records.close() and not self._journal.has_segments_of(self._prefix)
        with suppress(SQLAlchemyError, OSError, TimeoutError):
            if complete and not self._completed:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self.budgets.return_own()
        self._processes.close(delete=complete)

    @property
    def waiting_writes(self) -> int:
        """Number of records that should be in the database by now; 0 unless a write runs or the last one failed."""
        if self._late_since is None:
            return 0
        return len(self._completed) + len(self._writing) + self._journal.waiting_records

    @property
    def problem(self) -> str:
        """Reason why the journal cannot take records, or soon will not be able to; "" if there is none."""
        return self._journal.problem

    @property
    def can_charge(self) -> bool:
        """Whether the journal or the database takes another record: its cost is then charged even after a kill."""
        if not self._journal.refusal:
            return True
        is_silent = self._late_since is not None and time.monotonic() - self._late_since > SILENT_SECONDS
        return not (self._failed or is_silent)

    def add(self, record: UsageRecord, slot: int) -> None:
        """Store the record of a completed call, and charge its cost to its key's budget. `slot`: place of the call in
        the file of calls in flight, where the provisional record is replaced.
        """
        encoded = encode_record(record)
        if self._memory_bytes + len(encoded) > self._max_memory_bytes:
            self.open_records.delete(slot)
            self._lose(1)
            return
        completed = self.open_records.add(encoded, slot)
        self._completed.append((encoded, slot if completed == NO_SLOT else completed))
        self._memory_bytes += len(encoded)
        if not self._journal.refusal and (completed == NO_SLOT or len(self._completed) >= JOURNAL_RECORDS):
            self._append_completed()

    def _append_completed(self) -> bool:
        """Append the oldest completed records to the journal by one system call, and free their places in the file of
        calls in flight. Records that the journal refuses stay in memory. Return whether there are more to append.
        """
        if not (records := self._completed[:WRITTEN_RECORDS]):
            return False
        stored = self._journal.append(*(record for record, _ in records))
        del self._completed[:stored]
        self._release(records[:stored])
        return stored == len(records) and bool(self._completed)

    async def _insert_completed(self) -> None:
        """Insert the records that the journal refused into the database. Raise SQLAlchemyError."""
        while self._completed:
            self._writing, self._completed = self._completed[:WRITTEN_RECORDS], self._completed[WRITTEN_RECORDS:]
            try:
                await self._records.insert([record for record, _ in self._writing])
            except BaseException:
                self._completed = self._writing + self._completed
                raise
            else:
                self._release(self._writing)
            finally:
                self._writing = []

    async def _insert(self, records: Sequence[bytes]) -> None:
        await self._records.insert(records)
        self._late_since, self._failed = time.monotonic(), False
        if self._journal.refusal:
            await self._insert_completed()

    def _release(self, records: Sequence[tuple[bytes, int]]) -> None:
        for record, slot in records:
            self._memory_bytes -= len(record)
            self.open_records.delete(slot)

    def _lose(self, count: int) -> None:
        if not self._lost:
            logger.error("usage records are lost: neither the journal nor the database takes them")
        self._lost += count
        self._count_lost(count, self._journal.refusal or DISK_FAILED)

    async def _write(self) -> None:
        if self._late_since is None:
            self._late_since = time.monotonic()
        try:
            await self._write_all()
        except BaseException:
            self._failed = True
            raise
        self._late_since, self._failed = None, False
        if self._lost:
            logger.warning("usage records are not lost any more", lost=self._lost)
            self._lost = 0

    async def _write_all(self) -> None:
        """Write the records in memory to the journal or database, then those of the journal; return leases."""
        self._journal.check()
        while self._append_completed():  # noqa: ASYNC110  it appends, and waits for nothing
            await asyncio.sleep(0)  # many may wait after an outage, and calls must not wait for all of them
        if self._journal.refusal:  # else records of calls that end meanwhile would be inserted a few at a time
            await self._insert_completed()
        holders, ended = set[str](), set[str]()
        if returns := time.monotonic() >= self._return_at:
            holders = await self.budgets.holders()
            ended = {name for name in holders | self._processes.names() if self._processes.has_ended(name)}
        await self._journal.drain(self._insert)  # with all records of the processes that have ended
        self._journal.check()
        if returns:
            complete = {holder for holder in ended if not self._journal.has_segments_of(holder)}
            for holder in complete:  # only then: the journal has the actual cost of a call that ended just before
                await self._records.insert(records_of(self._directory, holder))
            await self.budgets.return_all(complete & holders)
            for holder in complete:
                forget(self._directory, holder)
                self._processes.forget(holder)
            self._return_at = time.monotonic() + RETURN_SECONDS

    async def _sweep(self) -> None:
        if not self.clock.is_trusted:
            return
        retention = self._retention
        swept = await sweep_usage(self._store, retention.ttl, retention.max_bytes, retention.totals_ttl)
        await self.refused.delete_before(int((self.clock.now() - retention.ttl) * 1e6))
        if swept.deleted_early:
            logger.warning(
                "usage records were deleted before `usage.ttl`, since they exceed `usage.max_bytes`",
                records=swept.deleted_early,
                records_begin=swept.begin.isoformat(timespec="seconds"),
            )
            self._count_deleted_early(swept.deleted_early)

    async def _move(self) -> None:
        has_more = await self._earlier.move_some()
        if self._mover is not None:
            self._mover.every = MOVE_SECONDS if has_more else SEARCH_SECONDS
