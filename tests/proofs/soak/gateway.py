"""Gateway under test, as a process, and the system's figures of that process."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from tests.support.processes import Served, serve
from umg_grpc.store.write_ahead_journal import JOURNAL_SUFFIX

KEY = "sk-umg-of-the-soak"
ATTEMPTS = re.compile(r"^umg_attempts_total\{([^}]*)\} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
SEGMENT = "segment of a journal"
"""Kind of the files that a journal has open, whose names change."""
TASKS = re.compile(r"^umg_tasks(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Figures:
    """Resources of the process, which grow when it leaks."""

    resident_bytes: int
    files: Counter[str]  # open file descriptors other than sockets, by kind
    clients: int  # sockets of callers
    upstreams: int  # sockets to providers
    others: int  # sockets of its own
    tasks: int  # of asyncio; -1 if it is not reported


@dataclass(frozen=True)
class Gateway:
    served: Served

    @property
    def url(self) -> str:
        return self.served.http

    @property
    def grpc(self) -> str:
        return self.served.grpc

    @property
    def pid(self) -> int:
        return self.served.process.pid

    def resident_bytes(self) -> int:
        rollup = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        return sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Rss:"))

    @asynccontextmanager
    async def sampled(self, every: float) -> AsyncGenerator[list[int], None]:
        """Sample the memory during the context, at an interval of `every` seconds."""
        samples = list[int]()

        async def sample() -> None:
            while True:
                await asyncio.sleep(every)
                samples.append(self.resident_bytes())

        sampling = asyncio.create_task(sample())
        try:
            yield samples
        finally:
            sampling.cancel()
            with suppress(asyncio.CancelledError):
                await sampling

    async def figures(self) -> Figures:
        """Return the present figures. The metrics request has a connection of its own, which is not counted."""
        tasks = await self._tasks()
        sockets, files = self._descriptors()
        return Figures(
            resident_bytes=self.resident_bytes(),
            files=files,
            clients=sockets["client"],
            upstreams=sockets["upstream"],
            others=sockets["other"],
            tasks=tasks,
        )

    async def until(self, holds: Callable[[Figures], bool], seconds: float) -> Figures:
        """Return the first figures for which the condition holds, or those after the given seconds."""
        deadline = asyncio.get_running_loop().time() + seconds
        while True:  # there is no notification from the other process
            figures = await self.figures()
            if holds(figures) or asyncio.get_running_loop().time() > deadline:
                return figures
            await asyncio.sleep(0.05)

    async def attempts(self, channel: str) -> Counter[str]:
        """Return the attempts since the start by outcome, at channels whose names begin with `channel`."""
        counted = Counter[str]()
        for labels, count in ATTEMPTS.findall(await self._metrics()):
            values = dict(LABEL.findall(labels))
            if values["channel"].startswith(channel):
                counted[values["outcome"]] += int(float(count))
        return counted

    async def _tasks(self) -> int:
        found = TASKS.search(await self._metrics())
        return int(float(found[1])) if found else -1

    async def _metrics(self) -> str:
        close = {"connection": "close"}
        async with (
            aiohttp.ClientSession(headers=close) as session,
            session.get(f"{self.url}/metrics") as answer,
        ):
            return await answer.text()

    def _descriptors(self) -> tuple[Counter[str], Counter[str]]:
        """Return (sockets by owner, other descriptors by kind)."""
        connections = self._connections()
        sockets, files = Counter[str](), Counter[str]()
        for descriptor in Path(f"/proc/{self.pid}/fd").iterdir():
            try:
                target = str(descriptor.readlink())
            except OSError:
                continue  # closed meanwhile
            if target.startswith("socket:"):
                sockets[connections.get(target, "other")] += 1
            else:
                name = target.partition(":[")[0].rpartition("/")[2]
                files[SEGMENT if name.endswith(JOURNAL_SUFFIX) else name] += 1
        return sockets, files

    def _connections(self) -> dict[str, str]:
        """Return the owners of the TCP sockets, by the sockets' names in /proc."""
        listening = {urlsplit(self.url).port, urlsplit(f"//{self.grpc}").port}
        found = {}
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/{self.pid}/net/{table}").read_text().splitlines()[1:]:
                _, local, _, state, *rest = line.split()
                if state == LISTEN:
                    kind = "other"
                else:
                    kind = "client" if int(local.rpartition(":")[2], 16) in listening else "upstream"
                found[f"socket:[{rest[5]}]"] = kind
        return found


LISTEN = "0A"


@asynccontextmanager
async def gateway(config: str, directory: Path) -> AsyncGenerator[Gateway, None]:
    file = directory / "gateway.yaml"
    file.write_text(config)
    environment = {"UMG_API_KEY": KEY}
    async with serve(directory / "data", "--config", str(file), environment=environment) as served:
        yield Gateway(served)
