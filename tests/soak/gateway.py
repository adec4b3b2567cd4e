"""The gateway under test, in a process of its own, and what the system says of that process."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from tests.processes import Served, serve

KEY = "sk-umg-soak"
ATTEMPTS = re.compile(r"^umg_attempts_total\{([^}]*)\} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
TASKS = re.compile(r"^umg_tasks(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Figures:
    """What the process has: it grows when something leaks."""

    resident_bytes: int
    files: Counter[str]  # open file descriptors that are no sockets, by what they are
    clients: int  # sockets of callers
    upstreams: int  # sockets to providers
    others: int  # sockets of its own
    tasks: int  # of asyncio; -1 where it does not say


@dataclass(frozen=True)
class Gateway:
    """One that serves."""

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
        """Its memory meanwhile, every so many seconds."""
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
        """What it has now. The connection that asks is its own and not counted."""
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
        """The first figures of which something holds, or those after so many seconds."""
        deadline = asyncio.get_running_loop().time() + seconds
        while True:  # another process tells nobody when its figures change
            figures = await self.figures()
            if holds(figures) or asyncio.get_running_loop().time() > deadline:
                return figures
            await asyncio.sleep(0.05)

    async def attempts(self, channel: str) -> Counter[str]:
        """By outcome, those at channels whose names begin so, since it was started."""
        counted = Counter[str]()
        for labels, count in ATTEMPTS.findall(await self._metrics()):
            told = dict(LABEL.findall(labels))
            if told["channel"].startswith(channel):
                counted[told["outcome"]] += int(float(count))
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
        """(sockets by whose they are, all others by what they are)."""
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
                files[target.partition(":[")[0].rpartition("/")[2]] += 1
        return sockets, files

    def _connections(self) -> dict[str, str]:
        """What is known of the sockets of TCP, by their names in /proc: whose they are."""
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
    """The gateway of a config, until the context ends."""
    file = directory / "gateway.yaml"
    file.write_text(config)
    environment = {"UMG_API_KEY": KEY}
    async with serve(directory / "data", "--config", str(file), environment=environment) as served:
        yield Gateway(served)
