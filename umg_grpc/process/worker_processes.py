"""Worker processes of `umg serve --workers N`: a parent has the ports and the local model, which N workers share. At
each change of the local model's address, the parent writes it to the workers' standard input, as one line of JSON. The
end of this input means that the parent has ended.
"""

import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

import msgspec
import structlog
from prometheus_client.multiprocess import mark_process_dead

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Address, Config
from umg_grpc.process import port_checks
from umg_grpc.process.config_loading import flags
from umg_grpc.process.port_checks import check_free, claim, taken
from umg_grpc.process.reload_sockets import Outcome
from umg_grpc.process.serve_options import GRPC_FACE, HTTP_FACE, Options
from umg_grpc.service.service_metrics import SHARED_FOLDER
from umg_grpc.upstream.local.async_value import AsyncValue
from umg_grpc.upstream.local.model_process_supervisor import LocalModel

logger = structlog.get_logger()

WORKER_VARIABLE = "UMG_WORKER"
"""Environment variable that makes a process a worker; its value is `WITH_LOCAL` or `WITHOUT_LOCAL`."""
WITH_LOCAL, WITHOUT_LOCAL = "with-local-model", "without-local-model"

START_SECONDS = 60.0
RELOAD_SECONDS = 30.0
GRACE_SECONDS = 10.0  # after the drain, until a worker is killed
FIRST_DELAY_SECONDS = 0.2  # before a worker is restarted; doubled each time up to the longest delay
MAX_DELAY_SECONDS = 30.0
STABLE_SECONDS = 60.0  # run time of a worker after which the delay starts at the first again
MAX_WAIT_SECONDS = 3600.0


@dataclass(frozen=True)
class RelayedEndpoint:
    """Address of the local model's server, which the parent process runs, and the headers that calls of it need."""

    base_url: str
    headers: Mapping[str, str]


class RelayedModel:
    """Local text model that the parent process runs, as a worker uses it: the current address of its server."""

    def __init__(self) -> None:
        self._latest = AsyncValue[RelayedEndpoint]("the local model")

    def learn(self, line: bytes) -> None:
        """Set the current address from `line`, the JSON that the parent wrote."""
        self._latest.publish(msgspec.json.decode(line, type=RelayedEndpoint))

    async def wait_ready(self, seconds: float, *, after: object = None) -> RelayedEndpoint:
        return await self._latest.wait(seconds, after=after)


async def follow_parent(model: RelayedModel | None) -> None:
    """Read the parent's lines until the parent ends. Update the local model's address (None: a worker without one)."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        if model is not None:
            model.learn(line)


async def start_worker(arguments: Sequence[str], environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    """Start `umg` with `arguments` in a new process, with pipes as its standard input and output."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "umg_grpc.cli", *arguments),
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # only the parent receives Ctrl-C, and stops its workers
    )


class Workers:
    """Supervisor of the worker processes, in their parent: restarts workers that end, and stops all at a shutdown."""

    def __init__(self, options: Options, config: Config, local: LocalModel | None) -> None:
        self._options = options
        self._config = config
        self._local = local
        self._stack = AsyncExitStack()
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._endpoint = b""  # the line with the endpoint of the local model
        self._serving: set[int] = set()
        self._all_serving = asyncio.Event()
        self._closed = asyncio.Event()
        self._owners: list[asyncio.Task[None]] = []
        self._relay: asyncio.Task[None] | None = None
        self._reloading = asyncio.Lock()
        self._outcomes: dict[int, asyncio.Future[Outcome]] = {}  # of the reload in progress, by worker
        self.http: Address | None = None
        self.grpc = options.grpc
        self.metrics: Address | None = None

    def bind(self) -> None:
        """Reserve the workers' ports, without listening. Raises OSError if an address cannot be bound."""
        options = self._options
        if HTTP_FACE in options.faces:
            self.http = self._hold(options.http, port_checks.HTTP_PURPOSE)
        if GRPC_FACE in options.faces:
            self.grpc = self._hold(options.grpc, port_checks.GRPC_PURPOSE)
        if self._config.metrics.address is not None:
            self.metrics = self._hold(self._config.metrics.address, port_checks.METRICS_PURPOSE)

    async def start(self) -> None:
        """Start the worker processes."""
        metrics_folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="umg-metrics-"))
        for number in range(self._options.workers):
            self._owners.append(asyncio.create_task(self._keep_alive(number, metrics_folder), name=f"worker {number}"))
        if self._local is not None:
            self._relay = asyncio.create_task(self._relay_endpoint(self._local), name="local model's address")

    async def wait_serving(self, stop: asyncio.Event) -> None:
        """Wait until every worker serves, or until `stop` is set. Raises OSError after `START_SECONDS`."""
        waits = [asyncio.create_task(event.wait()) for event in (self._all_serving, stop)]
        done, _ = await asyncio.wait(waits, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)
        if not done:
            raise OSError(f"the workers do not serve within {START_SECONDS:g} s; the log above says why")

    def signal_reload(self) -> None:
        """Make the workers reload the config, without waiting; a starting worker reads the new config anyway."""
        for number in self._serving:
            self._signal(self._processes[number], signal.SIGHUP)

    async def reload(self) -> list[Outcome]:
        """Make the workers reload. Return their outcomes; no response in time is an outcome with a problem."""
        async with self._reloading:  # signals that arrive together may be delivered as one
            loop = asyncio.get_running_loop()
            self._outcomes = {number: loop.create_future() for number in sorted(self._serving)}
            outcomes = dict(self._outcomes)
            self.signal_reload()
            if outcomes:
                await asyncio.wait(outcomes.values(), timeout=RELOAD_SECONDS)
            late = f"no response within {RELOAD_SECONDS:g} s"
            return [
                each.result() if each.done() else Outcome(self._processes[number].pid, late)
                for number, each in outcomes.items()
            ]

    def stop(self) -> None:
        """Signal the workers to stop. Workers that end are no longer restarted."""
        self._closed.set()
        for process in self._processes.values():
            self._signal(process, signal.SIGTERM)

    async def close(self) -> None:
        """Stop the workers, and wait until they have finished their calls; workers that take too long are killed."""
        if not self._closed.is_set():
            self.stop()
        if self._owners:
            _, late = await asyncio.wait(self._owners, timeout=self._config.drain + GRACE_SECONDS)
            if late:
                for process in self._processes.values():
                    self._signal(process, signal.SIGKILL)
                await asyncio.wait(late)
        if self._relay is not None:
            self._relay.cancel()
            await asyncio.wait([self._relay])
        await self._stack.aclose()

    def _hold(self, address: Address, purpose: str) -> Address:
        """Reserve an address by binding it, without listening. Return the address with its port."""
        if address.port:
            self._stack.enter_context(claim(address, purpose))
            check_free(address, purpose)
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        bound = self._stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of the previous process may linger
        try:
            bound.bind((address.host, address.port))
        except OSError as error:
            raise taken(address, error, purpose) from None
        held = Address(address.host, bound.getsockname()[1])
        if not address.port:
            self._stack.enter_context(claim(held, purpose))
        return held

    async def _keep_alive(self, number: int, metrics_folder: str) -> None:
        delay = FIRST_DELAY_SECONDS
        while not self._closed.is_set():
            started = time.monotonic()
            try:
                code = await self._run_worker(number, metrics_folder)
            except Exception:
                logger.exception("a worker could not be started", worker=number)
            else:
                if not self._closed.is_set():
                    logger.error("a worker ended and is started again", worker=number, exit_code=code)
            if time.monotonic() - started > STABLE_SECONDS:
                delay = FIRST_DELAY_SECONDS
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closed.wait(), delay)
            delay = min(2 * delay, MAX_DELAY_SECONDS)

    async def _run_worker(self, number: int, metrics_folder: str) -> int:
        options = self._options
        arguments = [
            *("serve", "--http", str(self.http or options.http), "--grpc", str(self.grpc)),
            *("--data", str(options.data), "--faces", ",".join(options.faces)),
            *("--workers", str(options.workers)),
            *flags(options.config),
            *(("--metrics", str(self.metrics)) if self.metrics else ()),
        ]
        local = WITH_LOCAL if self._local else WITHOUT_LOCAL
        process = await start_worker(arguments, {**os.environ, WORKER_VARIABLE: local, SHARED_FOLDER: metrics_folder})
        self._processes[number] = process
        try:
            if self._closed.is_set():
                self._signal(process, signal.SIGTERM)
            self._send(process)
            if process.stdout is not None and await process.stdout.readline():
                self._serving.add(number)
                if len(self._serving) == options.workers:
                    self._all_serving.set()
                while line := await process.stdout.readline():
                    with suppress(msgspec.DecodeError):
                        self._finish_reload(number, msgspec.json.decode(line, type=Outcome))
            return await process.wait()
        finally:
            self._serving.discard(number)
            self._finish_reload(number, Outcome(process.pid, "the process ended"))
            mark_process_dead(process.pid, metrics_folder)  # removes the gauges of the ended process

    def _finish_reload(self, number: int, outcome: Outcome) -> None:
        if (waiting := self._outcomes.pop(number, None)) is not None and not waiting.done():
            waiting.set_result(outcome)

    async def _relay_endpoint(self, local: LocalModel) -> None:
        known = None
        while True:
            with suppress(UmgError):  # it is still down: wait again
                known = await local.wait_ready(MAX_WAIT_SECONDS, after=known)
                self._endpoint = msgspec.json.encode({"base_url": known.base_url, "headers": known.headers}) + b"\n"
                for process in self._processes.values():
                    self._send(process)

    def _send(self, process: asyncio.subprocess.Process) -> None:
        if self._endpoint and process.stdin is not None and process.returncode is None:
            process.stdin.write(self._endpoint)

    @staticmethod
    def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # the process has ended meanwhile
            process.send_signal(number)
