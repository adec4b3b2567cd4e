"""One rolling upgrade: two gateways of one version behind nginx are replaced by another version, one after the other."""

import asyncio
import os
import shutil
import socket
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tests.rolling.load import MODEL, VIDEO_MODEL, Callers, Tally
from tests.rolling.versions import ROOT, Version
from tests.support.processes import Served, serve
from tests.support.proxies import proxy_process

NGINX_CONFIG = ROOT / "deploy/nginx/nginx.conf"
KEY = "sk-umg-first-secret-of-the-tests"
START_SECONDS = 60.0
CALLER_LEFT = "499"
"""Status in the log of nginx for a request that its caller cancelled."""


@dataclass(frozen=True)
class Plan:
    """Versions and size of a run."""

    old: Version
    new: Version
    database: str
    redis: str
    callers: int = 2
    """Callers of each kind of call, apart from video tasks."""
    calls: int = 5
    """Complete calls of each kind between two steps."""
    rounds: int = 1
    """Upgrades; each further one replaces all gateways by the new version again."""


@dataclass
class Outcome:
    """Calls and servers of a run."""

    tally: Tally
    served: Counter[str] = field(default_factory=Counter)
    """Requests that nginx passed, by replica and its number of starts."""
    retried: int = 0
    """Requests that nginx passed to the second gateway, because the first did not accept connections."""
    exits: list[int] = field(default_factory=list)
    drain_seconds: list[float] = field(default_factory=list)
    seconds: float = 0.0


def nginx() -> str | None:
    """Return the program; None if it is not installed."""
    return shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")


def _free_ports(number: int) -> list[int]:
    bound = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [each.getsockname()[1] for each in bound]
    for each in bound:
        each.close()
    return ports


@asynccontextmanager
async def proxied(
    folder: Path, gateways: Sequence[tuple[int, int]], http: int, grpc: int
) -> AsyncGenerator[Path, None]:
    """Run nginx with the config of `deploy`, in front of gateways at ports of HTTP and gRPC. Yield its access log."""
    text, log = NGINX_CONFIG.read_text(), folder / "access.log"
    for number, (http_port, grpc_port) in enumerate(gateways, start=1):
        text = text.replace(f"gateway-{number}:8080", f"127.0.0.1:{http_port}")
        text = text.replace(f"gateway-{number}:50051", f"127.0.0.1:{grpc_port}")
    text = text.replace("listen 8080", f"listen 127.0.0.1:{http}").replace("listen 50051", f"listen 127.0.0.1:{grpc}")
    text = (
        text.replace("/tmp/", f"{folder}/").replace("/dev/stdout", str(log)).replace("/dev/stderr", f"{folder}/errors")
    )
    (folder / "nginx.conf").write_text(text)
    program = nginx()
    assert program is not None
    command = (program, "-p", str(folder), "-e", f"{folder}/errors", "-c", f"{folder}/nginx.conf", "-g", "daemon off;")
    async with proxy_process(command, http, seconds=START_SECONDS):
        yield log


@dataclass
class Replica:
    """Place of a gateway, with its process."""

    name: str
    folder: Path
    config: Path
    ports: tuple[int, int]
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    served: Served | None = None

    async def start(self, version: Version) -> None:
        """Start a gateway, which is ready once it printed that it serves."""
        http, grpc = (f"127.0.0.1:{port}" for port in self.ports)
        self.served = await self.stack.enter_async_context(
            serve(
                *(self.folder, "--config", str(self.config), "--http", http, "--grpc", grpc),
                environment={"UMG_API_KEY": KEY, **version.environment},
                program=version.program,
            )
        )
        async with aiohttp.ClientSession() as client, client.get(f"http://{http}/readyz") as response:
            assert response.status == 200, await response.text()

    async def stop(self) -> int:
        """Let the gateway end its calls. Return the exit code."""
        assert self.served is not None
        code = await self.served.stop(seconds=START_SECONDS)
        await self.stack.aclose()
        return code


async def upgrade(plan: Plan, folder: Path) -> Outcome:
    """Run the upgrade. Return all that the callers and the proxy have seen."""
    outcome, began = Outcome(Tally()), time.monotonic()
    config = folder / "umg.yaml"
    config.write_text(
        f"database: {plan.database}\nredis: {plan.redis}\nsecret: a-secret-of-the-rolling-upgrade\n"
        "drain: 30\ndrain_delay: 0.5\n"
        f"channels: [{{name: sandbox, protocols: [sandbox], pace: 60, models: [{MODEL}, {VIDEO_MODEL}]}}]\n"
    )
    ports = _free_ports(6)
    places = [(ports[0], ports[1]), (ports[2], ports[3])]
    replicas = [Replica(f"gateway {n}", folder / f"data-{n}", config, place) for n, place in enumerate(places, start=1)]
    try:
        await asyncio.gather(*(replica.start(plan.old) for replica in replicas))
        async with proxied(folder, places, ports[4], ports[5]) as log:
            callers = Callers(f"http://127.0.0.1:{ports[4]}", f"127.0.0.1:{ports[5]}", KEY, outcome.tally)
            async with callers.calling(plan.callers):
                await outcome.tally.until_more(plan.calls)
                for _ in range(plan.rounds):
                    for replica in replicas:
                        await _replace(replica, plan, outcome, log)
        _read_log(log, places, outcome)
    finally:
        for replica in replicas:
            await replica.stack.aclose()
    outcome.seconds = time.monotonic() - began
    return outcome


async def _replace(replica: Replica, plan: Plan, outcome: Outcome, log: Path) -> None:
    """Replace one gateway by the new version. Wait until the proxy, which avoids a replica for `fail_timeout` after a
    refused connection, sends requests of both kinds to the new one, and until both served calls.
    """
    stopped = time.monotonic()
    outcome.exits.append(await replica.stop())
    outcome.drain_seconds.append(time.monotonic() - stopped)
    await outcome.tally.until_more(plan.calls)  # on the other gateway alone
    before = len(_lines(log))
    await replica.start(plan.new)
    addresses = {f"127.0.0.1:{port}" for port in replica.ports}
    async with asyncio.timeout(START_SECONDS):
        while not outcome.tally.lost and not addresses <= _answering(_lines(log)[before:]):
            await outcome.tally.until_more(1)
    await outcome.tally.until_more(plan.calls)


def _lines(log: Path) -> list[str]:
    """Return the lines of the proxy's log."""
    return log.read_text().splitlines()


def _addresses(line: str) -> list[str]:
    """Return the addresses of the gateways that the proxy tried for a request; the last one answered."""
    return [part.rstrip(",") for part in line.split()[5:] if part.startswith("127.0.0.1:")]


def _answering(lines: Sequence[str]) -> set[str]:
    """Return the addresses that answered a request."""
    return {address for line in lines for address in _addresses(line)[-1:]}


def _read_log(log: Path, places: Sequence[tuple[int, int]], outcome: Outcome) -> None:
    """Count the requests of the proxy's log by the gateway that answered."""
    names = {f"127.0.0.1:{port}": f"gateway {n}" for n, place in enumerate(places, start=1) for port in place}
    for line in _lines(log):
        addresses = [address for address in _addresses(line) if address in names]
        if not addresses and line.split()[3] == CALLER_LEFT:  # at the end of the load, before a gateway was selected
            continue
        outcome.served[names[addresses[-1]] if addresses else f"none: {line}"] += 1
        outcome.retried += len(addresses) > 1
