"""Events of the proof. Each is a function that begins an event in a cluster under load, and ends it."""

import asyncio
import shutil
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.proofs.chaos.cluster import Cluster
from tests.support.processes import UMG
from tests.support.shifted_clocks import ShiftedClock

HOUR = 3600
RESTART_SECONDS = 2.0
"""Time for which a killed gateway, PostgreSQL or Redis is away."""


@dataclass(frozen=True)
class Event:
    name: str
    apply: Callable[[Cluster, float], Awaitable[None]]
    """Function that makes the event last for these seconds."""
    seconds: float = RESTART_SECONDS
    before_seconds: float = 3.0
    """Time of the load before the event."""
    loses_folder: bool = False
    """Whether the data folder of a replica is lost."""
    refuses: bool = False
    """Whether the gateways refuse calls meanwhile, because a store is away."""
    freezes: bool = False
    """Whether a gateway is frozen."""


async def quiet(cluster: Cluster, seconds: float) -> None:
    """Let nothing happen, for the figures of a run without an event."""
    await asyncio.sleep(seconds)


async def kill(cluster: Cluster, seconds: float) -> None:
    replica = cluster.replicas[1]
    await cluster.kill(replica)
    await asyncio.sleep(seconds)
    await replica.start()


async def kill_all(cluster: Cluster, seconds: float) -> None:
    """Kill all gateways, one after the other, each while the one before starts."""
    for replica in cluster.replicas:
        await cluster.kill(replica)
        await asyncio.sleep(seconds)
        await replica.start()


async def stop(cluster: Cluster, seconds: float) -> None:
    """Let the second gateway drain, as in a rolling upgrade, and start it again."""
    replica = cluster.replicas[1]
    assert await replica.stop() == 0
    await asyncio.sleep(seconds)
    await replica.start()


async def freeze(cluster: Cluster, seconds: float) -> None:
    """Stop the processes of the second gateway, whose connections stay open, and let them go on."""
    replica = cluster.replicas[1]
    replica.signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        replica.signal(signal.SIGCONT)


async def lose(cluster: Cluster, seconds: float) -> None:
    """Kill the third gateway, delete its data folder, and start it with an empty one after a while."""
    replica = cluster.replicas[2]
    await cluster.kill(replica)
    shutil.rmtree(replica.folder)
    await asyncio.sleep(seconds)
    await replica.start()


async def fill_disk(cluster: Cluster, seconds: float) -> None:
    """Fill the disk with the data folder of the first gateway, and give the space back."""
    served = cluster.replicas[0].served
    assert served is not None
    cluster.disk.fill(served.process.pid)
    await asyncio.sleep(seconds)
    cluster.disk.empty(served.process.pid)


async def restart_postgres(cluster: Cluster, seconds: float) -> None:
    """Kill PostgreSQL, and start it again."""
    await asyncio.to_thread(cluster.servers.postgres.stop)
    await asyncio.sleep(seconds)
    await asyncio.to_thread(cluster.servers.postgres.start)


async def freeze_postgres(cluster: Cluster, seconds: float) -> None:
    """Stop the processes of PostgreSQL, whose connections stay open, and let them go on."""
    cluster.servers.freeze_postgres(signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        cluster.servers.freeze_postgres(signal.SIGCONT)


async def kill_without_postgres(cluster: Cluster, seconds: float) -> None:
    """Kill a gateway while PostgreSQL is away, and start it again once PostgreSQL is back."""
    await asyncio.to_thread(cluster.servers.postgres.stop)
    await asyncio.sleep(seconds)
    await cluster.kill(cluster.replicas[1])
    await asyncio.to_thread(cluster.servers.postgres.start)
    await cluster.replicas[1].start()


async def restart_redis(cluster: Cluster, seconds: float) -> None:
    """Kill Redis, which loses all data, and start it again."""
    await asyncio.to_thread(cluster.servers.redis.stop)
    await asyncio.sleep(seconds)
    await asyncio.to_thread(cluster.servers.redis.start)


async def freeze_redis(cluster: Cluster, seconds: float) -> None:
    """Stop the process of Redis, and let it go on."""
    with cluster.servers.redis.silent():
        await asyncio.sleep(seconds)


async def clock_ahead(cluster: Cluster, seconds: float) -> None:
    """Start the second gateway with a clock two hours ahead, and again with the right one."""
    await _with_clock(cluster, seconds, 2 * HOUR)


async def clock_days_ahead(cluster: Cluster, seconds: float) -> None:
    """Start the second gateway with a clock two days ahead, and again with the right one."""
    await _with_clock(cluster, seconds, 48 * HOUR)


async def clock_behind(cluster: Cluster, seconds: float) -> None:
    """Start the second gateway with a clock two hours late, and again with the right one."""
    await _with_clock(cluster, seconds, -2 * HOUR)


async def _with_clock(cluster: Cluster, seconds: float, shift: int) -> None:
    replica = cluster.replicas[1]
    await replica.stop()
    clock = ShiftedClock(cluster.folder / "shift")
    clock.set(shift)
    await replica.start(program=UMG, environment=clock.environment)
    await asyncio.sleep(seconds)
    await replica.stop()
    await replica.start()


EVENTS = (
    Event("none", quiet, 10),
    Event("SIGTERM of a gateway", stop),
    Event("SIGKILL of a gateway", kill),
    Event("SIGKILL of each gateway", kill_all),
    Event("a gateway frozen for 15 s", freeze, 15, freezes=True),
    Event("the disk of a gateway full for 15 s", fill_disk, 15),
    Event("a clock 2 hours ahead for 15 s", clock_ahead, 15),
    Event("a clock 2 days ahead for 15 s", clock_days_ahead, 15),
    Event("a clock 2 hours late for 15 s", clock_behind, 15),
    Event("a restart of PostgreSQL", restart_postgres, 1, refuses=True),
    Event("PostgreSQL frozen for 15 s", freeze_postgres, 15, refuses=True),
    Event("60 s without PostgreSQL", restart_postgres, 60, before_seconds=20, refuses=True),
    Event("SIGKILL of a gateway while PostgreSQL is away", kill_without_postgres, 5, refuses=True),
    Event("a restart of Redis without data", restart_redis, 1),
    Event("Redis frozen for 5 s", freeze_redis, 5),
    Event("a machine lost with its data folder", lose, 150, loses_folder=True),
)
