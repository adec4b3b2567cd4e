"""Calls that are large enough for worker threads, and callers that disconnect."""

import asyncio
from pathlib import Path

import pytest

from tests.pairs.table import EMBEDDING_PROVIDERS, RERANK_PROVIDERS, protocol_of
from tests.support.callers.vector_callers import Embed, Rerank, channel, vector_caller
from tests.support.providers.vector_providers import provider
from tests.support.providers.vectors import score, vector

LONG = "many words of one text " * 40
TEXTS = tuple(f"{number}: {LONG}" for number in range(2048))


@pytest.mark.parametrize("name", ["http, in process", "http, apart", "grpc"])
@pytest.mark.parametrize("protocol", EMBEDDING_PROVIDERS)
async def test_two_megabytes_of_texts_come_back_in_order(name: str, protocol: str, tmp_path: Path) -> None:
    async with provider(protocol) as server:
        async with vector_caller(name, "channels:\n" + channel("main", protocol, server.base_url), tmp_path) as made:
            for by in ("embeddings, base64", "native_embeddings"):
                result = await made.embed(Embed(inputs=TEXTS), by)
                assert result.status == 200, result.message
                assert result.vectors == [vector(text) for text in TEXTS]
        assert server.refusals == []


@pytest.mark.parametrize("name", ["http, in process", "grpc"])
@pytest.mark.parametrize("kind", RERANK_PROVIDERS)
async def test_a_megabyte_of_documents_is_ranked(name: str, kind: str, tmp_path: Path) -> None:
    documents = TEXTS[:1000]
    async with provider(kind) as server:
        async with vector_caller(
            name, "channels:\n" + channel("main", protocol_of(kind), server.base_url), tmp_path
        ) as made:
            request = Rerank(query="17 words", documents=documents, more={"return_documents": True, "top_n": 10})
            result = await made.rerank(request)
        best = sorted(range(1000), key=lambda at: -score(request.query, documents[at]))[:10]
        assert [(index, document) for index, _, document in result.ranking] == [(at, documents[at]) for at in best]
        assert server.refusals == []


@pytest.mark.parametrize("name", ["http, in process", "http, apart", "grpc"])
@pytest.mark.parametrize("kind", [*EMBEDDING_PROVIDERS, *RERANK_PROVIDERS])
async def test_a_caller_that_leaves_stops_the_provider(name: str, kind: str, tmp_path: Path) -> None:
    async with provider(kind) as server:
        config = "channels:\n" + channel("main", protocol_of(kind), server.base_url, "{id: m, upstream: silent}")
        async with vector_caller(name, config, tmp_path) as made:
            for left in range(30):  # the shortest time counts: other processes may delay this one
                coroutine = made.embed(Embed()) if kind in EMBEDDING_PROVIDERS else made.rerank(Rerank())
                call = asyncio.create_task(coroutine)
                await server.until(lambda: server.waiting == server.left + 1)
                left_at = asyncio.get_running_loop().time()
                call.cancel()
                await server.until(lambda: server.left == left + 1)  # noqa: B023  waits in this iteration
                seconds = asyncio.get_running_loop().time() - left_at
                await asyncio.wait([call])
                if seconds < 0.1:
                    break
            assert seconds < 0.1


@pytest.mark.parametrize("name", ["http, in process", "http, apart", "grpc"])
async def test_many_callers_are_served_at_once(name: str, tmp_path: Path) -> None:
    async with provider("embeddings") as server:
        config = "channels:\n" + channel("main", "embeddings", server.base_url, "{id: m, upstream: gated}")
        async with vector_caller(name, config, tmp_path) as made:
            calls = [asyncio.create_task(made.embed(Embed(inputs=[f"text {each}"]))) for each in range(30)]
            await server.until(lambda: server.waiting == 30)
            server.gate.set()
            answers = await asyncio.gather(*calls)
        assert [result.vectors for result in answers] == [[vector(f"text {each}")] for each in range(30)]
