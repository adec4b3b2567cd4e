"""Gateway that the clients of Ollama call: a strict provider, and a simulated one with vectors."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.gateways import Running, running
from tests.support.providers.strict_providers import KEY, provider

MODEL, SIMULATED, VECTORS = "m", "famC-sonnet-4-5", "text-embedding-3-small"
CONFIG = """
channels:
  - {{name: main, protocols: [messages], base_url: "{url}", api_key: {key}, models: [m]}}
  - {{name: sandbox, protocols: [sandbox], pace: 0, models: [{simulated}, {vectors}]}}
"""


@asynccontextmanager
async def ollama_gateway(data: Path) -> AsyncGenerator[Running]:
    async with provider("messages") as server:
        config = CONFIG.format(url=server.base_url, key=KEY, simulated=SIMULATED, vectors=VECTORS)
        async with running(config, data) as made:
            yield made
