"""Disks without space: a small file system that tests fill, or a limit of file sizes where they cannot mount one."""

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

FILLER = "filler"
BLOCK_BYTES = 4096
LIMITED_BYTES = 65_536
"""Size that files may have under a limit: more than the output of a test, less than a segment of a journal."""


class Disk(Protocol):
    """Disk that holds the data directory of a process, and that a test fills and empties."""

    def fill(self, pid: int) -> None:
        """Leave no space for the process `pid`."""

    def empty(self, pid: int) -> None:
        """Give the space back."""


class SmallDisk:
    """Small file system in memory, which a file fills."""

    def __init__(self, mount: Path) -> None:
        self._filler = mount / FILLER

    def fill(self, pid: int) -> None:
        """Write until the disk takes no further byte."""
        descriptor = os.open(self._filler, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for size in (2**20, BLOCK_BYTES, 1):
            try:
                while os.write(descriptor, bytes(size)):
                    pass
            except OSError:
                continue
        os.close(descriptor)

    def empty(self, pid: int) -> None:
        self._filler.unlink()


class LimitedFiles:
    """Limit of the size of the files that a process writes. The kernel refuses further bytes of each, as a full disk
    does.
    """

    def fill(self, pid: int) -> None:
        """Set the limit."""
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (LIMITED_BYTES, resource.RLIM_INFINITY))

    def empty(self, pid: int) -> None:
        """Remove the limit, unless the process has ended."""
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@contextmanager
def disk_at(directory: Path, size: str) -> Iterator[Disk]:
    """Mount a file system of this size at a new directory, which needs privileges; without them, limit the files of
    the process.
    """
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(directory)]
    if (
        os.geteuid()
        or shutil.which("mount") is None
        or subprocess.run(command, check=False, capture_output=True).returncode
    ):
        yield LimitedFiles()
        return
    try:
        yield SmallDisk(directory)
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)
