"""Simulated time, in which tasks that do real work at a real database sleep: it moves on when all of them sleep."""

import asyncio
import heapq
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

START = datetime(2026, 5, 1, tzinfo=UTC)


class SimulatedTime:
    """Clock of tasks that are started by `run`. A busy or slow machine does not change a simulation."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._awake = 0
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []
        self._numbers = count()
        self._all_sleep = asyncio.Event()

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    async def sleep(self, seconds: float) -> None:
        """Sleep in simulated time. Only tasks of `run` may call it."""
        woken = asyncio.Event()
        heapq.heappush(self._sleepers, (self.seconds + seconds, next(self._numbers), woken))
        self._fall_asleep()
        await woken.wait()

    async def run(self, *works: Awaitable[Any]) -> None:
        """Run works as tasks until all have ended."""
        async with asyncio.TaskGroup() as group:
            self._awake = len(works)
            for work in works:
                group.create_task(self._work(work))
            while self._awake or self._sleepers:
                await self._all_sleep.wait()
                self._all_sleep.clear()
                if self._awake == 0 and self._sleepers:
                    self._wake_next()

    async def _work(self, work: Awaitable[Any]) -> None:
        await work
        self._fall_asleep()

    def _fall_asleep(self) -> None:
        self._awake -= 1
        if not self._awake:
            self._all_sleep.set()

    def _wake_next(self) -> None:
        self.seconds = self._sleepers[0][0]
        while self._sleepers and self._sleepers[0][0] <= self.seconds:
            self._awake += 1
            heapq.heappop(self._sleepers)[2].set()
