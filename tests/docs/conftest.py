"""A gateway as the documents describe it: started without a file."""

from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from tests.processes import Served, serve


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    async with serve(tmp_path_factory.mktemp("docs"), environment={"UMG_API_KEY": "sk-umg-docs"}) as made:
        yield made
