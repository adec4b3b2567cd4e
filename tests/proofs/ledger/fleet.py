"""Gateways that share a database, and are killed and started again."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tests.support.processes import Served
from tests.support.proxies import free_ports
from tests.support.replicas import Replica


class Fleet:
    """Replicas of the gateway, each with a data directory of its own."""

    def __init__(self, config: str, data: list[Path]) -> None:
        self._replicas = list[Replica]()
        for directory, place in zip(data, free_ports(len(data)), strict=True):
            directory.mkdir()
            (directory / "umg.yaml").write_text(config)
            self._replicas.append(Replica(directory.name, directory, directory / "umg.yaml", place))
        self._turns = [asyncio.Lock() for _ in data]
        self._restarts: asyncio.TaskGroup | None = None
        self._changed = asyncio.Condition()
        self.kills = 0

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Run the replicas, also after kills. At the end each ends as by an operator's SIGTERM."""
        async with AsyncExitStack() as stack:
            for replica in self._replicas:
                stack.push_async_callback(replica.aclose)
            await asyncio.gather(*(replica.start() for replica in self._replicas))
            async with asyncio.TaskGroup() as self._restarts:  # which ends the run if a replica does not start
                yield
            await asyncio.gather(*(self._end(replica) for replica in self._replicas))

    async def any(self, chance: random.Random) -> Served:
        """Return a running replica, as soon as there is one."""
        async with self._changed:
            while not (running := [each.served for each in self._replicas if each.served is not None]):
                await self._changed.wait()
        return chance.choice(running)

    def kill(self, number: int) -> None:
        """Kill a replica, which is started again."""
        assert self._restarts is not None
        self._restarts.create_task(self._restart(number % len(self._replicas)))

    async def _end(self, replica: Replica) -> None:
        await replica.kill()
        await replica.start()  # charges the calls of the last kill, for which the process before may have had no time
        assert await replica.stop() == 0

    async def _restart(self, number: int) -> None:
        async with self._turns[number]:
            self.kills += 1
            await self._replicas[number].kill()
            await self._replicas[number].start()
        async with self._changed:
            self._changed.notify_all()
