"""Fixtures: one gateway per module, with the simulated provider and the local models, and a caller of each format."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import aiohttp
import grpc
import pytest
import pytest_asyncio

from tests.documents.spec.callers import Chat, Messages, Native, Responses
from tests.documents.spec.image_callers import CHANNEL, Images
from tests.documents.spec.second_gateway import EXCEPTIONS, IS_CHAINED, front_config
from tests.documents.spec.vector_callers import Embeddings, NativeEmbedding, NativeEmbeddings, Rerank, RerankV2
from tests.documents.spec.video_callers import CHANNEL as VIDEO_CHANNEL
from tests.documents.spec.video_callers import Videos
from tests.support.callers.api import ApiClient
from tests.support.gateways import SANDBOX, Running, running

CONFIG = f"""{SANDBOX.rstrip()}
  - name: vectors
    protocols: [sandbox]
    models: [text-embedding-3-small, text-embedding-3-large, text-embedding-ada-002, famG-embedding-001, text-embedding-004, rerank-v1, omni-moderation-latest, tts-1, whisper-1]
{CHANNEL.strip(chr(10))}
{VIDEO_CHANNEL.strip(chr(10))}
  - name: local
    protocols: [local]
    models: [wordllama-256, wordllama-rerank]
models:
  wordllama-256: {{created: 2024-07-01, display_name: WordLlama, owned_by: the label of its provider}}
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the failure of the tests that cannot hold through a second gateway."""
    for item in items:
        name = item.name.partition("[")[0]
        if IS_CHAINED and item.path.parent.name == "spec" and (reason := EXCEPTIONS.get(name)) is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[ApiClient, None]:
    async with AsyncExitStack() as stack:
        made = await stack.enter_async_context(running(CONFIG, tmp_path_factory.mktemp("spec")))
        if IS_CHAINED:
            config = front_config(CONFIG, made.url)
            made = await stack.enter_async_context(running(config, tmp_path_factory.mktemp("front")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield ApiClient(made, session)


@pytest.fixture(scope="module")
def chat(gateway: ApiClient) -> Chat:
    return Chat(gateway)


@pytest.fixture(scope="module")
def responses(gateway: ApiClient) -> Responses:
    return Responses(gateway)


@pytest.fixture(scope="module")
def messages(gateway: ApiClient) -> Messages:
    return Messages(gateway)


@pytest.fixture(scope="module")
def native(gateway: ApiClient) -> Native:
    return Native(gateway)


@pytest.fixture(scope="module")
def embeddings(gateway: ApiClient) -> Embeddings:
    return Embeddings(gateway)


@pytest.fixture(scope="module")
def native_embedding(gateway: ApiClient) -> NativeEmbedding:
    return NativeEmbedding(gateway)


@pytest.fixture(scope="module")
def native_embeddings(gateway: ApiClient) -> NativeEmbeddings:
    return NativeEmbeddings(gateway)


@pytest.fixture(scope="module")
def rerank(gateway: ApiClient) -> Rerank:
    return Rerank(gateway)


@pytest.fixture(scope="module")
def rerank_v2(gateway: ApiClient) -> RerankV2:
    return RerankV2(gateway)


@pytest.fixture(scope="module")
def images(gateway: ApiClient) -> Images:
    return Images(gateway)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def videos(gateway: ApiClient) -> AsyncGenerator[Videos, None]:
    assert isinstance(gateway.server, Running)
    async with grpc.aio.insecure_channel(gateway.server.grpc) as channel:
        yield Videos(gateway, gateway.server, channel)
