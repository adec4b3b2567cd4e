"""Command `umg reload`, and the sockets (`DATA/reload-ID.sock`) through which running gateways are made to read their
configs again. A gateway answers the line `reload` with one line of JSON, the outcome in each of its processes.
`umg_grpc.process.service_factory.Service.reload` applies the new config.
"""

import asyncio
import os
import secrets
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path

import msgspec

from umg_grpc.base.lazy_logger import LazyLogger

SOCKET_PATTERN = "reload-*.sock"
RELOAD_REQUEST = b"reload\n"
ANSWER_SECONDS = 60.0
MAX_PROBLEM_CHARACTERS = 4000

logger = LazyLogger(__name__)


class Outcome(msgspec.Struct, frozen=True):
    """Outcome of a reload in one process: the changed settings, or the problem that prevented the reload."""

    process: int
    problem: str = ""
    """Reason for which the old config stays; "" if the new one is served."""
    changed: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()
    """Keys with another value than at the start of the process, which only a restart applies."""

    @property
    def text(self) -> str:
        """Text line about the outcome for the operator."""
        if self.problem:
            return f"process {self.process}: not reloaded, the old config stays: {self.problem}"
        changed = ", ".join(self.changed) or "nothing"
        restart = f"; needs a restart: {', '.join(self.needs_restart)}" if self.needs_restart else ""
        return f"process {self.process}: reloaded; changed: {changed}{restart}"


@asynccontextmanager
async def reload_socket(data: Path, reload: Callable[[], Awaitable[Sequence[Outcome]]]) -> AsyncGenerator[None, None]:
    """Serve `umg reload` on a Unix socket in the data directory for the duration of the block. `reload`: returns the
    outcome in each process. If the directory cannot be written, this is logged.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(ConnectionError):
            if await reader.readline() == RELOAD_REQUEST:
                writer.write(msgspec.json.encode(await reload()) + b"\n")
                await writer.drain()

    path = data / f"reload-{secrets.token_hex(4)}.sock"
    try:
        listening = _listen(path)
    except OSError as error:
        logger.warning("umg reload does not reach this gateway; use SIGHUP", reason=str(error))
        yield
        return
    server = await asyncio.start_unix_server(answer, sock=listening)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


def _listen(path: Path) -> socket.socket:
    """Return a socket that listens at the path, for this user only. Sockets of gateways that have ended are removed."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for other in path.parent.glob(SOCKET_PATTERN):
        if (connection := _connect(other)) is None:
            other.unlink(missing_ok=True)
        else:
            connection.close()
    listening = socket.socket(socket.AF_UNIX)
    hidden = path.with_name(f".{path.name}")
    try:
        with _short(hidden) as address:
            listening.bind(address)
        hidden.chmod(0o600)
        listening.listen()
        hidden.rename(path)  # after `listen`, so that no other gateway removes it
    except OSError:
        listening.close()
        raise
    return listening


def _connect(path: Path) -> socket.socket | None:
    """Return a connection to the gateway that listens at the path; None if it has ended."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(ANSWER_SECONDS)
    try:
        with _short(path) as address:
            connection.connect(address)
    except (ConnectionRefusedError, FileNotFoundError):
        connection.close()
        return None
    return connection


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """Yield a short alias of the path: the address of a socket has at most 107 bytes."""
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        yield str(path)
        return
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        yield f"{descriptors}/{directory}/{path.name}"
    finally:
        os.close(directory)


def reload_all(data: Path) -> int:
    """Reload the gateways of this data directory, and print the outcomes. Return the exit code: 0 if all succeeded."""
    outcomes = list[Outcome]()
    for path in sorted(data.glob(SOCKET_PATTERN)):
        try:
            if (connection := _connect(path)) is not None:
                with closing(connection), connection.makefile("rb") as response:
                    connection.sendall(RELOAD_REQUEST)
                    outcomes += msgspec.json.decode(response.readline(), type=list[Outcome])
        except (OSError, msgspec.DecodeError) as error:
            print(f"umg: a gateway did not answer: {error}", file=sys.stderr)
            return 1
    for outcome in outcomes:
        print(outcome.text, file=sys.stderr if outcome.problem else sys.stdout)
    if not outcomes:
        print(f"umg: no gateway runs with the data directory {data}; name its own with --data", file=sys.stderr)
    return int(not outcomes or any(outcome.problem for outcome in outcomes))
