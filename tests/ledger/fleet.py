"""Gateways that share a database, and are killed and started again."""

import asyncio
import random
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.processes import Served, serve

ADMIN_KEY = "sk-umg-ledger"


class Fleet:
    """Replicas of the gateway, each with a data directory of its own."""

    def __init__(self, config: str, data: list[Path]) -> None:
        self._data = data
        for directory in data:
            directory.mkdir()
            (directory / "umg.yaml").write_text(config)
        self._served: list[Served | None] = [None] * len(data)
        self._kills = [asyncio.Event() for _ in data]
        self._changed = asyncio.Condition()
        self._is_ending = False
        self.kills = 0

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Run the replicas, also after kills. At the end each ends as by an operator's SIGTERM."""
        async with asyncio.TaskGroup() as group:  # which ends the run if a replica does not start
            for number in range(len(self._data)):
                group.create_task(self._run(number))
            yield
            self._is_ending = True
            for event in self._kills:
                event.set()

    async def any(self, chance: random.Random) -> Served:
        """Return a running replica, as soon as there is one."""
        async with self._changed:
            while not (running := [served for served in self._served if served is not None]):
                await self._changed.wait()
        return chance.choice(running)

    def kill(self, number: int) -> None:
        """Kill a replica, which is started again."""
        self._kills[number % len(self._kills)].set()

    async def _run(self, number: int) -> None:
        data, killing = self._data[number], self._kills[number]
        while not self._is_ending:
            arguments = ("--config", str(data / "umg.yaml"))
            async with serve(data, *arguments, environment={"UMG_API_KEY": ADMIN_KEY}) as served:
                await self._set(number, served)
                await killing.wait()
                killing.clear()
                if self._is_ending:
                    break
                self.kills += 1
                await served.stop(signal.SIGKILL)
                await self._set(number, None)
        # this start charges the calls of the last kill, for which the process before may have had no time
        async with serve(data, *arguments, environment={"UMG_API_KEY": ADMIN_KEY}) as served:
            assert await served.stop() == 0, served.log

    async def _set(self, number: int, served: Served | None) -> None:
        async with self._changed:
            self._served[number] = served
            self._changed.notify_all()
