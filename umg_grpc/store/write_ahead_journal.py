"""Journal of records in append-only files of this machine, from which they are delivered to the database.

Each process appends to a file of its own, a segment, which it locks. A segment without a lock is complete: its process
has closed it, or has ended. Any process may deliver its records and delete it, so that the records of a killed process
are delivered by others or at the next start. If a process is killed between delivery and deletion, the records are
delivered again: a receiver must ignore records that it has.

The disk blocks of a segment are allocated when it is opened, so that records fit into it on a full disk; its unwritten
rest are zero bytes. A record is safe as soon as `append` returns, unless the machine itself crashes: nothing waits for
the disk.
"""

import asyncio
import errno
import fcntl
import os
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

import structlog
from structlog.typing import FilteringBoundLogger

SEGMENT_BYTES = 4 * 2**20
SEGMENT_PARTS = (1, 4, 16)
"""Divisors of the size of a segment. A full disk has often space for a part, since delivered records are deleted."""
WAITING_BYTES = 256 * 2**20  # maximum size of the undelivered segments of a process; further records are rejected
BATCH_RECORDS = 500
JOURNAL_SUFFIX = ".jsonl"
JOURNAL_FULL, DISK_FAILED = "full", "disk"
"""Reasons for refused records: the undelivered records have reached the maximum size, or the disk takes none."""

UNSUPPORTED_ERRORS = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
"""Errors of file systems that cannot allocate disk blocks ahead."""

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of a full disk."""

logger: FilteringBoundLogger = structlog.get_logger(__name__)

Deliver = Callable[[Sequence[bytes]], Awaitable[None]]


class _FullError(OSError):
    """Error for a journal that is full: its undelivered records have reached the maximum size for a process."""


class _Segment(NamedTuple):
    """Size of a file that is not delivered yet, and number of its records."""

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
    ) -> None:
        """Create the directory, and open a segment. Raise OSError, but not for a full disk. `owner`: unique name of the
        process, with which its file names begin. `segment_bytes`: size of a file. `waiting_bytes`: maximum size of
        undelivered records.
        """
        self._owner = owner
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._waiting_bytes = waiting_bytes
        self._numbers = count()
        self._descriptor = -1
        self._path = directory
        self._size = self._records = self._allocated = 0
        self._closed: dict[Path, _Segment] = {}  # own segments that are not delivered yet
        self._delivered = set[Path]()  # segments that could not be deleted, for example on a read-only file system
        self.problem = ""
        """Reason why the journal refuses records, or will soon since the disk is full; "" if it takes records."""
        self.refusal = ""
        """Reason why it refused the last records, `JOURNAL_FULL` or `DISK_FAILED`; "" if it took them."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._open_segment()
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            self._refuse(error)

    @property
    def waiting_bytes(self) -> int:
        """Total size in bytes of the records of this process that are not delivered yet."""
        return self._size + sum(segment.size for segment in self._closed.values())

    @property
    def waiting_records(self) -> int:
        """Number of records of this process that are not delivered yet."""
        return self._records + sum(segment.records for segment in self._closed.values())

    def append(self, *records: bytes) -> int:
        """Append records, which must contain neither line ends nor zero bytes, by one system call. Return the number of
        records, from the first on, that are stored: less than all if the journal or the disk is full.
        """
        lines = b"\n".join((*records, b""))
        try:
            if self._size and self._size + len(lines) > self._allocated:
                self._close_segment()
            if self._descriptor < 0:
                self._open_segment(len(lines))
            elif not os.fstat(self._descriptor).st_nlink:  # the file was deleted
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            written = os.pwrite(self._descriptor, lines, self._size)
        except OSError as error:
            self._close_segment()
            self._refuse(error)
            return 0
        complete = len(records) if written == len(lines) else lines[:written].count(b"\n")
        self._size, self._records = self._size + written, self._records + complete
        if written != len(lines):  # the next record must not continue this line
            self._close_segment()
            self._refuse(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        else:
            self.refusal = ""
        return complete

    def check(self) -> None:
        """Open the next segment unless one is open, and update `problem`. Call this regularly: then the journal takes
        records again after a failure, and calls do not wait for the allocation of a segment.
        """
        try:
            if self._descriptor < 0:
                self._open_segment()
                self.refusal = ""
            disk = os.statvfs(self._directory)
            if disk.f_blocks and disk.f_bavail * disk.f_frsize < self._segment_bytes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._note_no_space(error)
            return
        if self.problem and not self.refusal:
            logger.warning("the journal takes records again", journal=str(self._directory))
            self.problem = ""

    async def drain(self, deliver: Deliver) -> None:
        """Close this process's file. Then pass the records of all files that no process writes to `deliver`, in
        batches, and delete each file after its last record. This process's file is closed first. Raise OSError and the
        errors of `deliver`; a later call delivers the records again.
        """
        if self._closed:  # of an earlier call that failed: no further small segment before they are delivered
            await self._drain_segments(deliver)
        if self._size:
            self._close_segment()
        await self._drain_segments(deliver)

    def has_segments_of(self, owner: str) -> bool:
        """Return whether a process has files: it is running, or not all its records are delivered."""
        return any(self._directory.glob(f"{owner}*{JOURNAL_SUFFIX}"))

    def close(self) -> None:
        """Close this process's file. Records that are not delivered stay in the directory."""
        self._close_segment()

    def _open_segment(self, least: int = 0) -> None:
        """Create and lock a file, and allocate its disk blocks: less on a full disk, but at least `least` bytes."""
        if self.waiting_bytes >= self._waiting_bytes:
            raise _FullError(f"{self.waiting_bytes} bytes wait for the database, the most that are kept")
        while True:
            name = f"{self._owner}{next(self._numbers):08x}-{secrets.token_hex(4)}{JOURNAL_SUFFIX}"  # in order of time
            path = self._directory / name
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            if _lock(descriptor):
                break
            os.close(descriptor)
        try:
            self._allocated = _allocate(descriptor, [max(least, self._segment_bytes // part) for part in SEGMENT_PARTS])
        except OSError:
            _delete(path)
            os.close(descriptor)
            raise
        self._descriptor, self._path = descriptor, path

    def _close_segment(self) -> None:
        """Close the file, and free its unwritten disk blocks; delete it if it has no records."""
        if self._descriptor < 0:
            return
        if self._size:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            self._closed[self._path] = _Segment(self._size, self._records)
        else:
            _delete(self._path)
        os.close(self._descriptor)
        self._descriptor, self._size, self._records = -1, 0, 0

    def _refuse(self, error: OSError) -> None:
        """Note that records were refused because of `error`. Log it, unless the records before were refused too."""
        self.problem, was_refusing = error.strerror or str(error), self.refusal
        self.refusal = JOURNAL_FULL if isinstance(error, _FullError) else DISK_FAILED
        if not was_refusing:
            event = "the journal takes no records: they stay in memory until the database has them"
            logger.error(event, journal=str(self._directory), reason=self.problem)

    def _note_no_space(self, error: OSError) -> None:
        """Note that no further segment can be opened because of `error`. Log it, unless there was a problem before."""
        if not self.problem:
            event = "the journal has no space for more records than it has allocated"
            logger.warning(event, journal=str(self._directory), reason=error.strerror or str(error))
        self.problem = error.strerror or str(error)

    async def _drain_segments(self, deliver: Deliver) -> None:
        found = sorted(self._directory.glob(f"*{JOURNAL_SUFFIX}"))
        for path in self._closed.keys() - found:  # another process has delivered it
            del self._closed[path]
        self._delivered.intersection_update(found)
        for path in found:
            if path not in self._delivered and (path != self._path or self._descriptor < 0):
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
            self._closed.pop(path, None)
            if not _delete(path):
                self._delivered.add(path)
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(descriptor).st_nlink > 0
    return False


def _allocate(descriptor: int, sizes: Sequence[int]) -> int:
    """Allocate a file's blocks for the first of `sizes` (bytes) that fits; none if the file system cannot."""
    for size in sizes:
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError as error:
            if error.errno in UNSUPPORTED_ERRORS:
                return size
            if error.errno not in NO_SPACE or size == sizes[-1]:
                raise
        else:
            return size
    raise ValueError("no size")


def _delete(path: Path) -> bool:
    """Delete a file. Return whether it does not exist any more."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("a file of the journal cannot be deleted", file=str(path), reason=error.strerror or str(error))
        return False
    return True


def _read_records(path: Path) -> list[bytes]:
    written, _, _ = path.read_bytes().partition(b"\0")
    return [line for line in written.split(b"\n")[:-1] if line]
