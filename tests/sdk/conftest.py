"""Fixtures of the tests with the official SDKs."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.e2e.gateways import SANDBOX, Running, running
from tests.sdk.node_runner import Node, installed


@pytest.fixture(scope="session")
def node() -> Node:
    """The JavaScript SDKs. Where they cannot be installed CI fails; elsewhere (no network) their tests are skipped."""
    try:
        return installed()
    except RuntimeError as error:
        if "CI" in os.environ:
            raise
        pytest.skip(str(error))


@pytest_asyncio.fixture
async def sandbox(tmp_path: Path) -> AsyncGenerator[Running, None]:
    """A gateway whose models are simulated."""
    async with running(SANDBOX, tmp_path) as gateway:
        yield gateway
