"""Limits of a key on embedding and reranking: its models and its rate."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import grpc
import pytest
import pytest_asyncio

from tests.pairs.table import EMBEDDING_FACES, RERANK_FACES
from tests.support.callers.transports import GrpcTransport, HttpTransport
from tests.support.callers.vector_callers import (
    FIELDS,
    Embed,
    GrpcVectorCaller,
    HttpVectorCaller,
    Rerank,
    VectorCaller,
    VectorResult,
    channel,
)
from tests.support.gateways import Running, running
from tests.support.providers.vector_providers import provider
from umg_grpc.access.api_keys import ApiKeys

pytestmark = pytest.mark.asyncio(loop_scope="module")

Faces = tuple[Running, list[VectorCaller]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def faces(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Faces, None]:
    data: Path = tmp_path_factory.mktemp("data")
    async with AsyncExitStack() as stack:
        plain, ranker = [await stack.enter_async_context(provider(name)) for name in ("embeddings", "rerank v1")]
        config = "channels:\n" + channel("embeds", "embeddings", plain.base_url, "m", "other")
        config += channel("ranks", "rerank", ranker.base_url, "ranker", "other-ranker")
        gateway = await stack.enter_async_context(running(config, data))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        socket = await stack.enter_async_context(grpc.aio.insecure_channel(gateway.grpc))
        yield (
            gateway,
            [
                HttpVectorCaller(HttpTransport("http", gateway.url, session)),
                GrpcVectorCaller(GrpcTransport("grpc", socket)),
            ],
        )


def calls(key: str, face: VectorCaller, model: str, ranker: str) -> list[tuple[str, object]]:
    """Return one call of every face."""
    embedding = (*EMBEDDING_FACES, FIELDS) if face.name == "grpc" else EMBEDDING_FACES
    ranking = (*RERANK_FACES, FIELDS) if face.name == "grpc" else RERANK_FACES
    return [
        *((by, face.embed(Embed(model, inputs=["x"]), by, key)) for by in embedding),
        *((by, face.rerank(Rerank(ranker), by, key)) for by in ranking),
    ]


async def test_a_key_is_held_to_its_models(faces: Faces) -> None:
    gateway, made = faces
    _, key = await ApiKeys(gateway.service.store).create("some models", model_patterns=["m", "rank*"])
    for face in made:
        for by, call in calls(key, face, "m", "ranker"):
            result: VectorResult = await call  # type: ignore[misc]
            assert result.status == 200, (by, result)
        for by, call in calls(key, face, "other", "other-ranker"):
            result = await call  # type: ignore[misc]
            assert (result.status, result.reason or "MODEL_NOT_FOUND") == (404, "MODEL_NOT_FOUND"), (by, result)
            assert "other" in result.message
        for by, call in calls(key, face, "nope", "nope"):
            result = await call  # type: ignore[misc]
            assert result.status == 404, (by, result)


async def test_the_operations_of_a_model_are_hidden_from_keys_that_may_not_use_it(faces: Faces) -> None:
    gateway, made = faces
    _, key = await ApiKeys(gateway.service.store).create("rankers only", model_patterns=["rank*"])
    for face in made:
        result = await face.rerank(Rerank("m"), key=key)
        assert (result.status, "embed" in result.message) == (404, False), result


async def test_requests_a_minute_are_counted_together(faces: Faces) -> None:
    gateway, made = faces
    _, key = await ApiKeys(gateway.service.store).create("three a minute", requests_per_minute=3)
    http, grpc_face = made
    assert (await http.embed(Embed(), key=key)).status == 200
    assert (await grpc_face.embed(Embed(), FIELDS, key=key)).status == 200
    assert (await http.rerank(Rerank("ranker"), key=key)).status == 200
    for face in made:
        for by, call in calls(key, face, "m", "ranker"):
            result: VectorResult = await call  # type: ignore[misc]
            assert (result.status, result.reason or "RATE_LIMITED") == (429, "RATE_LIMITED"), (by, result)
            assert 1 <= int(result.headers["retry-after"]) <= 60


async def test_a_refused_request_does_not_count(faces: Faces) -> None:
    gateway, (http, _) = faces
    _, key = await ApiKeys(gateway.service.store).create("one a minute", requests_per_minute=1)
    assert (await http.embed(Embed("nope"), key=key)).status == 404
    assert (await http.embed(Embed("ranker"), key=key)).status == 400
    assert (await http.embed(Embed(inputs=[""]), key=key)).status == 400
    assert (await http.embed(Embed(), key=key)).status == 200
    assert (await http.embed(Embed(), key=key)).status == 429


async def test_a_batch_in_parts_counts_once(tmp_path: Path) -> None:
    async with provider("embeddings") as plain:
        config = "channels:\n" + channel("embeds", "embeddings", plain.base_url, max_inputs=1)
        async with running(config, tmp_path) as gateway, aiohttp.ClientSession() as session:
            _, key = await ApiKeys(gateway.service.store).create("two a minute", requests_per_minute=2)
            http = HttpVectorCaller(HttpTransport("http", gateway.url, session))
            assert [(await http.embed(Embed(inputs=["x"] * 5), key=key)).status for _ in range(3)] == [200, 200, 429]
        assert len(plain.received) == 10
