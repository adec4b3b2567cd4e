"""Measured cases: the number of callers, the size of their answers, and the memory limit of the process."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.proofs.memory.callers import Caller, call, request, send
from tests.proofs.memory.gateway import FORMATS, Watched, until_quiet
from tests.proofs.memory.provider import Provider

PAIRS = [(face, upstream) for face in FORMATS for upstream in FORMATS]
PATIENCE_SECONDS = 600
MEBIBYTE = 1 << 20
MakeCall = Callable[[], Awaitable[list[Caller]]]


@dataclass(frozen=True)
class Measured:
    id: str
    base: int  # before
    peak: int
    calls: int  # received by the provider

    def __str__(self) -> str:
        return f"{self.id:42} {self.base / MEBIBYTE:5.0f} -> {self.peak / MEBIBYTE:5.0f} MB  calls {self.calls}"


@dataclass(frozen=True)
class Sizes:
    """Sizes of one run."""

    callers: int
    unread: int  # MiB of each stream that is not read
    read: int  # MiB of a stream that is read
    whole: int  # MiB of a whole response that is too large
    piece: int = 1000  # characters of each delta of a stream that is read

    @property
    def models(self) -> list[str]:
        return [
            f"stream-{self.unread}-100",
            *(f"stream-{self.read}-{self.piece}{option}" for option in ("", "-uncounted")),
            *(f"{kind}-{self.whole}-0" for kind in ("gzip", "plain", "chunked")),
        ]


FULL = Sizes(callers=200, unread=30, read=300, whole=1024)
SMALL = Sizes(callers=25, unread=30, read=40, whole=128, piece=4000)


@dataclass(frozen=True)
class Run:
    provider: Provider
    gateway: Watched
    sizes: Sizes

    async def whole(self, kind: str) -> tuple[Measured, list[Caller]]:
        """Measure four callers of a response that is too large, of a model that three channels have."""
        model, place = f"{kind}-{self.sizes.whole}-0", urlsplit(self.gateway.url).netloc
        payload = request("chat", f"any/{model}", place, stream=False)

        async def make_calls() -> list[Caller]:
            callers = [await send(self.gateway.url, payload) for _ in range(4)]
            for caller in callers:
                await caller.began.wait()
            return callers

        return await self._measured(f"4 answers, {kind}, of {self.sizes.whole} MiB", model, make_calls)

    async def unread(self, face: str, upstream: str) -> tuple[Measured, list[Caller]]:
        """Measure callers that do not read their streams, until all buffers are full. They then leave together."""
        model, count = f"stream-{self.sizes.unread}-100", self.sizes.callers

        async def make_calls() -> list[Caller]:
            callers = [await call(self.gateway.url, face, f"{upstream}/{model}", reads=False) for _ in range(count)]
            await until_quiet(self.provider, count)
            for caller in callers:
                caller.transport.abort()
            await self.provider.until_closed()
            return callers

        return await self._measured(f"{count} unread, {face} on {upstream}", model, make_calls)

    async def read(self, face: str, upstream: str, option: str = "") -> tuple[Measured, list[Caller]]:
        """Measure one caller that reads a large stream to its end."""
        model = f"stream-{self.sizes.read}-{self.sizes.piece}{option}"

        async def make_calls() -> list[Caller]:
            while True:  # on a busy host the gateway may reject the call, and the provider may accept it too late
                caller = await call(self.gateway.url, face, f"{upstream}/{model}")
                await caller.ended.wait()
                if caller.status not in (503, 504):
                    return [caller]

        return await self._measured(f"{self.sizes.read} MiB read, {face} on {upstream}{option}", model, make_calls)

    async def _measured(self, name: str, model: str, make_calls: MakeCall) -> tuple[Measured, list[Caller]]:
        base, before = self.gateway.resident_bytes(), self.provider.calls[model]
        self.gateway.reset()
        async with asyncio.timeout(PATIENCE_SECONDS):
            callers = await make_calls()
        calls = self.provider.calls[model] - before
        return Measured(name, base, self.gateway.peak_bytes(), calls), callers
