"""One rolling upgrade: two gateways of one version behind nginx are replaced by another version, one after the other."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.proofs.rolling.load import MODEL, TEXT_KINDS, VIDEO_MODEL, Callers
from tests.proofs.rolling.versions import Version
from tests.support.load import Tally
from tests.support.proxies import START_SECONDS, Ports, free_ports, nginx
from tests.support.replicas import KEY, Replica

CALLER_LEFT = "499"
"""Status in the log of nginx for a request that its caller cancelled."""


@dataclass(frozen=True)
class Plan:
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
    tally: Tally
    served: Counter[str] = field(default_factory=Counter)
    """Requests that nginx passed, by replica and its number of starts."""
    retried: int = 0
    """Requests that nginx passed to the second gateway, because the first did not accept connections."""
    exits: list[int] = field(default_factory=list)
    drain_seconds: list[float] = field(default_factory=list)
    seconds: float = 0.0


async def upgrade(plan: Plan, folder: Path) -> Outcome:
    outcome, began = Outcome(Tally()), time.monotonic()
    config = folder / "umg.yaml"
    config.write_text(
        f"database: {plan.database}\nredis: {plan.redis}\nsecret: a-secret-of-the-rolling-upgrade\n"
        "drain: 30\ndrain_delay: 0.5\n"
        f"channels: [{{name: sandbox, protocols: [sandbox], pace: 60, models: [{MODEL}, {VIDEO_MODEL}]}}]\n"
    )
    *places, own = free_ports(3)
    replicas = [Replica(f"gateway {n}", folder / f"data-{n}", config, place) for n, place in enumerate(places, start=1)]
    try:
        await asyncio.gather(*(_start(replica, plan.old) for replica in replicas))
        async with nginx(folder, places, own) as log:
            callers = Callers(f"http://127.0.0.1:{own.http}", f"127.0.0.1:{own.grpc}", KEY, outcome.tally)
            async with callers.calling(plan.callers):
                await outcome.tally.until_more(TEXT_KINDS, plan.calls)
                for _ in range(plan.rounds):
                    for replica in replicas:
                        await _replace(replica, plan, outcome, log)
        _read_log(log, places, outcome)
    finally:
        for replica in replicas:
            await replica.aclose()
    outcome.seconds = time.monotonic() - began
    return outcome


async def _start(replica: Replica, version: Version) -> None:
    await replica.start(program=version.program, environment=version.environment)
    await replica.check_ready()


async def _replace(replica: Replica, plan: Plan, outcome: Outcome, log: Path) -> None:
    stopped = time.monotonic()
    outcome.exits.append(await replica.stop())
    outcome.drain_seconds.append(time.monotonic() - stopped)
    await outcome.tally.until_more(TEXT_KINDS, plan.calls)  # on the other gateway alone
    before = len(_lines(log))
    await _start(replica, plan.new)
    addresses = {f"127.0.0.1:{port}" for port in (replica.ports.http, replica.ports.grpc)}
    async with asyncio.timeout(START_SECONDS):
        while not outcome.tally.failures and not addresses <= _answering(_lines(log)[before:]):
            await outcome.tally.until_more(TEXT_KINDS, 1)
    await outcome.tally.until_more(TEXT_KINDS, plan.calls)


def _lines(log: Path) -> list[str]:
    return log.read_text().splitlines()


def _addresses(line: str) -> list[str]:
    return [part.rstrip(",") for part in line.split()[5:] if part.startswith("127.0.0.1:")]


def _answering(lines: Sequence[str]) -> set[str]:
    return {address for line in lines for address in _addresses(line)[-1:]}


def _read_log(log: Path, places: Sequence[Ports], outcome: Outcome) -> None:
    """Count the requests of the proxy's log by the gateway that answered."""
    names = {
        f"127.0.0.1:{port}": f"gateway {n}"
        for n, place in enumerate(places, start=1)
        for port in (place.http, place.grpc)
    }
    for line in _lines(log):
        addresses = [address for address in _addresses(line) if address in names]
        if not addresses and line.split()[3] == CALLER_LEFT:  # at the end of the load, before a gateway was selected
            continue
        outcome.served[names[addresses[-1]] if addresses else f"none: {line}"] += 1
        outcome.retried += len(addresses) > 1
