"""`umg serve --workers N`: a parent that holds the ports and the local model, and N gateways that share them.

The parent tells its workers over their standard input where the local model can be called, one line of JSON each time
that changes; the end of that input tells a worker that the parent is gone.
"""

import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

import msgspec
import structlog
from prometheus_client.multiprocess import mark_process_dead

from umg_grpc.cli.serve import GRPC, HTTP, Address, Options
from umg_grpc.config import Config
from umg_grpc.errors import UmgError
from umg_grpc.service.metrics import SHARED_FOLDER
from umg_grpc.upstream.local.latest import Latest
from umg_grpc.upstream.local.supervisor import LocalModel

logger = structlog.get_logger()

WORKER = "UMG_WORKER"
"""Environment variable that makes a process a worker; its value says whether the parent runs the local model."""
WITH_LOCAL, WITHOUT_LOCAL = "with-local-model", "without-local-model"

START_SECONDS = 60.0
GRACE_SECONDS = 10.0  # beyond the drain, until a worker is killed
FIRST_DELAY_SECONDS = 0.2  # before a worker is started again; doubled each time, up to
LONGEST_DELAY_SECONDS = 30.0
STABLE_SECONDS = 60.0  # a worker that lived this long did not fail at its start
LOOK_SECONDS = 3600.0


@dataclass(frozen=True)
class RelayedEndpoint:
    """Where the parent's local model can be called."""

    base_url: str
    headers: Mapping[str, str]


class RelayedModel:
    """The parent's local model as a worker knows it."""

    def __init__(self) -> None:
        self._latest = Latest[RelayedEndpoint]("the local model")

    def learn(self, line: bytes) -> None:
        """Takes a line of the parent's."""
        self._latest.publish(msgspec.json.decode(line, type=RelayedEndpoint))

    async def wait_ready(self, seconds: float, *, after: object = None) -> RelayedEndpoint:
        """As `LocalModel.wait_ready`."""
        return await self._latest.wait(seconds, after=after)


async def follow_parent(model: RelayedModel | None) -> None:
    """Reads what the parent tells, until the parent is gone."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        if model is not None:
            model.learn(line)


class Workers:
    """The worker processes. One that ends is started again; `close` lets all drain."""

    def __init__(self, options: Options, config: Config, local: LocalModel | None) -> None:
        self._options = options
        self._drain = config.drain
        self._local = local
        self._stack = AsyncExitStack()
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._endpoint = b""  # the line that tells where the local model is
        self._serving: set[int] = set()
        self._all_serving = asyncio.Event()
        self._closed = asyncio.Event()
        self._owners: list[asyncio.Task[None]] = []
        self._teller: asyncio.Task[None] | None = None
        self.http: Address | None = None
        self.grpc = options.grpc

    async def start(self) -> None:
        """Takes the ports, which the parent holds but does not listen on, and starts the workers."""
        options = self._options
        if HTTP in options.faces:
            self.http = self._hold(options.http)
        if GRPC in options.faces:
            self.grpc = self._hold(options.grpc)
        figures = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="umg-metrics-"))
        for number in range(options.workers):
            self._owners.append(asyncio.create_task(self._keep_alive(number, figures), name=f"worker {number}"))
        if self._local is not None:
            self._teller = asyncio.create_task(self._tell(self._local), name="local model's address")

    async def wait_serving(self, stop: asyncio.Event) -> None:
        """Returns when every worker listens, or at `stop`. Raises OSError when they do not in time."""
        waits = [asyncio.create_task(event.wait()) for event in (self._all_serving, stop)]
        done, _ = await asyncio.wait(waits, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)
        if not done:
            raise OSError(f"the workers do not serve within {START_SECONDS:g} s; the log above says why")

    def reload(self) -> None:
        """Lets the workers read the config again. One that does not serve yet reads the new file anyway."""
        for number in self._serving:
            self._signal(self._processes[number], signal.SIGHUP)

    async def close(self) -> None:
        """Returns when all workers have drained and ended."""
        self._closed.set()
        for process in self._processes.values():
            self._signal(process, signal.SIGTERM)
        if self._owners:
            _, late = await asyncio.wait(self._owners, timeout=self._drain + GRACE_SECONDS)
            if late:
                for process in self._processes.values():
                    self._signal(process, signal.SIGKILL)
                await asyncio.wait(late)
        if self._teller is not None:
            self._teller.cancel()
            await asyncio.wait([self._teller])
        await self._stack.aclose()

    def _hold(self, address: Address) -> Address:
        """Binds the address for sharing, so that port 0 becomes one port for all and no other program takes it."""
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        held = self._stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of the last process may linger
        try:
            held.bind((address.host, address.port))
        except OSError as error:
            raise OSError(f"cannot listen on {address}: {error.strerror}") from None
        return Address(address.host, held.getsockname()[1])

    async def _keep_alive(self, number: int, figures: str) -> None:
        delay = FIRST_DELAY_SECONDS
        while not self._closed.is_set():
            started = time.monotonic()
            try:
                code = await self._live(number, figures)
            except Exception:
                logger.exception("a worker could not be started", worker=number)
            else:
                if not self._closed.is_set():
                    logger.error("a worker ended and is started again", worker=number, exit_code=code)
            if time.monotonic() - started > STABLE_SECONDS:
                delay = FIRST_DELAY_SECONDS
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closed.wait(), delay)
            delay = min(2 * delay, LONGEST_DELAY_SECONDS)

    async def _live(self, number: int, figures: str) -> int:
        """The exit code of one life of a worker."""
        options = self._options
        arguments = [
            *("serve", "--http", str(self.http or options.http), "--grpc", str(self.grpc)),
            *("--data", str(options.data), "--faces", ",".join(options.faces)),
            *(("--config", str(options.config)) if options.config else ()),
        ]
        local = WITH_LOCAL if self._local else WITHOUT_LOCAL
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "umg_grpc.cli", *arguments),
            env={**os.environ, WORKER: local, SHARED_FOLDER: figures},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the parent, which then ends its workers
        )
        self._processes[number] = process
        try:
            if self._closed.is_set():
                self._signal(process, signal.SIGTERM)
            self._send(process)
            if process.stdout is not None and await process.stdout.readline():
                self._serving.add(number)
                if len(self._serving) == options.workers:
                    self._all_serving.set()
            return await process.wait()
        finally:
            self._serving.discard(number)
            mark_process_dead(process.pid, figures)  # what it was at when it ended is no more

    async def _tell(self, local: LocalModel) -> None:
        """Keeps the workers informed of where the local model is."""
        known = None
        while True:
            with suppress(UmgError):  # it is still down: wait on
                known = await local.wait_ready(LOOK_SECONDS, after=known)
                self._endpoint = msgspec.json.encode({"base_url": known.base_url, "headers": known.headers}) + b"\n"
                for process in self._processes.values():
                    self._send(process)

    def _send(self, process: asyncio.subprocess.Process) -> None:
        if self._endpoint and process.stdin is not None and process.returncode is None:
            process.stdin.write(self._endpoint)

    @staticmethod
    def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it ended meanwhile
            process.send_signal(number)
