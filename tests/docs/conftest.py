"""Gateway as the documents describe it: started without a config file."""

from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from tests.support.callers.api import ApiClient, api_client
from tests.support.processes import Served, serve


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    async with serve(tmp_path_factory.mktemp("docs"), environment={"UMG_API_KEY": "sk-umg-of-the-docs"}) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def call(served: Served) -> AsyncGenerator[ApiClient, None]:
    async with api_client(served) as client:
        yield client
