"""Gateways for tests as operators run them: `umg serve` in a process of its own, forked from one with its modules."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import forked_umg_starts
from tests.support.databases import create_database
from tests.support.secrets import leaked
from umg_grpc.access.bootstrap_key import BOOTSTRAP_KEY_VARIABLE
from umg_grpc.access.secret_files import BOOTSTRAP_FILE

START_SECONDS = 180
UMG = (sys.executable, "-m", "umg_grpc.cli")
"""Command of a process that loads its modules itself."""
AUTHORITIES = {"SSL_CERT_FILE", "SSL_CERT_DIR"}
READ_AT_IMPORT = {"PYTHONPATH", *AUTHORITIES}
"""Variables that take effect while modules are loaded: aiohttp reads the authorities then. They need a new process."""


@dataclass
class Served:
    """Gateway in a process of its own, which has printed its addresses."""

    process: asyncio.subprocess.Process | forked_umg_starts.ForkedWithPipes
    data: Path
    environment: dict[str, str]
    lines: list[str] = field(default_factory=list)  # of standard output
    log: list[str] = field(default_factory=list)  # of standard error
    logged: asyncio.Condition = field(default_factory=asyncio.Condition)

    def printed(self, pattern: str) -> str:
        """Return the first group of a pattern in the lines that the gateway printed."""
        found = re.search(pattern, "\n".join(self.lines))
        assert found is not None, self.lines
        return found[1]

    @property
    def url(self) -> str:
        return self.printed(r"HTTP +(https?://\S+)")

    @property
    def http(self) -> str:
        return self.url

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}

    @property
    def grpc(self) -> str:
        return self.printed(r"gRPC +(\S+)")

    @property
    def key(self) -> str:
        """First key: the one in the environment, else the one that the gateway's first start stored."""
        return self.environment.get(BOOTSTRAP_KEY_VARIABLE) or (self.data / BOOTSTRAP_FILE).read_text().strip()

    @property
    def curl(self) -> str:
        return self.lines[-1]

    async def until_logged(self, text: str, seconds: float = 60) -> str:
        """Return the first line of the log that contains a text, once it is there."""
        async with self.logged, asyncio.timeout(seconds):
            while True:
                for line in self.log:
                    if text in line:
                        return line
                await self.logged.wait()

    async def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = 60) -> int:
        """Send a signal to the gateway. Return its exit code."""
        self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), seconds)


@asynccontextmanager
async def serve(
    data: Path,
    *arguments: str,
    environment: dict[str, str] | None = None,
    program: Sequence[str] = (),
    prepared_by: str = "",
) -> AsyncGenerator[Served, None]:
    """Run `umg serve` on free ports, or another program with the same commands. Yield once it printed that it
    serves. A forked gateway has an empty database, as after a first start, since to create it takes a quarter of a start.
    `prepared_by`: name of a module with changes to `umg`, see `forked_umg_starts.start`.
    """
    process: asyncio.subprocess.Process | forked_umg_starts.ForkedWithPipes
    ports: Sequence[str] = [
        part for flag in ("--http", "--grpc") if flag not in arguments for part in (flag, "127.0.0.1:0")
    ]
    variables = {**_inherited(), **(environment or {})}
    first_key = variables.get(BOOTSTRAP_KEY_VARIABLE, "")
    assert len(first_key) <= 1 or leaked([first_key]), "the first key has no form that is found in logs"
    command = ("serve", "--data", str(data), *ports, *arguments)
    if not READ_AT_IMPORT.isdisjoint(environment or {}):
        program = UMG
    if program:
        process = await asyncio.create_subprocess_exec(
            *(*program, *command),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=variables,
            cwd=forked_umg_starts.new_folder(),
            start_new_session=True,
        )
    else:
        await create_database(data)
        process = await forked_umg_starts.start(command, variables, prepared_by)
    served = Served(process, data, variables)
    reading = asyncio.create_task(_read_log(served))
    try:
        await asyncio.wait_for(_read_until_serving(served), START_SECONDS)
        yield served
        assert not leaked(served.log), "secrets are in the log"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await reading
        await process.communicate()  # to the end of its pipes: the loop may close before it has seen them


async def _read_until_serving(served: Served) -> None:
    assert served.process.stdout is not None
    while line := (await served.process.stdout.readline()).decode():
        served.lines.append(line.rstrip("\n"))
        if line.startswith(("curl", "umg chat", "  models  none")):
            return
    await served.process.wait()
    raise AssertionError(f"it does not serve: {served.lines} {served.log}")


async def _read_log(served: Served) -> None:
    assert served.process.stderr is not None
    while line := (await served.process.stderr.readline()).decode():
        async with served.logged:
            served.log.append(line.rstrip("\n"))
            served.logged.notify_all()


def _inherited() -> dict[str, str]:
    """Return the variables of this process without the machine's own authorities, which each start would load."""
    return {name: value for name, value in os.environ.items() if name not in AUTHORITIES}


async def run(*arguments: str, environment: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Run another `umg` command. Return its exit code, standard output and standard error."""
    variables = {**_inherited(), **(environment or {})}
    process: asyncio.subprocess.Process | forked_umg_starts.ForkedWithPipes
    if READ_AT_IMPORT.isdisjoint(environment or {}):
        process = await forked_umg_starts.start(arguments, variables)
    else:
        process = await asyncio.create_subprocess_exec(
            *(*UMG, *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=variables,
            cwd=forked_umg_starts.new_folder(),
        )
    out, err = await asyncio.wait_for(process.communicate(), START_SECONDS)
    return process.returncode or 0, out.decode(), err.decode()
