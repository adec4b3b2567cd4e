"""One gateway a module, with the simulated provider, and a caller of each format."""

from collections.abc import AsyncGenerator

import aiohttp
import pytest
import pytest_asyncio

from tests.e2e.gateways import SANDBOX, running
from tests.spec.callers import Chat, Gateway, Messages, Native, Responses


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gateway, None]:
    async with running(SANDBOX, tmp_path_factory.mktemp("spec")) as made, aiohttp.ClientSession() as session:
        yield Gateway(made, session)


@pytest.fixture(scope="module")
def chat(gateway: Gateway) -> Chat:
    return Chat(gateway)


@pytest.fixture(scope="module")
def responses(gateway: Gateway) -> Responses:
    return Responses(gateway)


@pytest.fixture(scope="module")
def messages(gateway: Gateway) -> Messages:
    return Messages(gateway)


@pytest.fixture(scope="module")
def native(gateway: Gateway) -> Native:
    return Native(gateway)
