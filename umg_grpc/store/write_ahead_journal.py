"""Journal of records in append-only files of this machine, from which they are delivered to the database.

Each process appends to its own file, a segment, and holds the file's lock. A segment without a lock is complete: its
process closed it or has ended. Any process may deliver its records and delete it, so that the records of a killed
process are delivered by other processes or at the next start. If a process is killed between delivery and deletion, the
records are delivered again: a receiver must ignore records that it already has.

A record is safe as soon as `append` returns, unless the machine itself crashes: nothing waits for the disk.
"""

import asyncio
import fcntl
import os
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import structlog
from structlog.typing import FilteringBoundLogger

SEGMENT_BYTES = 4 * 2**20
WAITING_BYTES = 256 * 2**20  # maximum size of the undelivered segments of a process; further records are rejected
BATCH_RECORDS = 500
SUFFIX = ".jsonl"
FULL, DISK = "full", "disk"
"""Reasons for lost records: the undelivered records have reached the maximum size, or the disk is full."""

logger: FilteringBoundLogger = structlog.get_logger(__name__)

Deliver = Callable[[Sequence[bytes]], Awaitable[None]]


class _FullError(OSError):
    """Error for a journal whose undelivered records have reached the maximum size of a process."""


class _Segment(NamedTuple):
    """Size and number of records of a file that is not delivered yet."""

    size: int
    """In bytes."""
    records: int


class Journal:
    """Append-only journal of this process: one file at a time, in a directory that several processes may share."""

    def __init__(
        self,
        directory: Path,
        *,
        owner: str = "",
        segment_bytes: int = SEGMENT_BYTES,
        waiting_bytes: int = WAITING_BYTES,
        count_lost: Callable[[int, str], None] = lambda _count, _reason: None,
    ) -> None:
        """Create the directory. Raise OSError if that is not possible.

        `owner`: unique name of the process, with which its file names begin. `segment_bytes`: size at which a new file
        is begun. `waiting_bytes`: maximum size of undelivered records. `count_lost`: called with the number of rejected
        records and the reason, `FULL` or `DISK`.
        """
        self._count_lost = count_lost
        self._owner = owner
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._waiting_bytes = waiting_bytes
        self._descriptor = -1
        self._path = directory
        self._size = self._records = 0
        self._closed: dict[Path, _Segment] = {}  # own segments that are not delivered yet
        self._rejected_count = 0
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._open_segment()

    @property
    def waiting_bytes(self) -> int:
        """Total size in bytes of the records of this process that are not delivered yet."""
        return self._size + sum(segment.size for segment in self._closed.values())

    @property
    def waiting_records(self) -> int:
        """Number of records of this process that are not delivered yet."""
        return self._records + sum(segment.records for segment in self._closed.values())

    def append(self, *records: bytes) -> bool:
        """Append records, which must not contain line ends, by one system call. Return whether all are stored: False if
        the journal or the disk is full.
        """
        lines = b"\n".join((*records, b""))
        try:
            if self._descriptor < 0:
                self._open_segment()
            written = os.write(self._descriptor, lines)
        except _FullError as error:
            return self._reject(len(records), FULL, str(error))
        except OSError as error:
            return self._reject(len(records), DISK, error.strerror or str(error))
        complete = len(records) if written == len(lines) else lines[:written].count(b"\n")
        self._size, self._records = self._size + written, self._records + complete
        if written != len(lines):  # the next record must not continue this line
            self._close_segment()
            return self._reject(len(records) - complete, DISK, "the disk is full")
        if self._size >= self._segment_bytes:
            self._close_segment()
        return True

    async def drain(self, deliver: Deliver) -> None:
        """Pass the records of all files that no process writes any more to `deliver`, in batches, and delete each file
        after its last record. This process's file is closed first.

        Raise the errors of `deliver` and OSError; a later call delivers the records again.
        """
        if self._closed:  # of an earlier call that failed: no further small segment before they are delivered
            await self._drain_segments(deliver)
        if self._size:
            self._close_segment()
        await self._drain_segments(deliver)

    def has_segments_of(self, owner: str) -> bool:
        """Return whether there are files of the process `owner`: it is running, or not all its records are
        delivered.
        """
        return any(self._directory.glob(f"{owner}*{SUFFIX}"))

    def close(self) -> None:
        """Close this process's file. Records that are not delivered stay in the directory."""
        self._close_segment()
        for path, segment in self._closed.items():
            if not segment.size:
                path.unlink(missing_ok=True)

    def _open_segment(self) -> None:
        """Create a new file, and lock it. Raise OSError.

        If another process deletes the file before it is locked, another file is created.
        """
        if self.waiting_bytes >= self._waiting_bytes:
            raise _FullError(f"{self.waiting_bytes} bytes wait for the database, the most that are kept")
        while True:
            path = self._directory / f"{self._owner}{secrets.token_hex(8)}{SUFFIX}"
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            if _lock(descriptor):
                self._descriptor, self._path = descriptor, path
                return
            os.close(descriptor)

    def _close_segment(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._closed[self._path] = _Segment(self._size, self._records)
            self._descriptor, self._size, self._records = -1, 0, 0

    def _reject(self, count: int, reason: str, problem: str) -> bool:
        if not self._rejected_count:
            logger.error("records are lost: the journal cannot take them", journal=str(self._directory), reason=problem)
        self._rejected_count += count
        self._count_lost(count, reason)
        return False

    async def _drain_segments(self, deliver: Deliver) -> None:
        for path in sorted(self._directory.glob(f"*{SUFFIX}")):
            if path != self._path or self._descriptor < 0:
                await self._drain_segment(path, deliver)

    async def _drain_segment(self, path: Path, deliver: Deliver) -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:  # another process has delivered it
            self._closed.pop(path, None)
            return
        try:
            if not _lock(descriptor):
                return
            records = await asyncio.to_thread(_read_records, path)
            for start in range(0, len(records), BATCH_RECORDS):
                await deliver(records[start : start + BATCH_RECORDS])
            self._delete(path)
        finally:
            os.close(descriptor)

    def _delete(self, path: Path) -> None:
        """Delete a file after all its records were delivered."""
        path.unlink()
        self._closed.pop(path, None)
        if self._rejected_count:
            logger.warning("the journal takes records again", rejected=self._rejected_count)
            self._rejected_count = 0


def _lock(descriptor: int) -> bool:
    """Lock the file without waiting. Return False if another process has locked or deleted it."""
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(descriptor).st_nlink > 0
    return False


def _read_records(path: Path) -> list[bytes]:
    """Return the records in a file, without an incomplete last line, which a killed process may leave."""
    return [line for line in path.read_bytes().split(b"\n")[:-1] if line]
