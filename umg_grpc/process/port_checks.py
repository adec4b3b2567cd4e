"""Port checks of `umg serve`: exclusive use of a port by one gateway, and errors that name the process which has it."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from umg_grpc.config import Address

LISTEN_STATE = "0A"
"""State of a listening socket in `/proc/net/tcp`."""
PROC_FOLDER = Path("/proc")
HTTP_PURPOSE, GRPC_PURPOSE, METRICS_PURPOSE = "HTTP", "gRPC", "metrics"
ADDRESS_OPTIONS = {
    HTTP_PURPOSE: "--http HOST:PORT",
    GRPC_PURPOSE: "--grpc HOST:PORT",
    METRICS_PURPOSE: "metrics.address in the config",
}
"""Option that sets the address for a purpose."""


def claim(address: Address, purpose: str) -> AbstractContextManager[object]:
    """Return a context manager that reserves the address, so that no other gateway on this machine can use it. Raise
    OSError if another process uses it; `purpose`: use of the port, for the message. The workers' option SO_REUSEPORT
    would let a second gateway bind the same port while no worker listens. The reservation is the name of an abstract
    Unix socket, which is unique on a machine, and ends with the process.
    """
    if sys.platform != "linux":
        return nullcontext()
    held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        held.bind(f"\0{_claim_name(address)}")
    except OSError as error:
        held.close()
        raise taken(address, error, purpose) from None
    return held


def check_free(address: Address, purpose: str) -> None:
    """Raise OSError if a process listens on the address, even one that shares its ports. `purpose`: for the message."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        socket.create_server((address.host, address.port), family=family, backlog=1).close()
    except OSError as error:
        raise taken(address, error, purpose) from None


def taken(address: Address, error: OSError, purpose: str) -> OSError:
    """Return the error for an occupied address. It names the other process, if the system reveals it, and the flag for
    another address, which depends on `purpose`.
    """
    reason = (error.strerror or str(error)).partition(" (while")[0]
    return OSError(
        f"cannot listen on {address} for {purpose}: {reason}{holder(address)}; another address: "
        f"{ADDRESS_OPTIONS[purpose]}"
    )


def holder(address: Address) -> str:
    """Return the text ` (process 123, umg)` for the other process that uses the address; "" if it is unknown."""
    for inodes in (_claim_inodes(address), _listening_inodes(address.port)):
        if inodes and (process := _process_with(inodes)):
            return f" ({process})"
    return ""


def _claim_name(address: Address) -> str:
    return f"umg-port-{address}"


def _claim_inodes(address: Address) -> set[str]:
    rows = _rows("unix")
    return {row[6] for row in rows if row[-1] == f"@{_claim_name(address)}"}


def _listening_inodes(port: int) -> set[str]:
    rows = (row for name in ("tcp", "tcp6") for row in _rows(name))
    return {row[9] for row in rows if row[3] == LISTEN_STATE and int(row[1].rpartition(":")[2], 16) == port}


def _rows(name: str) -> Iterator[list[str]]:
    try:
        lines = (PROC_FOLDER / "net" / name).read_text(errors="replace").splitlines()[1:]
    except OSError:
        return
    yield from (line.split() for line in lines)


def _process_with(inodes: set[str]) -> str:
    """Return the id and name of the first process with a socket of one of these inodes; "" if none is visible. This
    process is left out, since it reserves an address before it checks whether another one listens there.
    """
    wanted = {f"socket:[{inode}]" for inode in inodes}
    others = {int(entry.name) for entry in PROC_FOLDER.iterdir() if entry.name.isdigit()} - {os.getpid()}
    for number in sorted(others):
        process = PROC_FOLDER / str(number)
        try:
            if any(str(link.readlink()) in wanted for link in (process / "fd").iterdir()):
                return f"process {number}, {(process / 'comm').read_text().strip()}"
        except OSError:  # of another user, or a file that was closed meanwhile
            continue
    return ""
