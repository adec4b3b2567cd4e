"""Cluster of the proof: three gateways behind a proxy, with PostgreSQL, Redis and counting providers of their own."""

import asyncio
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import yaml

from tests.proofs.chaos.load import KEYS, LARGE
from tests.proofs.chaos.provider import CountingProvider
from tests.proofs.chaos.videos import FAMILY
from tests.proofs.crash import gateway as faster_polls
from tests.proofs.crash.providers import Counted, served
from tests.proofs.ledger.run import config_of
from tests.support import proxies
from tests.support.databases import Postgres
from tests.support.full_disks import Disk, disk_at
from tests.support.proxies import Ports, free_ports
from tests.support.redis import RedisServer
from tests.support.replicas import Replica
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.store import open_store
from umg_grpc.store.database import Store

DISK = "48m"
Proxy: TypeAlias = Callable[[Path, Sequence[Ports], Ports], AbstractAsyncContextManager[Path]]
PROXIES: dict[str, Proxy] = {"Envoy": proxies.envoy, "nginx": proxies.nginx}


@dataclass
class Servers:
    """PostgreSQL and Redis, which events stop and start."""

    folder: Path
    postgres: Postgres
    redis: RedisServer

    def freeze_postgres(self, number: signal.Signals) -> None:
        """Send SIGSTOP or SIGCONT to all processes of PostgreSQL."""
        parent = int((self.folder / "postgres/data/postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        for pid in (parent, *map(int, children)):
            os.kill(pid, number)


@contextmanager
def servers() -> Iterator[Servers]:
    """Run PostgreSQL and Redis in a new folder."""
    folder = Path(tempfile.mkdtemp(prefix="umg-chaos-"))
    folder.chmod(0o755)  # PostgreSQL runs as another user
    try:
        for name in ("postgres", "redis"):
            (folder / name).mkdir()
        found = Servers(folder, Postgres(folder / "postgres"), RedisServer(folder / "redis"))
        found.redis.start()
        try:
            yield found
        finally:
            found.redis.stop()
            found.postgres.stop()
    finally:
        shutil.rmtree(folder)


@dataclass
class Cluster:
    servers: Servers
    folder: Path
    database: str
    store: Store
    replicas: Sequence[Replica]
    address: Ports
    """Ports of the proxy."""
    log: Path
    """Log of the proxy."""
    provider: CountingProvider
    counted: Counted
    key_ids: Sequence[str]
    """Ids of `KEYS` in their order."""
    secrets: Sequence[str]
    video_secret: str
    disk: Disk
    """Disk of the data folder of the first replica."""
    kills: list[tuple[float, float]] = field(default_factory=list)
    """Times before and after each SIGKILL of a gateway, by the monotonic clock."""

    async def kill(self, replica: Replica) -> None:
        before = time.monotonic()
        await replica.kill()
        self.kills.append((before, time.monotonic()))


@asynccontextmanager
async def running(servers: Servers, name: str, proxy: str, seed: int) -> AsyncGenerator[Cluster, None]:
    """Run a cluster with a database and folders of its own, until the context ends."""
    folder = servers.folder / name
    folder.mkdir()
    database = servers.postgres.create(name)
    servers.redis.command("FLUSHALL")
    chance, counted = random.Random(seed), Counted()
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(CountingProvider(seed, 0.2).serving())
        videos = await stack.enter_async_context(served(counted, chance, [FAMILY]))
        config = folder / "umg.yaml"
        config.write_text(_config(config_of(database, provider.url), videos, servers.redis.url))
        store = await open_store(database, folder)
        stack.push_async_callback(store.aclose)
        keys = ApiKeys(store)
        made = [await keys.create(kind.name, **kind.fields) for kind in KEYS]
        _, video_secret = await keys.create("videos", budget_micro_credits=LARGE)
        *places, own = free_ports(4)
        disk = stack.enter_context(disk_at(folder / "disk", DISK))
        data = [folder / "disk/data-1", folder / "data-2", folder / "data-3"]
        replicas = [
            Replica(f"gateway {number}", data[number - 1], config, place, faster_polls.__name__)
            for number, place in enumerate(places, start=1)
        ]
        for replica in replicas:
            stack.push_async_callback(replica.aclose)
        await asyncio.gather(*(replica.start() for replica in replicas))
        (folder / proxy).mkdir()
        log = await stack.enter_async_context(PROXIES[proxy](folder / proxy, places, own))
        key_ids, secrets = [key.key_id for key, _ in made], [secret for _, secret in made]
        yield Cluster(
            *(servers, folder, database, store, replicas, own, log, provider, counted),
            *(key_ids, secrets, video_secret, disk),
        )  # fmt: skip


def _config(texts: str, videos: str, redis: str) -> str:
    """Return the config of the gateways, with the channels of both kinds."""
    merged, more = yaml.safe_load(texts), yaml.safe_load(videos)
    merged["channels"] += more["channels"]
    merged["models"] |= more["models"]
    merged |= {"redis": redis, "secret": "a-secret-of-the-proof", "drain": 30, "drain_delay": 2}
    text: str = yaml.safe_dump(merged)
    return text
