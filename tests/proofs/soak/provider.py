"""Faulty provider of `tests.support.providers.faulty`, as a process."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import aiohttp

from tests.support.providers.faulty.server import Count

READY_SECONDS = 180
ENDING_SECONDS = 20


@dataclass(frozen=True)
class ProviderCounts:
    open: int  # connections
    orders: dict[str, Count] = field(default_factory=dict)

    @property
    def under_way(self) -> int:
        return sum(count.under_way for count in self.orders.values())

    def calls(self, order: str) -> int:
        return self.orders[order].calls if order in self.orders else 0


@dataclass(frozen=True)
class Provider:
    root: str
    process: asyncio.subprocess.Process

    def url(self, order: str) -> str:
        """Return the `base_url` of a channel, for all formats."""
        return f"{self.root}/{order}/v1"

    async def counts(self) -> ProviderCounts:
        async with aiohttp.ClientSession() as session, session.get(f"{self.root}/-/counts") as answer:
            counts = await answer.json()
        return ProviderCounts(counts["open"], {order: Count(**count) for order, count in counts["orders"].items()})

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator["Watch", None]:
        """Sample the calls in flight during the context, twenty times a second."""
        watch = Watch()
        looking = asyncio.create_task(watch.look(self))
        try:
            yield watch
        finally:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking

    async def end(self) -> None:
        """End the process, by the end of its input, and with it all its connections; nothing if it has ended."""
        if self.process.returncode is not None:  # its input is closed
            return
        try:
            await asyncio.wait_for(self.process.communicate(b""), ENDING_SECONDS)
        except TimeoutError:  # a busy host
            self.process.kill()
            await self.process.communicate()


@dataclass
class Watch:
    """Largest number of calls in flight."""

    most: int = 0

    async def look(self, running: Provider) -> None:
        while True:
            self.most = max(self.most, (await running.counts()).under_way)
            await asyncio.sleep(0.05)


@asynccontextmanager
async def provider() -> AsyncGenerator[Provider, None]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.providers.faulty"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        root = await asyncio.wait_for(process.stdout.readline(), READY_SECONDS)
        assert root, "the faulty provider does not start"
        running = Provider(root.decode().strip(), process)
        yield running
        await running.end()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
