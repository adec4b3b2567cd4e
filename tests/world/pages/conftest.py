from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from tests.world.pages.site import Site, running_site


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Site, None]:
    async with running_site(tmp_path_factory.mktemp("site")) as running:
        yield running
