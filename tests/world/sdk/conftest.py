"""Fixtures of the tests with the official SDKs."""

from collections.abc import AsyncGenerator, Iterator

import pytest
import pytest_asyncio

from tests.support.gateways import SANDBOX, Running, running
from tests.world.sdk.node_runner import Node, installed
from tests.world.sdk.runner import installed_or_skipped


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """Yield the JavaScript SDKs."""
    packages = installed_or_skipped(installed)
    yield packages
    packages.scripts.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    """Yield the gateway of the module, whose models are simulated."""
    async with running(SANDBOX, tmp_path_factory.mktemp("sandbox")) as gateway:
        yield gateway
