"""Fast starts of `umg` for tests, forked from a process that has its modules loaded: imports take most of the time of a
short process.

One process has the modules of `umg` loaded, and forks for each start: the child is a process with its own environment,
folder, session and streams, and runs the same `main`. The workers of `umg serve --workers` are forked from it, too. All
pytest workers share it if all tests run, else each has its own. Where a test is about the process itself, it runs
`processes.UMG` instead.
"""

import array
import asyncio
import atexit
import gc
import json
import os
import select
import shutil
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
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from prometheus_client import values

from umg_grpc import cli

MODULES = (
    *(
        "commands",
        "chat_command",
        "image_command_client",
        "video_command_client",
        "key_command_actions",
        "model_list_command",
        "model_route_explanation",
        "usage_command_actions",
        "request_record_tables",
    ),
    *("breaker_metrics", "http_admin_client", "task_record_tables"),
    *("database_admin_client", "config_channels", "config_tables", "provider_texts", "health_command"),
    *("account_tables", "user_command_actions", "end_user_tables", "alert_command_actions"),
    *("channel_command_actions", "model_price_actions", "price_command_actions", "doctor_command"),
)
"""Modules of `umg_grpc.cli` that its commands import."""
OTHER_MODULES = (
    *(
        "umg_grpc.process.gateway_processes",
        "umg_grpc.config.model_aliases",
        "umg_grpc.config.built_in_config",
        "umg_grpc.config.file_schema",
    ),
    *("umg_grpc.config.model_settings", "umg_sandbox", "re2"),
)
"""Modules that most gateways of tests import when they start."""
LARGEST_REQUEST = 1 << 20
STREAMS = 3
"""Standard input, output and error."""


@dataclass(frozen=True)
class Started:
    """Process that was forked, and the connection on which its exit code is sent."""

    pid: int
    connection: socket.socket


class Forked:
    """Process of a started `umg`, with the interface of `asyncio.subprocess.Process` that the tests use."""

    def __init__(self, started: Started, *transports: asyncio.BaseTransport) -> None:
        self.pid = started.pid
        self.returncode: int | None = None
        self._transports = transports
        self._ended = asyncio.create_task(self._wait(started.connection), name="end of umg")

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

    def terminate(self) -> None:
        """Send SIGTERM, unless the process ended."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, unless the process ended."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        for transport in self._transports:
            transport.close()


class ForkedWithPipes(Forked):
    """Process with pipes as its standard output and error."""

    def __init__(self, started: Started, stdout: "Output", stderr: "Output") -> None:
        super().__init__(started, stdout.transport, stderr.transport)
        self.stdout, self.stderr = stdout.reader, stderr.reader

    async def communicate(self) -> tuple[bytes, bytes]:
        """Return standard output and standard error once the process ended. Close its pipes."""
        out, err, _ = await asyncio.gather(self.stdout.read(), self.stderr.read(), self.wait())
        self.close()
        return out, err


@dataclass(frozen=True)
class Output:
    reader: asyncio.StreamReader
    transport: asyncio.ReadTransport


@cache
def _folders(process: int) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="umg-folders-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def new_folder() -> Path:
    """Return an empty folder for a process: it must neither read nor write the data of the checkout's own gateway."""
    return Path(tempfile.mkdtemp(dir=_folders(os.getpid())))


@dataclass(frozen=True)
class Program:
    """Module that a process runs, with its arguments, environment and folder."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: Path = field(default_factory=new_folder)
    """Current folder of the process, below which its data are by default; never that of the checkout."""
    module: str = "umg_grpc.cli"
    """Name of the module whose `main` runs."""
    prepared_by: str = ""
    """Name of a module whose function `prepare` runs before."""


async def start(
    arguments: Sequence[str], environment: Mapping[str, str], prepared_by: str = "", folder: Path | None = None
) -> ForkedWithPipes:
    """Start `umg` with arguments, in a session of its own and without standard input. `prepared_by`: name of a module
    whose function `prepare` the process calls before.
    """
    program = Program(arguments, environment, folder or new_folder(), prepared_by=prepared_by)
    return await start_with_input(b"", program)


async def start_with_input(text: bytes, program: Program) -> ForkedWithPipes:
    """Start a program in a session of its own. `text`: its standard input, which is not larger than a pipe's buffer."""
    (stdin, written), (stdout, its_stdout), (stderr, its_stderr) = os.pipe(), os.pipe(), os.pipe()
    os.write(written, text)
    os.close(written)
    started = await _start(forking().address, program, [stdin, its_stdout, its_stderr])
    for stream in (stdin, its_stdout, its_stderr):
        os.close(stream)
    return ForkedWithPipes(started, await _output(stdout), await _output(stderr))


async def start_on_terminal(terminal: int, program: Program) -> Forked:
    """Start a program in a session of its own, with a terminal as its standard streams."""
    return Forked(await _start(forking().address, program, [terminal] * STREAMS))


async def _start(address: str, program: Program, streams: Sequence[int]) -> Started:
    """Fork at an address. `streams`: descriptors of standard input, output and error."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(address)
    request = {**vars(program), "environment": dict(program.environment), "folder": str(program.folder)}
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))]
    connection.sendmsg([json.dumps(request).encode()], rights)
    connection.setblocking(False)
    return Started(int(await asyncio.get_running_loop().sock_recv(connection, 16)), connection)


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
def forking() -> Forking:
    """Start the process that has the modules loaded and forks."""
    address = str(Path(tempfile.mkdtemp(prefix="umg-preloaded-")) / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen(64)
        command = [sys.executable, "-m", "tests.support.forked_umg_starts", str(listener.fileno())]
        root = Path(__file__).parents[2]
        return Forking(
            address,
            subprocess.Popen(
                command,
                pass_fds=[listener.fileno()],
                stdin=subprocess.PIPE,
                cwd=root,
                process_group=0,  # Ctrl-C interrupts the tests, which still stop their processes
            ),
        )


# --- a process that forks its workers


class ForkedWorker(Forked):
    """Worker of a gateway, with the interface of `asyncio.subprocess.Process` that `worker_processes.Workers` uses."""

    def __init__(self, started: Started, stdin: asyncio.WriteTransport, stdout: Output) -> None:
        super().__init__(started, stdin, stdout.transport)
        self.stdin, self.stdout = stdin, stdout.reader

    async def wait(self) -> int:
        """Return the exit code once the process ended; negative for a signal. Close its pipes."""
        code = await super().wait()
        self.close()
        return code


async def _start_worker(address: str, arguments: Sequence[str], environment: Mapping[str, str]) -> ForkedWorker:
    """Start a worker as `worker_processes.start_worker` does, forked at an address."""
    (its_input, stdin), (stdout, its_output) = os.pipe(), os.pipe()
    program = Program(arguments, environment, Path.cwd())  # that of the gateway
    started = await _start(address, program, [its_input, its_output, sys.stderr.fileno()])
    for stream in (its_input, its_output):
        os.close(stream)
    transport, _ = await asyncio.get_running_loop().connect_write_pipe(asyncio.Protocol, os.fdopen(stdin, "wb", 0))
    return ForkedWorker(started, transport, await _output(stdout))


# --- the process that forks


def main() -> None:
    """Load the modules, and fork for each request on the socket, until the end of the tests closes standard input."""
    os.environ.update(GRPC_VERBOSITY="ERROR", GRPC_ENABLE_FORK_SUPPORT="0")  # as `umg` does before it loads grpc
    gc.set_threshold(cli.START_THRESHOLD)
    vars(sys)["modules"]["readline"] = None  # depends on the terminal when it is imported
    for name in MODULES:
        import_module(f"umg_grpc.cli.{name}")
    for name in OTHER_MODULES:
        import_module(name)
    del sys.modules["readline"]
    import_module("tests.support.first_start").run()
    assert threading.active_count() == 1, "a process with threads must not fork"
    gc.freeze()  # children share the memory of objects that their collections do not visit
    listener = socket.socket(fileno=int(sys.argv[1]))
    address = Path(listener.getsockname())
    vars(import_module("umg_grpc.process.worker_processes"))["start_worker"] = partial(_start_worker, str(address))
    waiting: dict[int, socket.socket] = {}
    ended, its_end = socket.socketpair()  # wakes `select`, which does not notice a signal just before it
    its_end.setblocking(False)
    signal.set_wakeup_fd(its_end.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while sys.stdin not in (ready := select.select([sys.stdin, listener, ended], [], [])[0]):
        if ended in ready:
            ended.recv(4096)  # a byte for each signal; should some be left, `select` returns again
            _report_ended(waiting)
        if listener in ready:
            _fork(listener, waiting, [ended, its_end])
    address.unlink()
    address.parent.rmdir()


def _fork(listener: socket.socket, waiting: dict[int, socket.socket], inherited: Sequence[socket.socket]) -> None:
    """Fork for the next request, and send the id of the child process. `inherited`: sockets that the child closes."""
    connection, _ = listener.accept()
    request, descriptors, _, _ = socket.recv_fds(connection, LARGEST_REQUEST, STREAMS)
    if (pid := os.fork()) == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in (listener, connection, *inherited, *waiting.values()):
            each.close()
        _run_command(descriptors, **json.loads(request))
    waiting[pid] = connection
    with suppress(OSError):  # the test may have ended
        connection.send(str(pid).encode())
    for descriptor in descriptors:
        os.close(descriptor)


def _report_ended(waiting: dict[int, socket.socket]) -> None:
    """Send the exit codes of child processes that ended to the tests that wait for them."""
    while waiting:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with waiting.pop(pid) as connection, suppress(OSError):  # a test may not wait for the end
            connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _run_command(
    descriptors: Sequence[int], arguments: Sequence[str], environment: Mapping[str, str], **program: str
) -> NoReturn:
    """Run `umg`, or another module, in this child process, as a new process would."""
    os.setsid()
    for target, descriptor in enumerate(descriptors):
        os.dup2(descriptor, target)
    for descriptor in set(descriptors):
        os.close(descriptor)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    os.environ.clear()
    os.environ.update(environment)
    values.ValueClass = values.get_value_class()  # depends on the environment when it is imported
    time.tzset()
    os.chdir(program["folder"])
    sys.argv = ["umg", *arguments]
    sys.modules["__main__"].__package__ = ""  # for the name of the program in help texts
    code = 0
    try:
        if program["prepared_by"]:
            import_module(program["prepared_by"]).prepare()
        import_module(program["module"]).main()
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
