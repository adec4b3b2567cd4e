"""A gateway as the documents describe it: started without a file."""

from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from aiohttp import ClientSession

from tests.docs.calling import Caller
from tests.processes import Served, serve


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    async with serve(tmp_path_factory.mktemp("docs"), environment={"UMG_API_KEY": "sk-umg-docs"}) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def call(served: Served) -> AsyncGenerator[Caller, None]:
    async with ClientSession() as session:
        yield Caller(served, session)
