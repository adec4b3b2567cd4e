"""Any face, over any way, towards any provider that ranks: one order, scores in [0, 1], unchanged documents."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.pairs.table import RERANK_FACES, RERANK_PROVIDERS, protocol_of
from tests.support.callers.transports import TRANSPORTS
from tests.support.callers.vector_callers import (
    FIELDS,
    Rerank,
    VectorCaller,
    VectorCallers,
    channel,
    faces_of,
    vector_caller,
    vector_callers,
)
from tests.support.providers.vector_providers import Provider, provider
from tests.support.providers.vectors import score

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCUMENTS = ("bread and salt", "where the cat sleeps", "", "a cat", "where is the cat? on the sofa")
OBJECTS = (
    {"text": "bread and salt", "title": "Food", "n": 1.0},
    {"title": "Cats", "text": "where the cat sleeps", "tags": ["a", None]},
    {"text": "a cat"},
)
QUERY = "where is the cat"
ODD = ("m", "logits", "uncounted", "score", "data", "shuffled", "alike", "too-many")
BROKEN = ("too-few", "twice", "beyond", "unscored", "no-results", "fails-in-200", "html")
Gateway = tuple[VectorCaller, dict[str, Provider]]
Gateways = tuple[VectorCallers, dict[str, Provider]]


def slug(name: str) -> str:
    return name.replace(" ", "-")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateways(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gateways, None]:
    async with AsyncExitStack() as stack:
        servers = {name: await stack.enter_async_context(provider(name)) for name in RERANK_PROVIDERS}
        config = "channels:\n"
        for name, server in servers.items():
            models = [f'{{id: {slug(name)}/{slug(model)}, upstream: "{model}"}}' for model in (*ODD, *BROKEN)]
            config += channel(slug(name), protocol_of(name), server.base_url, *models)
        yield await stack.enter_async_context(vector_callers(TRANSPORTS, config, tmp_path_factory)), servers


@pytest.fixture(params=TRANSPORTS)
def gateway(request: pytest.FixtureRequest, gateways: Gateways) -> Gateway:
    made, servers = gateways
    return made[request.param], servers


def rerank_request(name: str, model: str = "m", **more: Any) -> Rerank:
    return Rerank(f"{slug(name)}/{slug(model)}", QUERY, DOCUMENTS, more)


def expected(documents: "tuple[str, ...]" = DOCUMENTS) -> list[tuple[int, float]]:
    scored = [(at, score(QUERY, text)) for at, text in enumerate(documents)]
    return sorted(scored, key=lambda each: -each[1])


PAIRS = [(name, by) for name in TRANSPORTS for by in faces_of(name, RERANK_FACES)]
every_face = pytest.mark.parametrize(
    ("gateway", "by"), PAIRS, indirect=["gateway"], ids=[f"{name}-{by}" for name, by in PAIRS]
)
every_provider = pytest.mark.parametrize("name", RERANK_PROVIDERS)


@every_provider
@every_face
async def test_documents_are_ranked_in_one_order_with_the_providers_scores(
    name: str, by: str, gateway: Gateway
) -> None:
    made, servers = gateway
    result = await made.rerank(rerank_request(name), by)
    assert [(index, relevance) for index, relevance, _ in result.ranking] == expected(), result
    assert [document for _, _, document in result.ranking] == [None] * len(DOCUMENTS)
    assert result.model == f"{slug(name)}/m"
    assert result.tokens
    assert result.estimated in (None, name not in ("jina", "bedrock_rerank"))
    assert "x-umg-dropped" not in result.headers
    assert servers[name].refusals == []
    assert "document" not in str(servers[name].last.get("return_documents"))


@every_provider
@every_face
async def test_the_requested_number_of_best_results_is_returned(name: str, by: str, gateway: Gateway) -> None:
    made, servers = gateway
    result = await made.rerank(rerank_request(name, top_n=2), by)
    assert [(index, relevance) for index, relevance, _ in result.ranking] == expected()[:2], result
    assert servers[name].last["top_n"] == 2
    result = await made.rerank(rerank_request(name, top_n=99), by)
    assert len(result.ranking) == len(DOCUMENTS), result
    assert servers[name].last["top_n"] == len(DOCUMENTS)
    result = await made.rerank(rerank_request(name, "too-many", top_n=2), by)  # a provider that does not know `top_n`
    assert [index for index, _, _ in result.ranking] == [index for index, _ in expected()[:2]], result
    assert servers[name].refusals == []


@every_provider
@every_face
async def test_documents_are_returned_only_where_requested(name: str, by: str, gateway: Gateway) -> None:
    made, servers = gateway
    result = await made.rerank(rerank_request(name, return_documents=True), by)
    texts = [DOCUMENTS[index] for index, _ in expected()]
    forms = [{"text": text} for text in texts] if by == "rerank_v2" and made.name.startswith("http") else texts
    assert [document for _, _, document in result.ranking] == forms, result
    assert servers[name].last.get("return_documents", False) is False  # the gateway has the documents
    result = await made.rerank(rerank_request(name, return_documents=False), by)
    assert {document for _, _, document in result.ranking} == {None}
    assert servers[name].refusals == []


@every_provider
@every_face
async def test_objects_are_ranked_on_their_text_and_come_back_as_they_were(
    name: str, by: str, gateway: Gateway
) -> None:
    made, servers = gateway
    request = replace(rerank_request(name, return_documents=True), documents=OBJECTS)
    result = await made.rerank(request, by)
    order = [index for index, _ in expected(tuple(str(each["text"]) for each in OBJECTS))]
    assert [index for index, _, _ in result.ranking] == order, result
    assert [document for _, _, document in result.ranking] == [OBJECTS[index] for index in order]
    assert servers[name].last["documents"] == [each["text"] for each in OBJECTS]
    assert servers[name].refusals == []


@every_provider
@every_face
async def test_the_fields_to_rank_on_are_joined_for_every_provider(name: str, by: str, gateway: Gateway) -> None:
    made, servers = gateway
    request = replace(rerank_request(name, rank_fields=["title", "text"]), documents=OBJECTS)
    assert (await made.rerank(request, by)).status == 200
    assert servers[name].last["documents"] == ["Food\nbread and salt", "Cats\nwhere the cat sleeps", "a cat"]
    assert "rank_fields" not in servers[name].last
    assert servers[name].refusals == []


@every_provider
@every_face
async def test_scores_of_another_scale_come_into_theirs_in_the_same_order(name: str, by: str, gateway: Gateway) -> None:
    made, _ = gateway
    result = await made.rerank(rerank_request(name, "logits"), by)
    assert [index for index, _, _ in result.ranking] == [index for index, _ in expected()], result
    scores = [relevance for _, relevance, _ in result.ranking]
    assert all(0 <= relevance <= 1 for relevance in scores)
    assert len(set(scores)) == len(scores)


@every_provider
@pytest.mark.parametrize("model", ["uncounted", "score", "data", "shuffled"])
async def test_a_deviating_answer_is_read(model: str, name: str, gateway: Gateway) -> None:
    made, _ = gateway
    result = await made.rerank(rerank_request(name, model))
    assert [(index, relevance) for index, relevance, _ in result.ranking] == expected(), result
    assert result.tokens


@every_provider
async def test_documents_of_one_score_keep_the_order_of_the_request(name: str, gateway: Gateway) -> None:
    made, _ = gateway
    result = await made.rerank(rerank_request(name, "alike", top_n=3))
    assert [index for index, _, _ in result.ranking] == sorted(index for index, _, _ in result.ranking), result
    result = await made.rerank(rerank_request(name, "alike"))
    assert [index for index, _, _ in result.ranking] == list(range(len(DOCUMENTS))), result


@every_provider
@pytest.mark.parametrize("model", BROKEN)
async def test_an_answer_without_the_ranking_is_a_failure(model: str, name: str, gateway: Gateway) -> None:
    made, _ = gateway
    result = await made.rerank(rerank_request(name, model))
    assert (result.status, result.reason or "UPSTREAM_FAILED") == (502, "UPSTREAM_FAILED"), result


# --- options that only one kind of provider has

OPTIONS: dict[str, tuple[object, dict[str, bool]]] = {
    "max_chunks_per_doc": (3, {"rerank v1": True, "rerank v2": False}),
    "max_tokens_per_doc": (50, {"rerank v1": False, "rerank v2": True}),
    "priority": (7, {"rerank v1": False, "rerank v2": True}),
}


@pytest.mark.parametrize("gateway", ["http, in process", "grpc"], indirect=True)
@pytest.mark.parametrize("by", RERANK_FACES)
@pytest.mark.parametrize("option", OPTIONS)
async def test_an_option_reaches_the_providers_that_know_it_and_is_reported_for_others(
    option: str, by: str, gateway: Gateway
) -> None:
    made, servers = gateway
    value, known = OPTIONS[option]
    for name, takes in known.items():
        if not takes and name.endswith("v1") == (by == "rerank"):
            continue  # a caller of the same format wrote it: the provider validates it
        result = await made.rerank(rerank_request(name, **{option: value}), by)
        assert result.status == 200, result
        assert servers[name].last.get(option) == (value if takes else None)
        assert result.headers.get("x-umg-dropped") == (None if takes else option)
        refused = await made.rerank(rerank_request(name, **{option: value}), by, **{"x-umg-strict": "true"})
        assert refused.status == (200 if takes else 400)


@pytest.mark.parametrize("gateway", ["http, in process", "grpc"], indirect=True)
async def test_unknown_fields_are_reported_for_providers_of_another_format(gateway: Gateway) -> None:
    made, servers = gateway
    for by, name in (("rerank", "rerank v2"), ("rerank_v2", "jina")):
        result = await made.rerank(rerank_request(name, x_unknown=1), by)
        assert (result.status, result.headers.get("x-umg-dropped")) == (200, "x_unknown"), result
        refused = await made.rerank(rerank_request(name, x_unknown=1), by, **{"x-umg-strict": "true"})
        assert (refused.status, "x_unknown" in refused.message) == (400, True), refused
        assert servers[name].refusals == []


@pytest.mark.parametrize("gateway", ["http, in process"], indirect=True)
async def test_a_null_is_the_same_as_absence(gateway: Gateway) -> None:
    """Check a body of LangChain, which writes `"max_tokens_per_doc": null`."""
    made, servers = gateway
    nulls = dict.fromkeys(
        ("top_n", "return_documents", "rank_fields", "max_tokens_per_doc", "max_chunks_per_doc", "priority")
    )
    for by in RERANK_FACES:
        for name in RERANK_PROVIDERS:
            result = await made.rerank(rerank_request(name, **nulls), by)
            assert (result.status, result.headers.get("x-umg-dropped")) == (200, None), result
            assert servers[name].refusals == []


# --- the form of the documents


async def test_the_schemas_own_fields_are_the_same_request(tmp_path: Path) -> None:
    async with provider("rerank v2") as server:
        config = "channels:\n" + channel("c", "rerank", server.base_url)
        async with vector_caller("grpc", config, tmp_path) as made:
            more = {"max_tokens_per_document": 9, "max_chunks_per_document": 2, "priority": 3, "top_n": 1}
            result = await made.rerank(Rerank(more=more), FIELDS)
        assert (result.status, result.headers["x-umg-dropped"]) == (200, "max_chunks_per_document"), result
        sent = server.last
        assert (sent["max_tokens_per_doc"], sent["priority"], sent["top_n"]) == (9, 3, 1)
