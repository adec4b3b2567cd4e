"""File with the usage records of calls in flight, which survives if the process is killed. It is mapped into memory, so
that a record is written and deleted without a system call. It consists of slots: two bytes with the length of the
record, 0 in a free slot, and the record.
"""

import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.store.write_ahead_journal import NO_SPACE

SLOT_BYTES = 1024
MAX_RECORD_BYTES = SLOT_BYTES - 2
FIRST_SLOTS = 256
OPEN_SUFFIX = ".open"
NO_SLOT = -1

_LENGTH = struct.Struct("<H")

logger: FilteringBoundLogger = structlog.get_logger(__name__)


class OpenRecords:
    """File with the usage records of a process's calls in flight, until `close`. A slot is named by its byte offset."""

    _map: mmap.mmap

    def __init__(self, directory: Path, owner: str) -> None:
        """Create the file. `owner`: unique name of the process. Raise OSError, except for a full disk."""
        self._path = directory / f"{owner}{OPEN_SUFFIX}"
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self._slots = 0
        self._free: list[int] = []  # positions of the free slots in the file
        self._is_full = False
        try:
            self._grow(FIRST_SLOTS)
        except OSError as error:
            if error.errno not in NO_SPACE:
                self.close()
                raise
            self._report(error)

    def add(self, record: bytes, replaced: int = NO_SLOT) -> int:
        """Write a record into a free slot, then delete the record in the slot `replaced` (`NO_SLOT`: none). Return the
        new slot. If the record is too long or the disk is full, change nothing, and return `NO_SLOT`.
        """
        if (size := len(record)) > MAX_RECORD_BYTES:
            return NO_SLOT
        if not self._free:
            try:
                self._grow(max(FIRST_SLOTS, 2 * self._slots))
            except OSError as error:
                self._report(error)
                return NO_SLOT
        slot = self._free.pop()
        self._map[slot + 2 : slot + 2 + size] = record
        _LENGTH.pack_into(self._map, slot, size)  # after the record: a process may be killed between the two
        if replaced != NO_SLOT:
            _LENGTH.pack_into(self._map, replaced, 0)
            self._free.append(replaced)
        return slot

    def delete(self, slot: int) -> None:
        """Delete the record in a slot that `add` returned; do nothing for `NO_SLOT`."""
        if slot != NO_SLOT:
            _LENGTH.pack_into(self._map, slot, 0)
            self._free.append(slot)

    def close(self) -> bool:
        """Close the file. If it contains no record, delete it. Return whether it contained none."""
        if is_empty := len(self._free) == self._slots:
            self._path.unlink(missing_ok=True)
        if self._slots:
            self._map.close()
        os.close(self._descriptor)
        return is_empty

    def _report(self, error: OSError) -> None:
        if not self._is_full:
            logger.error("calls in flight are lost with the process", reason=error.strerror or str(error))
        self._is_full = True

    def _grow(self, slots: int) -> None:
        """Enlarge the file to this number of slots, and allocate its disk blocks."""
        os.posix_fallocate(self._descriptor, 0, slots * SLOT_BYTES)
        if self._slots:
            self._map.resize(slots * SLOT_BYTES)
        else:
            self._map = mmap.mmap(self._descriptor, slots * SLOT_BYTES)
        self._free.extend(range((slots - 1) * SLOT_BYTES, (self._slots - 1) * SLOT_BYTES, -SLOT_BYTES))
        self._slots, self._is_full = slots, False


def records_of(directory: Path, owner: str) -> list[bytes]:
    """Return the calls in flight when a process ended; empty without a file. Raise OSError if it is unreadable."""
    try:
        content = (directory / f"{owner}{OPEN_SUFFIX}").read_bytes()
    except FileNotFoundError:
        return []
    return [*_records(content)]


def forget(directory: Path, owner: str) -> None:
    """Delete the file of the process `owner`, which has ended; do nothing without a file."""
    (directory / f"{owner}{OPEN_SUFFIX}").unlink(missing_ok=True)


def _records(content: bytes) -> Iterator[bytes]:
    for at in range(0, len(content) - 1, SLOT_BYTES):
        (length,) = _LENGTH.unpack_from(content, at)
        if length:
            yield content[at + 2 : at + 2 + length]
