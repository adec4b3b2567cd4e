"""Gateway with a channel for each text format of the provider of large answers, and the memory of its process."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.pairs.table import TEXT_PROVIDERS
from tests.proofs.memory.provider import Provider
from tests.proofs.soak.gateway import Gateway, gateway

FORMATS = TEXT_PROVIDERS
QUIET_SECONDS = 0.5


def config(provider: Provider, models: Iterable[str], more: str = "") -> str:
    """Return the config: each model is served as `FORMAT/MODEL` by a channel of each format, and as `any/MODEL` by all
    but native's.
    """
    lines = ["log: {level: warning, format: json}", *more.splitlines(), "channels:"]
    for name in FORMATS:
        served = ", ".join(f"{{id: {name}/{model}, upstream: {model}}}" for model in models)
        if name != "native":
            served += "".join(f", {{id: any/{model}, upstream: {model}}}" for model in models)
        lines += [
            f"  - name: {name}",
            f"    protocols: [{name}]",
            f"    base_url: http://127.0.0.1:{provider.port}",
            "    api_key: sk-provider",
            f"    models: [{served}]",
        ]
    return "\n".join(lines)


class Watched:
    def __init__(self, running: Gateway) -> None:
        self.gateway = running
        self.url = running.url

    def reset(self) -> None:
        Path(f"/proc/{self.gateway.pid}/clear_refs").write_text("5")

    def peak_bytes(self) -> int:
        """Return the greatest resident set since the last `reset`."""
        return self._status("VmHWM")

    def resident_bytes(self) -> int:
        return self._status("VmRSS")

    def _status(self, name: str) -> int:
        lines = Path(f"/proc/{self.gateway.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


async def until_quiet(provider: Provider, streams: int) -> None:
    """Wait until the given number of streams is in flight and the provider cannot send for a while: all buffers are
    full.
    """
    sent = -1
    while provider.sent != sent or provider.open < streams:
        sent = provider.sent
        await asyncio.sleep(QUIET_SECONDS)


@asynccontextmanager
async def watched(text: str, directory: Path) -> AsyncGenerator[Watched, None]:
    async with gateway(text, directory) as running:
        yield Watched(running)
