"""Channel of `wordllama-rerank`."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
import pytest_asyncio

from tests.unit.upstream.vectors import SECONDS, loaded_engine, rerank_request, shared_model, vectors_of
from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.model_catalogue import MODEL_CATALOGUE
from umg_grpc.upstream.local import EMBEDDING_MODEL
from umg_grpc.upstream.local import RERANK_MODEL as MODEL
from umg_grpc.upstream.local.wordllama import LocalEmbedding, LocalRerank, WordLlamaEngine
from umg_grpc.upstream.local.wordllama.reranker import CHUNK_TOKENS, STEP_TOKENS, chunks
from umg_grpc.v1 import pb
from umg_grpc.wire.rerank import RERANK_FORMATS

MAX_TOKENS = MODEL_CATALOGUE[MODEL].input_token_limit
LONG = "a " * (MAX_TOKENS + 900)
QUERY = "Where does the kitten sleep?"
RATES = "The central bank raised interest rates."
CAT = "A cat sleeps on the warm sofa."
BREAD = "Bake the bread in a hot oven."
DOCUMENTS = (RATES, CAT, BREAD)
BALLAST = "Shares fell in early trade as investors sold bonds and bought the dollar, the exchange said. " * 12


@pytest_asyncio.fixture
async def engine() -> AsyncGenerator[WordLlamaEngine, None]:
    made = loaded_engine()
    yield made
    await made.aclose()


async def rank(engine: WordLlamaEngine, request: pb.RerankRequest) -> pb.RerankResponse:
    return await LocalRerank(engine).prepare(request, MODEL).send(SECONDS)


def order(response: pb.RerankResponse) -> list[int]:
    return [result.index for result in response.results]


async def test_the_document_that_answers_comes_first_and_scores_fall(engine: WordLlamaEngine) -> None:
    response = await rank(engine, rerank_request(QUERY, *DOCUMENTS))
    scores = [result.relevance_score for result in response.results]
    assert order(response)[0] == 1
    assert sorted(order(response)) == [0, 1, 2]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


async def test_a_short_document_scores_by_its_cosine(engine: WordLlamaEngine) -> None:
    response = await rank(engine, rerank_request(QUERY, *DOCUMENTS))
    query, *documents = await vectors_of(LocalEmbedding(engine), EMBEDDING_MODEL, [QUERY, *DOCUMENTS])
    for result in response.results:
        cosine = float(np.dot(query, documents[result.index]))
        assert result.relevance_score == pytest.approx((1 + cosine) / 2, abs=1e-6)


@pytest.mark.parametrize("place", [0, 3, 7])
async def test_one_passage_of_a_long_document_is_enough(engine: WordLlamaEngine, place: int) -> None:
    passages = [BALLAST] * 8
    passages[place] = f"{BALLAST} {CAT} {BALLAST}"
    response = await rank(engine, rerank_request(QUERY, *passages))
    assert order(response)[0] == place
    assert response.results[0].relevance_score > response.results[1].relevance_score + 0.05


async def test_equal_documents_keep_their_order(engine: WordLlamaEngine) -> None:
    response = await rank(engine, rerank_request(QUERY, *[BREAD, CAT] * 700))
    assert order(response) == [*range(1, 1400, 2), *range(0, 1400, 2)]
    assert len({result.relevance_score for result in response.results}) == 2


async def test_an_empty_document_is_not_relevant_at_all(engine: WordLlamaEngine) -> None:
    response = await rank(engine, rerank_request(QUERY, "", BALLAST, ""))
    assert order(response) == [1, 0, 2]
    assert [result.relevance_score for result in response.results[1:]] == [0, 0]


async def test_top_n_are_the_best(engine: WordLlamaEngine) -> None:
    every = await rank(engine, rerank_request(QUERY, *DOCUMENTS))
    best = await rank(engine, rerank_request(QUERY, *DOCUMENTS, top_n=2))
    assert list(best.results) == list(every.results)[:2]
    more = await rank(engine, rerank_request(QUERY, *DOCUMENTS, top_n=9))
    assert more == every


async def test_objects_are_ranked_by_the_members_that_the_caller_names(engine: WordLlamaEngine) -> None:
    request = pb.RerankRequest(query=QUERY, rank_fields=["body"])
    for text in DOCUMENTS:
        request.documents.add(object_json=msgspec.json.encode({"text": BREAD, "body": text}).decode())
    assert await rank(engine, request) == await rank(engine, rerank_request(QUERY, *DOCUMENTS))


async def test_usage_is_the_query_and_the_documents(engine: WordLlamaEngine) -> None:
    response = await rank(engine, rerank_request(QUERY, *DOCUMENTS))
    tokens = sum(map(len, shared_model().tokenize([QUERY, *DOCUMENTS])))
    assert response.usage == pb.RerankUsage(total_tokens=tokens)


@dataclass(frozen=True)
class Cut:
    id: str
    document: str
    tokens: int
    """Tokens of the document that are read."""
    fields: dict[str, Any] = field(default_factory=dict)


CUTS = [
    Cut("at the model's limit", LONG, MAX_TOKENS),
    Cut("at the caller's", LONG, 100, {"max_tokens_per_document": 100}),
    Cut("at the model's limit, if the caller's is larger", LONG, MAX_TOKENS, {"max_tokens_per_document": 2**20}),
    Cut("not at all", "a a a", 3, {"max_tokens_per_document": 100}),
]


@pytest.mark.parametrize("case", CUTS, ids=lambda case: case.id)
async def test_a_long_document_is_cut_off(engine: WordLlamaEngine, case: Cut) -> None:
    response = await rank(engine, rerank_request("a", case.document, **case.fields))
    assert response.usage.total_tokens == 1 + case.tokens


async def test_the_truncated_part_of_a_document_is_not_ranked(engine: WordLlamaEngine) -> None:
    documents = (f"{BALLAST} {CAT}", BREAD)
    assert order(await rank(engine, rerank_request(QUERY, *documents))) == [0, 1]
    alone = await rank(engine, rerank_request(QUERY, BALLAST, max_tokens_per_document=100))
    for cut in ({"max_tokens_per_document": 100}, {"max_chunks_per_document": 1}):
        response = await rank(engine, rerank_request(QUERY, documents[0], **cut))
        assert response.results[0].relevance_score <= alone.results[0].relevance_score


async def test_a_query_that_is_too_long_is_refused(engine: WordLlamaEngine) -> None:
    for query in (LONG, "-" * 16 * len(LONG)):
        with pytest.raises(UmgError) as caught:
            await rank(engine, rerank_request(query, *DOCUMENTS))
        assert caught.value.reason == pb.ERROR_REASON_CONTEXT_TOO_LONG
        assert caught.value.metadata == {"field": "query"}


async def test_a_document_that_cannot_be_ranked_is_refused(engine: WordLlamaEngine) -> None:
    request = rerank_request(QUERY, CAT)
    request.documents.add(object_json='{"body": "x"}')
    with pytest.raises(UmgError) as caught:
        await rank(engine, request)
    assert caught.value.reason == pb.ERROR_REASON_INVALID_FIELD
    assert caught.value.metadata["field"].startswith("documents[1]")


def test_unsupported_options_are_reported() -> None:
    body = b'{"model": "m", "query": "q", "documents": ["d"], "priority": 3, "shape": "round"}'
    request, notes = RERANK_FORMATS["rerank_v2"].decode_request(body, {})
    assert LocalRerank(loaded_engine()).prepare(request, MODEL, notes).report.header() == "shape, priority"
    plain = rerank_request(QUERY, CAT, max_chunks_per_document=2, return_documents=True, rank_fields=["text"])
    assert LocalRerank(loaded_engine()).prepare(plain, MODEL).report.lost == 0


@pytest.mark.parametrize("size", [0, 1, STEP_TOKENS, CHUNK_TOKENS, CHUNK_TOKENS + 1, 3 * CHUNK_TOKENS, 1000])
def test_chunks_hold_all_of_a_document_and_overlap_by_half(size: int) -> None:
    tokens: Sequence[int] = range(size)
    cut = chunks(tokens)
    assert {token for chunk in cut for token in chunk} == set(tokens)
    assert all(len(chunk) == CHUNK_TOKENS for chunk in cut[:-1])
    assert all(len(chunk) > STEP_TOKENS or len(cut) == 1 for chunk in cut[-1:])
    for one, following in pairwise(cut):
        assert list(one[STEP_TOKENS:]) == list(following[:STEP_TOKENS])
