"""Calls beside an event: callers that repeat their calls until the event is over, and a tally of the calls by kind."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import grpc

CALL_SECONDS = 60.0


class FailedError(Exception):
    """A call that failed, or whose answer is not complete."""


@dataclass
class Tally:
    answered: Counter[str] = field(default_factory=Counter)
    failed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    slowest_seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def failures(self) -> list[str]:
        return [f"{kind}: {failure}" for kind, failures in self.failed.items() for failure in failures]

    async def count(self, kind: str, call: Callable[[], Awaitable[None]]) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await call()
        except (FailedError, TimeoutError, aiohttp.ClientError, grpc.aio.AioRpcError) as error:
            self.failed[kind].append(f"{type(error).__name__}: {error}"[:400])
        else:
            self.answered[kind] += 1
        self.slowest_seconds[kind] = max(time.monotonic() - began, self.slowest_seconds[kind])
        async with self.changed:
            self.changed.notify_all()

    async def until_more(self, kinds: Collection[str], calls: int) -> None:
        """Wait until the calls of each of these kinds have ended as many times again."""
        wanted = {kind: self._ended(kind) + calls for kind in kinds}
        async with self.changed:
            await self.changed.wait_for(lambda: all(self._ended(kind) >= wanted[kind] for kind in kinds))

    def _ended(self, kind: str) -> int:
        return self.answered[kind] + len(self.failed[kind])


@asynccontextmanager
async def repeating(calls: Iterable[Callable[[], Awaitable[None]]]) -> AsyncGenerator[None, None]:
    """Repeat each call until the context ends, which waits for the calls in flight."""
    is_over = asyncio.Event()

    async def repeat(call: Callable[[], Awaitable[None]]) -> None:
        while not is_over.is_set():
            await call()

    async with asyncio.TaskGroup() as group:
        for call in calls:
            group.create_task(repeat(call))
        try:
            yield
        finally:
            is_over.set()
