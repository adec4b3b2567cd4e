"""Fast starts of `umg` for tests, forked from a process that has its modules loaded: imports take most of the time of a
short process.

One process of each pytest worker has the modules of `umg` loaded, and forks for each start: the child is a process with
its own environment, folder, session and streams, and runs the same `main`. Where a test is about the process itself, it
runs `processes.UMG` instead.
"""

import array
import asyncio
import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from umg_grpc import cli

MODULES = (
    *("commands", "gateway_processes", "chat", "image", "video_client", "keys", "models", "usage", "request_records"),
    *("circuit_breaker_states", "http_admin_client", "undelivered_callbacks"),
)
"""Modules of `umg_grpc.cli` that its commands import."""
LARGEST_REQUEST = 1 << 20
STREAMS = 3
"""Standard input, output and error."""


class Forked:
    """Process of a started `umg`, with the interface of `asyncio.subprocess.Process` that the tests use."""

    def __init__(self, pid: int, connection: socket.socket, stdout: "Output", stderr: "Output") -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdout, self.stderr = stdout.reader, stderr.reader
        self._transports = (stdout.transport, stderr.transport)
        self._ended = asyncio.create_task(self._wait(connection), name="end of umg")

    async def _wait(self, connection: socket.socket) -> int:
        with connection:
            status = await asyncio.get_running_loop().sock_recv(connection, 16)
        assert status, "the process that forks has ended"
        self.returncode = int(status)
        return self.returncode

    async def wait(self) -> int:
        """Return the exit code once the process ended; negative for a signal."""
        return await asyncio.shield(self._ended)

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL, unless the process ended."""
        self.send_signal(signal.SIGKILL)

    async def communicate(self) -> tuple[bytes, bytes]:
        """Return standard output and standard error once the process ended."""
        out, err, _ = await asyncio.gather(self.stdout.read(), self.stderr.read(), self.wait())
        return out, err

    def close(self) -> None:
        """Close the pipes of an ended process, whose output was not read to its end."""
        for transport in self._transports:
            transport.close()


@dataclass(frozen=True)
class Output:
    """Output stream of a started process."""

    reader: asyncio.StreamReader
    transport: asyncio.ReadTransport


async def start(arguments: Sequence[str], environment: Mapping[str, str], prepared_by: str = "") -> Forked:
    """Start `umg` with arguments, in a session of its own and without standard input. `prepared_by`: name of a module
    whose function `prepare` the process calls before.
    """
    pipes = [os.pipe() for _ in range(2)]
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(_forking().address)
    request = {"arguments": list(arguments), "environment": dict(environment), "folder": str(Path.cwd())}
    request["prepared_by"] = prepared_by
    streams = [os.open(os.devnull, os.O_RDONLY), *(write for _, write in pipes)]
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))]
    connection.sendmsg([json.dumps(request).encode()], rights)
    for stream in streams:
        os.close(stream)
    connection.setblocking(False)
    pid = int(await asyncio.get_running_loop().sock_recv(connection, 16))
    return Forked(pid, connection, *[await _output(read) for read, _ in pipes])


async def _output(descriptor: int) -> Output:
    reader = asyncio.StreamReader()
    pipe = os.fdopen(descriptor, "rb", 0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    return Output(reader, transport)


@dataclass(frozen=True)
class Forking:
    """Process that has the modules loaded and forks for each start, until the end of the tests closes its standard
    input.
    """

    address: str
    process: "subprocess.Popen[bytes]"


@cache
def _forking() -> Forking:
    """Start the process that has the modules loaded and forks."""
    address = str(Path(tempfile.mkdtemp(prefix="umg-preloaded-")) / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen(64)
        command = [sys.executable, "-m", "tests.support.forked_umg_starts", str(listener.fileno())]
        root = Path(__file__).parents[2]
        return Forking(
            address, subprocess.Popen(command, pass_fds=[listener.fileno()], stdin=subprocess.PIPE, cwd=root)
        )


# --- the process that forks


def main() -> None:
    """Load the modules, and fork for each request on the socket, until the end of the tests closes standard input."""
    os.environ.update(GRPC_VERBOSITY="ERROR", GRPC_ENABLE_FORK_SUPPORT="0")  # as `umg` does before it loads grpc
    gc.set_threshold(cli.START_THRESHOLD)
    for name in MODULES:
        import_module(f"umg_grpc.cli.{name}")
    assert threading.active_count() == 1, "a process with threads must not fork"
    gc.freeze()  # children share the memory of objects that their collections do not visit
    listener = socket.socket(fileno=int(sys.argv[1]))
    address = Path(listener.getsockname())
    waiting: dict[int, socket.socket] = {}
    signal.signal(signal.SIGCHLD, lambda *_: _report_ended(waiting))
    while sys.stdin not in (ready := select.select([sys.stdin, listener], [], [])[0]):
        assert ready == [listener]
        connection, _ = listener.accept()
        request, descriptors, _, _ = socket.recv_fds(connection, LARGEST_REQUEST, STREAMS)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        if (pid := os.fork()) == 0:
            for inherited in (listener, connection, *waiting.values()):
                inherited.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            _run_command(descriptors, **json.loads(request))
        waiting[pid] = connection
        with suppress(OSError):  # the test may have ended
            connection.send(str(pid).encode())
        for descriptor in descriptors:
            os.close(descriptor)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    address.unlink()
    address.parent.rmdir()


def _report_ended(waiting: dict[int, socket.socket]) -> None:
    """Send the exit codes of child processes that ended to the tests that wait for them."""
    while waiting:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with waiting.pop(pid) as connection, suppress(OSError):  # a test may not wait for the end
            connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _run_command(
    descriptors: Sequence[int], arguments: Sequence[str], environment: Mapping[str, str], folder: str, prepared_by: str
) -> NoReturn:
    """Run `umg` in this child process, as a new process would."""
    os.setsid()
    for target, descriptor in enumerate(descriptors):
        os.dup2(descriptor, target)
        os.close(descriptor)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    sys.argv = ["umg", *arguments]
    sys.modules["__main__"].__package__ = ""  # for the name of the program in help texts
    code = 0
    try:
        if prepared_by:
            import_module(prepared_by).prepare()
        cli.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # as the children of multiprocessing: to delete all modules takes longer than most commands


if __name__ == "__main__":
    main()
