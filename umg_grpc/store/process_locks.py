"""Lock files of processes that share a directory. A lock ends with its process, even after SIGKILL."""

import fcntl
import os
import secrets
from contextlib import suppress
from pathlib import Path

USAGE_DIRECTORY = "usage"
"""Folder in the data directory with the journal of usage records; each process of the gateway has a lock file in it."""
LOCK_SUFFIX = ".lock"
ID_FILE = "id"


class ProcessLocks:
    """Lock file of this process in a shared directory, until `close`, and checks of the files of other processes."""

    def __init__(self, directory: Path, name: str) -> None:
        """Create the directory, and a lock file in it. `name`: unique name of this process. Raise OSError."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory = directory
        self._path = directory / f"{name}{LOCK_SUFFIX}"
        self._descriptor = self._lock()
        self.directory_id = _directory_id(directory)
        """Random id of the directory, the same for all its processes."""

    def names(self) -> set[str]:
        """Return the names of all processes with a lock file in the directory, also of ended ones."""
        return {path.stem for path in self.directory.glob(f"*{LOCK_SUFFIX}")}

    def has_ended(self, name: str) -> bool:
        """Return whether the process `name` has ended; True for a process without a lock file."""
        return _try_lock(self.directory / f"{name}{LOCK_SUFFIX}", delete=False)

    def forget(self, name: str) -> None:
        """Delete the lock file of the process `name`, if the process has ended."""
        _try_lock(self.directory / f"{name}{LOCK_SUFFIX}", delete=True)

    def close(self, *, delete: bool = True) -> None:
        """Release this process's lock file, and delete it unless others should find the remaining files (`delete`)."""
        if delete:
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def _lock(self) -> int:
        """Create and lock the file, and return its file descriptor."""
        while True:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_nlink:
                return descriptor
            os.close(descriptor)


def count_running(directory: Path) -> int:
    """Return the number of running processes that have a lock file in the directory."""
    return sum(not _try_lock(path, delete=False) for path in directory.glob(f"*{LOCK_SUFFIX}"))


def _try_lock(path: Path, *, delete: bool) -> bool:
    """Return whether no running process has locked the file; True if the file does not exist."""
    try:
        descriptor = os.open(path, os.O_WRONLY)
    except FileNotFoundError:
        return True
    try:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if delete:
                path.unlink(missing_ok=True)
            return True
        return False
    finally:
        os.close(descriptor)


def _directory_id(directory: Path) -> str:
    """Return the random id in a file of the directory; create the file if it does not exist."""
    path, own = directory / ID_FILE, directory / f"{ID_FILE}-{secrets.token_hex(8)}"
    if path.exists():  # a full disk would not take the other file
        return path.read_text()
    try:
        own.write_text(secrets.token_hex(16))
        os.link(own, path)  # fails if another process was faster, and never leaves a file without its content
    except FileExistsError:
        pass
    finally:
        own.unlink(missing_ok=True)
    return path.read_text()
