"""Search over HTTP with the official clients and the address of a gateway."""

from collections.abc import AsyncGenerator
from pathlib import Path

import cohere
import numpy as np
import openai
import pytest_asyncio

from tests.proofs.retrieval.corpus import PASSAGES, QUESTIONS
from tests.support.gateways import Running, running

NAMES, TEXTS = list(PASSAGES), list(PASSAGES.values())
LOCAL = "channels: [{name: local, protocols: [local], models: [wordllama-256, wordllama-rerank]}]"
WANTED = 16  # of 20
BEST = 10  # of the passages, which are reranked


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> AsyncGenerator[Running, None]:
    async with running(LOCAL, tmp_path) as made:
        yield made


async def test_search_and_rerank_find_the_right_passage_first(gateway: Running) -> None:
    async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key) as client:

        async def vectors(texts: list[str]) -> np.ndarray:
            made = await client.embeddings.create(model="wordllama-256", input=texts)
            return np.array([item.embedding for item in made.data])

        similarity = await vectors([question.query for question in QUESTIONS]) @ (await vectors(TEXTS)).T
    orders = [[NAMES[place] for place in np.argsort(-row)] for row in similarity]
    found = sum(order[0] == question.answer for question, order in zip(QUESTIONS, orders, strict=True))
    assert found >= WANTED

    async with cohere.AsyncClientV2(api_key=gateway.key, base_url=gateway.url) as client:
        reranked = 0
        for question, order in zip(QUESTIONS, orders, strict=True):
            documents = [PASSAGES[name] for name in order[:BEST]]
            ranking = await client.rerank(model="wordllama-rerank", query=question.query, documents=documents, top_n=1)
            reranked += order[ranking.results[0].index] == question.answer
    assert reranked >= found
