"""Gateway with a channel to a strict provider of each format, which the tests of a face share."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tests.pairs.table import STRICT_MODELS
from tests.support import gateways
from tests.support.gateways import SEARCHES_AND_REASONS, Running, channel, running
from tests.support.providers.strict_providers import KEY, Provider, provider


@asynccontextmanager
async def gateway_of_all(data: Path) -> AsyncGenerator[tuple[Running, dict[str, Provider]]]:
    """Start the providers and the gateway, which calls that of the format `F` for the model `via-F`."""
    async with AsyncExitStack() as stack:
        providers = {name: await stack.enter_async_context(provider(name)) for name in STRICT_MODELS}
        channels = [
            channel(name, name, server.base_url, f"via-{name}", STRICT_MODELS[name]).replace(gateways.KEY, KEY)
            + SEARCHES_AND_REASONS
            for name, server in providers.items()
        ]
        yield await stack.enter_async_context(running("channels:\n" + "".join(channels), data)), providers
