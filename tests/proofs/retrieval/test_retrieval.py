"""Quality of vectors and rankings: whether they find the passage that answers a question."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import numpy as np
import pytest
import pytest_asyncio

from tests.proofs.retrieval.corpus import PASSAGES, QUESTIONS, Question
from tests.unit.upstream.vectors import SECONDS, Embedder, Reranker, loaded_engine, rerank_request, vectors_of
from umg_grpc.upstream.local.wordllama import LocalEmbedding, LocalRerank, WordLlamaEngine
from umg_sandbox.embedding_channel import SandboxEmbedding
from umg_sandbox.rerank_channel import SandboxRerank

NAMES = list(PASSAGES)
TEXTS = list(PASSAGES.values())
FOUND_FIRST = 17  # of 20, by the vectors of `wordllama-256`


@dataclass(frozen=True)
class Search:
    model: str
    dimensions: int
    found: int
    """Least number of questions whose passage is first: the number when this was written."""

    @property
    def id(self) -> str:
        return f"{self.model} with {self.dimensions} numbers"


SEARCHES = [
    Search("wordllama-256", 256, FOUND_FIRST),
    Search("wordllama-256", 128, 15),
    Search("wordllama-256", 64, 13),
    Search("text-embedding-3-small", 1536, FOUND_FIRST),
    Search("text-embedding-3-large", 3072, FOUND_FIRST),
    Search("text-embedding-3-large", 256, FOUND_FIRST),
    Search("text-embedding-3-large", 64, 13),
    Search("text-embedding-ada-002", 1536, FOUND_FIRST),
    Search("famG-embedding-001", 3072, FOUND_FIRST),
    Search("text-embedding-004", 768, FOUND_FIRST),
]


@pytest_asyncio.fixture
async def engine() -> AsyncGenerator[WordLlamaEngine, None]:
    made = loaded_engine()
    yield made
    await made.aclose()


async def nearest(upstream: Embedder, model: str, dimensions: int) -> list[list[str]]:
    """Return for each question the passages' names, the nearest first."""
    passages = await vectors_of(upstream, model, TEXTS, dimensions=dimensions)
    questions = await vectors_of(upstream, model, [question.query for question in QUESTIONS], dimensions=dimensions)
    return [[NAMES[place] for place in np.argsort(-row, kind="stable")] for row in questions @ passages.T]


async def reranked(upstream: Reranker, model: str, question: Question, names: list[str]) -> str:
    """Return the name of the first passage."""
    request = rerank_request(question.query, *(PASSAGES[name] for name in names), top_n=1)
    response = await upstream.prepare(request, model).send(SECONDS)
    return names[response.results[0].index]


def test_the_corpus_matches_its_description() -> None:
    assert (len(PASSAGES), len(QUESTIONS)) == (50, 20)
    assert len(set(TEXTS)) == 50
    assert len({question.answer for question in QUESTIONS}) == 20
    assert {question.answer for question in QUESTIONS} <= set(PASSAGES)


@pytest.mark.parametrize("case", SEARCHES, ids=lambda case: case.id)
async def test_a_question_finds_its_passage(engine: WordLlamaEngine, case: Search) -> None:
    upstream: Embedder = LocalEmbedding(engine) if case.model == "wordllama-256" else SandboxEmbedding(engine)
    order = await nearest(upstream, case.model, case.dimensions)
    found = [question.id for question, names in zip(QUESTIONS, order, strict=True) if names[0] == question.answer]
    assert len(found) >= case.found


@pytest.mark.parametrize("model", ["wordllama-rerank", "rerank-v1"])
@pytest.mark.parametrize("first", [10, len(PASSAGES)])
async def test_reranking_ranks_the_found_passages_as_well_as_the_embedding_did(
    engine: WordLlamaEngine, model: str, first: int
) -> None:
    upstream: Reranker = LocalRerank(engine) if model == "wordllama-rerank" else SandboxRerank(engine)
    order = await nearest(LocalEmbedding(engine), "wordllama-256", 256)
    found = 0
    for question, names in zip(QUESTIONS, order, strict=True):
        found += await reranked(upstream, model, question, sorted(names[:first])) == question.answer
    assert found >= FOUND_FIRST
