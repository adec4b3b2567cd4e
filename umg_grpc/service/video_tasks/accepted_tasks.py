"""Journal of submissions whose outcome could not be written to the database. Providers work on the video tasks that
they accepted, and charge for them, so these outcomes must not be lost.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.base.lazy_logger import LazyLogger
from umg_grpc.service.video_tasks.shared_task_objects import TaskContext
from umg_grpc.store.repeated_background_tasks import Background
from umg_grpc.store.repeated_log_lines import RepeatedLines
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.store.video_task_table import QUEUED_STATE
from umg_grpc.store.write_ahead_journal import Journal
from umg_grpc.wire.video.provider_task_types import ProviderTask

SEGMENT_BYTES = 2**18
WAITING_BYTES = 2**24
"""Maximum size of the tasks that wait for the database, more than 20,000 tasks."""
WRITE_SECONDS = 5.0
"""Time between two searches for outcomes that a process which has ended left in the data directory."""
CLOSE_SECONDS = 5.0

logger = LazyLogger(__name__)
log_lines = RepeatedLines(__name__)


class _Accepted(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """Record of the journal. New fields are added at the end, with a default, so that old records can be read."""

    task_id: str
    upstream_task_id: str = ""
    """Empty for a task of which the process does not know whether its provider accepted it."""
    upstream_model: str = ""
    upstream_key_id: str = ""
    upstream_facts: str = ""
    first_poll_seconds: float = 0.0
    details: str | None = None


_encode = msgspec.json.Encoder().encode
_DECODER = msgspec.json.Decoder(_Accepted)


class AcceptedTasks:
    """Accepted tasks in files of the data directory, until the database has recorded their acceptance. A process also
    writes the tasks of processes that were killed.
    """

    def __init__(self, context: TaskContext, directory: Path) -> None:
        """Open the journal in a directory. Raise OSError if that is not possible."""
        self._context = context
        owner = f"{context.process}-"
        self._journal = Journal(directory, owner=owner, segment_bytes=SEGMENT_BYTES, waiting_bytes=WAITING_BYTES)
        self._writer: Background | None = None
        self._drains = asyncio.Lock()

    def start(self) -> None:
        """Start to write the tasks to the database, as soon as it answers."""
        self._writer = Background("writing accepted video tasks", self.write, every=WRITE_SECONDS, at_end=True)
        self._writer.wake()

    async def aclose(self) -> None:
        """Write the remaining tasks to the database within a bounded time; the next start writes the others."""
        if self._writer is not None:
            await self._writer.aclose(CLOSE_SECONDS)
        self._journal.close()

    def keep(self, row: MediaTask, accepted: ProviderTask, first_poll_seconds: float) -> bool:
        """Store an accepted task in the journal until the database has it, and set the columns of `row` that the caller
        gets. Return False, without a change, if the journal cannot store it.
        """
        record = _Accepted(
            task_id=row.task_id,
            upstream_task_id=accepted.id,
            upstream_model=accepted.model,
            upstream_key_id=accepted.key_id,
            upstream_facts=accepted.facts,
            first_poll_seconds=first_poll_seconds,
            details=row.details,
        )
        if not self._journal.append(_encode(record)):
            return False
        log_lines.warning("an accepted video task waits for the database", task=row.task_id, upstream=accepted.id)
        row.state, row.update_micros = QUEUED_STATE, self._context.now()
        row.upstream_task_id, row.upstream_model = accepted.id, accepted.model
        if self._writer is not None:
            self._writer.wake()
        return True

    async def report_unknown(self, task_id: str, details: str | None = None) -> None:
        """Report a task that may be accepted, in the database or else in the journal. `details`: None for no change."""
        try:
            await self._context.rows.report_unknown(task_id, details)
        except (SQLAlchemyError, OSError):
            self.keep_unknown(task_id)

    def keep_unknown(self, task_id: str) -> None:
        """Report in the journal that a provider may have accepted a task, if the database has the task."""
        self._journal.append(_encode([task_id]))  # without columns that earlier versions would take for an acceptance
        if self._writer is not None:
            self._writer.wake()

    def has_tasks_of(self, process: str) -> bool:
        """Return whether outcomes of a process may not be in the database yet; also while the process is running."""
        return self._journal.has_segments_of(f"{process}-")

    async def write(self) -> None:
        """Write all outcomes to the database, also those of ended processes. Raise SQLAlchemyError, OSError."""
        async with self._drains:
            await self._journal.drain(self._accept)
            self._journal.check()

    async def _accept(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            try:
                kept = _DECODER.decode(line)
            except msgspec.DecodeError as error:
                log_lines.warning("an accepted video task of the journal cannot be read", reason=str(error))
                continue
            if not kept.upstream_task_id:
                await self._context.rows.report_unknown(kept.task_id)
                continue
            accepted = ProviderTask(
                id=kept.upstream_task_id,
                model=kept.upstream_model,
                key_id=kept.upstream_key_id,
                facts=kept.upstream_facts,
            )
            row = await self._context.accept(kept.task_id, accepted, kept.first_poll_seconds, kept.details)
            if row is not None:
                self._context.changed(row)
                continue
            found = await self._context.rows.get(kept.task_id)
            if found is None or found.upstream_task_id != accepted.id:
                logger.error(
                    "a provider's task is lost: it was given up before", task=kept.task_id, upstream=accepted.id
                )
        self._context.wake_poller()
