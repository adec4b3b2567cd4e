"""The official cohere SDK, unmodified, against the gateway: its clients of the first and the second API."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import cohere
import pytest
import pytest_asyncio
from cohere.core import ApiError

from tests.support.gateways import Running, running
from tests.world.sdk.vectors import (
    BEST,
    CONFIG,
    DOCUMENTS,
    OBJECTS,
    QUERY,
    RERANKERS,
    UNRANKED,
    Rerank,
    Unranked,
    check_ranking,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    async with running(CONFIG, tmp_path_factory.mktemp("rerank")) as made:
        yield made


def _options(request: Rerank) -> dict[str, Any]:
    return {"model": request.model, "query": request.query, "documents": list(request.documents), **request.options}


Answer = cohere.RerankResponse | cohere.V2RerankResponse


def _blocking(kind: type[cohere.Client]) -> Callable[[Running, Rerank], Awaitable[Answer]]:
    async def rerank(gateway: Running, request: Rerank) -> Answer:
        def answer() -> Answer:
            with kind(api_key=request.key or gateway.key, base_url=gateway.url) as client:
                return client.rerank(**_options(request))

        return await asyncio.to_thread(answer)

    return rerank


def _waiting(kind: type[cohere.AsyncClient]) -> Callable[[Running, Rerank], Awaitable[Answer]]:
    async def rerank(gateway: Running, request: Rerank) -> Answer:
        async with kind(api_key=request.key or gateway.key, base_url=gateway.url) as client:
            return await client.rerank(**_options(request))

    return rerank


@dataclass(frozen=True)
class Client:
    id: str
    rerank: Callable[[Running, Rerank], Awaitable[Answer]]


FIRST = [Client("v1", _waiting(cohere.AsyncClient)), Client("v1, blocking", _blocking(cohere.Client))]
SECOND = [Client("v2", _waiting(cohere.AsyncClientV2)), Client("v2, blocking", _blocking(cohere.ClientV2))]
every_client = pytest.mark.parametrize("client", [*FIRST, *SECOND], ids=lambda client: client.id)
first_api = pytest.mark.parametrize("client", FIRST, ids=lambda client: client.id)
every_model = pytest.mark.parametrize("model", RERANKERS)


@every_model
@every_client
async def test_documents_are_ranked(client: Client, model: str, gateway: Running) -> None:
    answer = await client.rerank(gateway, Rerank(model))
    check_ranking([each.index for each in answer.results], [each.relevance_score for each in answer.results])
    assert all(getattr(each, "document", None) is None for each in answer.results)
    assert answer.id
    assert answer.meta is not None
    assert answer.meta.api_version is not None
    assert answer.meta.tokens is not None
    assert answer.meta.tokens.input_tokens


@every_client
async def test_the_best_alone_are_given(client: Client, gateway: Running) -> None:
    whole, cut, more = [(await client.rerank(gateway, Rerank(top_n=count))).results for count in (None, 2, 99)]
    assert [each.index for each in cut] == [each.index for each in whole[:2]]
    assert [each.relevance_score for each in cut] == [each.relevance_score for each in whole[:2]]
    assert more == whole


@every_model
@first_api
async def test_texts_come_back_as_the_sdks_documents(client: Client, model: str, gateway: Running) -> None:
    answer = await client.rerank(gateway, Rerank(model, return_documents=True))
    assert [each.document.text for each in answer.results] == [DOCUMENTS[each.index] for each in answer.results]


@every_model
@first_api
async def test_objects_are_ranked_by_their_text_and_come_back_whole(
    client: Client, model: str, gateway: Running
) -> None:
    answer = await client.rerank(gateway, Rerank(model, documents=OBJECTS, return_documents=True))
    check_ranking([each.index for each in answer.results], [each.relevance_score for each in answer.results])
    for each in answer.results:
        assert each.document.model_dump(exclude_none=True) == OBJECTS[each.index]
    plain = await client.rerank(gateway, Rerank(model))
    assert [each.relevance_score for each in plain.results] == [each.relevance_score for each in answer.results]


@every_model
@first_api
async def test_objects_are_ranked_by_the_fields_that_are_named(client: Client, model: str, gateway: Running) -> None:
    hidden = [{"text": "Nothing of interest.", "body": text} for text in DOCUMENTS]
    answer = await client.rerank(gateway, Rerank(model, documents=hidden, rank_fields=["body"]))
    check_ranking([each.index for each in answer.results], [each.relevance_score for each in answer.results])


@pytest.mark.parametrize("refused", UNRANKED, ids=lambda refused: refused.id)
@every_client
async def test_a_failure_is_the_sdks_own_exception(client: Client, refused: Unranked, gateway: Running) -> None:
    with pytest.raises(ApiError) as caught:
        await client.rerank(gateway, refused.request)
    error = caught.value
    assert (type(error).__name__, error.status_code) == (refused.error, refused.status)
    assert refused.expected_message in error.body["error"]["message"]
    if client in SECOND:
        assert error.body["message"] == error.body["error"]["message"]  # where the second API has it


async def test_a_call_without_a_model_is_refused(gateway: Running) -> None:
    async with cohere.AsyncClient(api_key=gateway.key, base_url=gateway.url) as client:
        with pytest.raises(cohere.BadRequestError) as caught:
            await client.rerank(query=QUERY, documents=list(DOCUMENTS))
    assert "model" in caught.value.body["error"]["message"]


async def test_options_of_cohere_alone_are_taken(gateway: Running) -> None:
    request: dict[str, Any] = {"model": "rerank-v1", "query": QUERY, "documents": list(DOCUMENTS)}
    async with cohere.AsyncClient(api_key=gateway.key, base_url=gateway.url) as first:
        assert (await first.rerank(**request, max_chunks_per_doc=2)).results[0].index == BEST
    async with cohere.AsyncClientV2(api_key=gateway.key, base_url=gateway.url) as second:
        spans = cohere.RerankRelevantSpans(mode="enabled")
        answer = await second.rerank(**request, max_tokens_per_doc=512, priority=1, relevant_spans=spans)
        assert answer.results[0].index == BEST
