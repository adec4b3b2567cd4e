"""Replicas of the gateway at fixed ports behind a proxy, each with a data folder of its own."""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tests.support.processes import Served, serve
from tests.support.proxies import START_SECONDS, Ports

KEY = "sk-umg-first-secret-of-the-tests"


@dataclass
class Replica:
    name: str
    folder: Path
    config: Path
    ports: Ports
    prepared_by: str = ""
    """Module with changes to `umg`, see `forked_umg_starts.start`."""
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    served: Served | None = None

    async def start(self, *, program: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> None:
        """Start a gateway, which is ready once it printed that it serves."""
        http, grpc = f"127.0.0.1:{self.ports.http}", f"127.0.0.1:{self.ports.grpc}"
        self.served = await self.stack.enter_async_context(
            serve(
                *(self.folder, "--config", str(self.config), "--http", http, "--grpc", grpc),
                environment={"UMG_API_KEY": KEY, **(environment or {})},
                program=program,
                prepared_by=self.prepared_by,
            )
        )

    async def check_ready(self) -> None:
        """Raise AssertionError unless the gateway is ready."""
        url = f"http://127.0.0.1:{self.ports.http}/readyz"
        async with aiohttp.ClientSession() as client, client.get(url) as response:
            assert response.status == 200, await response.text()

    async def stop(self) -> int:
        """Let the gateway end its calls. Return the exit code."""
        assert self.served is not None
        code = await self.served.stop(seconds=START_SECONDS)
        await self._leave()
        return code

    async def kill(self) -> None:
        """Kill the gateway, as the kernel does."""
        assert self.served is not None
        await self.served.stop(signal.SIGKILL)
        await self._leave()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal (SIGSTOP, for example) to the gateway's processes."""
        assert self.served is not None
        os.killpg(self.served.process.pid, number)

    async def aclose(self) -> None:
        """Kill the gateway, if it runs."""
        await self._leave()

    async def _leave(self) -> None:
        self.served = None
        await self.stack.aclose()
