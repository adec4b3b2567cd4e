"""Processes of the benchmark's servers and loads: started on a CPU core, measured through /proc, ended as process
groups.
"""

import asyncio
import contextlib
import os
import re
import signal
import time
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

ADDRESS = re.compile(rb"http://127\.0\.0\.1:(\d+)")
GRPC_ADDRESS = re.compile(rb"gRPC +127\.0\.0\.1:(\d+)")
READY_SECONDS = 180.0
ENDING_SECONDS = 5.0
TICKS = os.sysconf("SC_CLK_TCK")


class BenchError(Exception):
    """Error that ends the run, with its reason as the message."""


class Process:
    """Program that was started, with all its child processes, in a session of its own."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.session = process.pid
        self._process = process
        self._log = log
        self._draining: asyncio.Task[None] | None = None

    async def line(self, seconds: float | None = None) -> bytes:
        """Return the next line of the program's output. Raises BenchError if the program ends or takes longer."""
        assert self._process.stdout
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), seconds)
        except TimeoutError:
            raise BenchError(f"{self.name} said nothing for {seconds:g} s{self.error_output()}") from None
        if not line:
            raise BenchError(f"{self.name} ended{self.error_output()}")
        return line

    async def port(self) -> int:
        """Return the port of the first address that the program prints when it serves. Later output is discarded."""
        (port,) = await self.ports(ADDRESS)
        return port

    async def ports(self, *patterns: re.Pattern[bytes]) -> list[int]:
        """Return the ports, each the group of a pattern, that the program prints. Later output is discarded."""
        deadline, found = time.monotonic() + READY_SECONDS, dict[re.Pattern[bytes], int]()
        while len(found) < len(patterns):
            line = await self.line(deadline - time.monotonic())
            found |= {each: int(match[1]) for each in patterns if (match := each.search(line))}
        self.discard_output()
        return [found[each] for each in patterns]

    def discard_output(self) -> None:
        """Read and discard the program's further output, so that it never waits for a reader."""
        self._draining = asyncio.create_task(self._drain())

    def error_output(self) -> str:
        """Return the end of the program's standard error, to append to a message."""
        text = self._log.read_text(errors="replace").strip()
        return f":\n{text[-2000:]}" if text else ""

    def cpu_seconds(self) -> float:
        """Return the CPU time of all processes of the program so far."""
        return sum(int(ticks) for fields in _family(self.session) for ticks in fields[11:15]) / TICKS

    def main_thread_seconds(self) -> float:
        """Return the CPU time of the main thread of the program's first process so far."""
        fields = Path(f"/proc/{self.session}/task/{self.session}/stat").read_text().rpartition(") ")[2].split()
        return sum(map(int, fields[11:13])) / TICKS

    def resident_bytes(self) -> int:
        """Return the memory of all processes of the program: the sum of their resident sets."""
        total = 0
        for fields in _family(self.session):
            rollup = Path(f"/proc/{fields[-1]}/smaps_rollup").read_text()
            total += sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Rss:"))
        return total

    async def end(self) -> None:
        """Terminate all processes of the program, with SIGTERM first and then with SIGKILL."""
        try:
            _signal(self.session, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), ENDING_SECONDS)
        finally:  # also when the wait is cancelled
            _signal(self.session, signal.SIGKILL)
        if self._draining:
            await self._draining
        await self._process.communicate()  # reads to the end: the loop may close before it has seen it

    async def _drain(self) -> None:
        assert self._process.stdout
        while await self._process.stdout.read(1 << 16):
            pass


@asynccontextmanager
async def started(
    name: str, command: Sequence[str], core: int | None, logs: Path, environment: Mapping[str, str] | None = None
) -> AsyncGenerator[Process, None]:
    """Run a program on a core (on any if None) until the block ends."""
    log = logs / f"{name}.log"
    with log.open("ab") as errors, _on(core):
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    running = Process(name, process, log)
    try:
        yield running
    finally:
        await running.end()


async def output_of(
    command: Sequence[str], folder: Path, core: int | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Run a command in a folder to its end, on a core. Return its output without white space at the ends. Raises
    BenchError if it fails.
    """
    with _on(core):
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    try:
        output, errors = await process.communicate()
    finally:  # also when the wait is cancelled
        if process.returncode is None:
            _signal(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode != 0:
        raise BenchError(f"{' '.join(command[:3])} failed: {errors.decode(errors='replace').strip()[-2000:]}")
    return output.decode().strip()


@contextlib.contextmanager
def _on(core: int | None) -> Generator[None, None, None]:
    """Pin the processes that are started in the block to a core from their first instruction, by inheritance."""
    if core is None:
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def core_seconds(core: int) -> float:
    """Return the busy time of the core, for all programs, since the machine started."""
    for line in Path("/proc/stat").read_text().splitlines():
        name, *ticks = line.split()
        if name == f"cpu{core}":
            user, nice, system, _, _, interrupt, soft, stolen = (int(each) for each in ticks[:8])
            return (user + nice + system + interrupt + soft + stolen) / TICKS
    raise BenchError(f"/proc/stat does not know core {core}")


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def _family(session: int) -> list[list[str]]:
    """Return the fields of /proc/PID/stat, from the state on, and the id of every process of a session, and of the
    processes that these have started: workers of the gateway have sessions of their own.
    """
    known = dict[str, list[str]]()
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                known[path.name] = [*(path / "stat").read_text().rpartition(") ")[2].split(), path.name]
    found = {pid for pid, fields in known.items() if int(fields[3]) == session}
    while more := {pid for pid, fields in known.items() if fields[1] in found} - found:
        found |= more
    return [known[pid] for pid in found]
