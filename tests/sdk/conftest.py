"""Fixtures of the tests with the official SDKs."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.e2e.gateways import SANDBOX, Running, running
from tests.sdk.node_runner import Node, installed
from tests.sdk.runner import installed_or_skipped


@pytest.fixture(scope="session")
def node() -> Node:
    """The JavaScript SDKs."""
    return installed_or_skipped(installed)


@pytest_asyncio.fixture
async def sandbox(tmp_path: Path) -> AsyncGenerator[Running, None]:
    """A gateway whose models are simulated."""
    async with running(SANDBOX, tmp_path) as gateway:
        yield gateway
