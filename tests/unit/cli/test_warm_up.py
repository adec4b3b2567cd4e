"""First calls of a served gateway, which come together while it still imports modules."""

import asyncio
from pathlib import Path

import aiohttp

from tests.support.gateways import SANDBOX
from tests.support.processes import Served, serve

KEY = "sk-umg-of-the-tests-of-first-calls"
HEADERS = {"authorization": f"Bearer {KEY}"}
BURST = 120
"""Number of calls at once: more than are accepted at any lag."""
STRICT = "overload: {queue: 0, lag: 0.0001}"
"""Bounds that nearly every burst exceeds."""


async def _burst(served: Served) -> list[int]:
    """Send calls at once, each on its own connection. Return their statuses."""
    body = {"model": "famO-5", "messages": [{"role": "user", "content": "Hi"}]}
    connector = aiohttp.TCPConnector(limit=BURST)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def call() -> int:
            async with session.post(f"{served.http}/v1/chat/completions", json=body, headers=HEADERS) as response:
                await response.read()
                return response.status

        return await asyncio.gather(*(call() for _ in range(BURST)))


async def test_the_first_burst_is_served_and_a_later_one_is_judged(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"{STRICT}\n{SANDBOX}")
    arguments = (tmp_path / "data", "--config", str(config))
    async with serve(*arguments, environment={"UMG_API_KEY": KEY}) as served:
        assert await _burst(served) == [200] * BURST
        async with asyncio.timeout(60):
            while 503 not in await _burst(served):
                pass
        async with aiohttp.ClientSession() as session, session.get(f"{served.http}/metrics") as response:
            figures = await response.text()
        lags = [line for line in figures.splitlines() if line.startswith("umg_gate_lag_seconds{")]
        assert len(lags) == 2, figures
        assert all(float(line.split()[-1]) > 0.0001 for line in lags), lags
