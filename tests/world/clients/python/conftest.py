"""Fixtures of the client's tests."""

from collections.abc import AsyncIterator

import pytest
from umg_client import Client, connect

from tests.world.clients.python.service import KEY, Served, serve


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serve() as running:
        yield running


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Client]:
    async with connect(served.address, KEY) as client:
        yield client
