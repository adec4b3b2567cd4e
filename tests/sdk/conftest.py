"""Fixtures of the tests with the official SDKs."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.sdk.node_runner import Node, installed
from tests.sdk.runner import installed_or_skipped
from tests.support.gateways import SANDBOX, Running, running


@pytest.fixture(scope="session")
def node() -> Node:
    """Return the JavaScript SDKs."""
    return installed_or_skipped(installed)


@pytest_asyncio.fixture
async def sandbox(tmp_path: Path) -> AsyncGenerator[Running, None]:
    """Yield a gateway whose models are simulated."""
    async with running(SANDBOX, tmp_path) as gateway:
        yield gateway
