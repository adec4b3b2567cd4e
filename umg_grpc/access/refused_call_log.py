"""Log of refused calls: a bounded number of records a minute, written to the database in the background."""

from collections import Counter
from collections.abc import Callable, Iterator

from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.store import Store
from umg_grpc.store.refused_call_table import RefusedCall, RefusedCalls
from umg_grpc.store.repeated_background_tasks import Background
from umg_grpc.store.usage_record_table import UsageRecord

CALLER_RECORDS = 10
"""Most records a minute of calls with the same caller and reason."""
PROCESS_RECORDS = 120
"""Most records a minute of all refused calls of a process."""
MAX_CALLERS = 1000
"""Most pairs of a caller and a reason whose calls without a record are counted for their next record."""
MAX_WAITING = 10 * PROCESS_RECORDS
"""Most records in memory, while the database takes none; further ones are lost."""
MINUTE_SECONDS = 60


class RefusalCounter:
    """Decision which refused calls get a record. It is deterministic, and has no clock."""

    def __init__(self) -> None:
        self._minute = 0
        self._records = Counter[tuple[str, str]]()
        self._uncounted = Counter[tuple[str, str]]()

    def calls(self, caller: str, reason: str, minute: int) -> int:
        """Count a refused call. Return the number of calls that its record counts: itself, and those of the same caller
        and reason before it that got none; 0 if it gets none. `minute`: number of the current minute.
        """
        if minute != self._minute:
            self._minute = minute
            self._records.clear()
        pair = (caller, reason)
        if self._records[pair] >= CALLER_RECORDS or self._records.total() >= PROCESS_RECORDS:
            if pair in self._uncounted or len(self._uncounted) < MAX_CALLERS:
                self._uncounted[pair] += 1
            return 0
        self._records[pair] += 1
        return 1 + self._uncounted.pop(pair, 0)


class RefusedCallLog:
    """Writer of the records of refused calls of a process, from `start` to `aclose`. A record that was not written yet
    is lost when the process is killed: nothing is charged by it.
    """

    def __init__(self, store: Store, new_ids: Iterator[str]) -> None:
        """Create a log. `new_ids`: ids for records, unique among all processes."""
        self._table, self._clock, self._new_ids = RefusedCalls(store), store.clock, new_ids
        self._counter = RefusalCounter()
        self._waiting = list[RefusedCall]()
        self._writer: Background | None = None

    def start(self) -> None:
        """Start to write the records in the background."""
        self._writer = Background("writing records of refused calls", self._write, at_end=True)

    async def aclose(self, seconds: float) -> None:
        """Write the last records within `seconds`, and stop."""
        if (writer := self._writer) is not None:
            self._writer = None
            await writer.aclose(seconds)

    def add(self, caller: str, reason: str, seconds: float, make: Callable[[str, int], UsageRecord]) -> None:
        """Note a refused call that took `seconds`. `caller`: id of its key, or its address. `make`: makes its record of
        an id and the time of arrival in microseconds; called only if the call gets one.
        """
        now = self._clock.now()
        if not (calls := self._counter.calls(caller, reason, int(now // MINUTE_SECONDS))):
            return
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append(RefusedCall(make(next(self._new_ids), int((now - seconds) * 1e6)), calls))
        if self._writer is not None:
            self._writer.wake()

    async def delete_before(self, micros: int) -> None:
        """Delete the records of calls that arrived before a time in microseconds since 1970."""
        await self._table.delete_before(micros)

    async def _write(self) -> None:
        if not (writing := self._waiting):
            return
        self._waiting = []
        try:
            await self._table.insert(writing)
        except (SQLAlchemyError, OSError):
            self._waiting = writing + self._waiting
            raise
