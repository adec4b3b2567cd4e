"""The fake providers are faithful: official SDKs accept their answers, and they refuse as real providers do."""

from dataclasses import dataclass, field
from typing import Any

import aiohttp
import cohere
import openai
import pytest
from google import genai
from google.genai import types

from tests.support.providers.vector_providers import KEY, provider
from tests.support.providers.vectors import packed, score, vector

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")

TEXTS = ["one", "two words"]
DOCUMENTS = ["bread and salt", "where the cat sleeps", "a cat"]
QUERY = "where is the cat"
RANKED = sorted(range(3), key=lambda at: -score(QUERY, DOCUMENTS[at]))


async def test_the_openai_sdk_gets_vectors() -> None:
    async with provider("embeddings") as server:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key=KEY) as sdk:
            answer = await sdk.embeddings.create(model="m", input=TEXTS, user="u")
            short = await sdk.embeddings.create(model="m", input=[[1, 2], [3]], dimensions=4, encoding_format="float")
        assert [packed(each.embedding) for each in answer.data] == [vector(text) for text in TEXTS]
        assert [packed(each.embedding) for each in short.data] == [vector("1,2", 4), vector("3", 4)]
        assert (answer.usage.prompt_tokens, short.usage.total_tokens) == (3, 3)
        assert server.refusals == []


async def test_the_google_sdk_gets_vectors() -> None:
    async with provider("native_embeddings") as server:
        options = types.HttpOptions(base_url=server.url, api_version="v1beta")
        sdk = genai.Client(api_key=KEY, http_options=options)
        config = types.EmbedContentConfig(task_type="RETRIEVAL_DOCUMENT", title="T", output_dimensionality=4)
        answer = await sdk.aio.models.embed_content(model="m", contents=TEXTS, config=config)
        await sdk.aio.aclose()
        sdk.close()
        expected = [vector(text, 4, "RETRIEVAL_DOCUMENT", "T") for text in TEXTS]
        assert [packed(each.values or []) for each in answer.embeddings or ()] == expected
        assert server.refusals == []


async def test_the_cohere_sdk_gets_rankings() -> None:
    async with provider("rerank v1") as first, provider("rerank v2") as second:
        async with cohere.AsyncClient(api_key=KEY, base_url=first.url) as sdk:
            options = {"top_n": 2, "return_documents": True, "max_chunks_per_doc": 3}
            answer = await sdk.rerank(model="m", query=QUERY, documents=DOCUMENTS, **options)
        async with cohere.AsyncClientV2(api_key=KEY, base_url=second.url) as later:
            newer = await later.rerank(model="m", query=QUERY, documents=DOCUMENTS, max_tokens_per_doc=9, priority=1)
        assert [each.document.text for each in answer.results if each.document] == [DOCUMENTS[at] for at in RANKED[:2]]
        assert [each.index for each in newer.results] == RANKED
        assert first.refusals == second.refusals == []


@dataclass(frozen=True)
class Refusal:
    id: str
    provider: str
    path: str
    body: dict[str, Any]
    message: str
    status: int = 400
    headers: dict[str, str] = field(default_factory=lambda: {"authorization": f"Bearer {KEY}"})


def plain(name: str, message: str, **body: Any) -> Refusal:
    return Refusal(name, "embeddings", "/v1/embeddings", {"model": "m", "input": "x", **body}, message)


def native(name: str, message: str, *items: Any, action: str = "batchEmbedContents", **options: Any) -> Refusal:
    body = {"requests": list(items)} if action == "batchEmbedContents" else items[0]
    headers = {"headers": {"x-goog-api-key": KEY}, **options}
    return Refusal(name, "native_embeddings", f"/v1beta/models/m:{action}", body, message, **headers)


def ranked(kind: str, name: str, message: str, status: int, **body: Any) -> Refusal:
    request = {"model": "m", "query": "q", "documents": ["a"], **body}
    path = "/v2/rerank" if kind == "rerank v2" else "/v1/rerank"
    return Refusal(f"{kind}: {name}", kind, path, request, message, status)


TEXT = {"model": "models/m", "content": {"parts": [{"text": "x"}]}}
REFUSALS = [
    plain("an unknown field", "x_unknown", x_unknown=1),
    plain("a field of the other format", "taskType", taskType="RETRIEVAL_QUERY"),
    plain("null", "dimensions", dimensions=None),
    plain("a number as text", "dimensions", dimensions="4"),
    plain("more dimensions than there are", "dimensions", dimensions=9),
    plain("dimensions of a model that has one length", "dimensions", model="fixed", dimensions=4),
    plain("an encoding", "encoding_format", encoding_format="hex"),
    plain("no text", "input", input=""),
    plain("no texts", "input", input=[]),
    plain("no text among others", "input[1]", input=["x", ""]),
    plain("texts and tokens", "input", input=["x", [1]]),
    plain("an object", "input", input={"text": "x"}),
    plain("objects", "input", input=[{"text": "x"}]),
    plain("2049 texts", "2048", input=["x"] * 2049),
    plain("no tokens", "input[0]", input=[[]]),
    plain("a token that there is not", "token", input=[200_000]),
    Refusal("a key in another header", "embeddings", "/v1/embeddings", {}, "API key", 401, {"x-api-key": KEY}),
    Refusal("another path", "embeddings", "/v1/embed", {}, "URL", 404),
    native("an unknown field of an item", "Unknown name", TEXT | {"x": 1}),
    native("an unknown field of a part", "Unknown name", TEXT | {"content": {"parts": [{"text": "x", "x": 1}]}}),
    native("a field of the other format", "Unknown name", TEXT | {"dimensions": 4}),
    native("another model in an item", "requests[1].model", TEXT, TEXT | {"model": "models/n"}),
    native("a model without its kind", "requests[0].model", TEXT | {"model": "m"}),
    native("no model in an item", "requests[0].model", {"content": TEXT["content"]}),
    native("no items", "must not be empty"),
    native("101 items", "100", *[TEXT] * 101),
    native("no text", "empty Part", TEXT | {"content": {"parts": [{"text": ""}]}}),
    native("no parts", "no parts", TEXT | {"content": {"parts": []}}),
    native("content that is text", "content", TEXT | {"content": "x"}),
    native("a task", "taskType", TEXT | {"taskType": "DREAMING"}),
    native("null", "title", TEXT | {"title": None}),
    native("more dimensions than there are", "outputDimensionality", TEXT | {"outputDimensionality": 9}),
    native("another model alone", "model", TEXT | {"model": "models/n"}, action="embedContent"),
    native("a bearer", "API key", TEXT, headers={"authorization": f"Bearer {KEY}"}, status=401),
    ranked("rerank v1", "an unknown field", "'x'", 400, x=1),
    ranked("rerank v1", "a field of the second version", "priority", 400, priority=1),
    ranked("rerank v1", "null", "top_n", 400, top_n=None),
    ranked("rerank v1", "no documents", "documents", 400, documents=[]),
    ranked("rerank v1", "an object without text", "a document is", 400, documents=[{"title": "x"}]),
    ranked("rerank v1", "1001 documents", "1000", 400, documents=["x"] * 1001),
    ranked("rerank v2", "an unknown field", "'x'", 422, x=1),
    ranked("rerank v2", "a field of the first version", "return_documents", 422, return_documents=False),
    ranked("rerank v2", "rank_fields", "rank_fields", 422, rank_fields=["text"]),
    ranked("rerank v2", "objects", "strings", 422, documents=[{"text": "x"}]),
    ranked("rerank v2", "no query", "query", 422, query=""),
    ranked("rerank v2", "top_n 0", "top_n", 422, top_n=0),
    ranked("jina", "a field of the other kind", "max_chunks_per_doc", 422, max_chunks_per_doc=1),
    ranked("jina", "an unknown field", "'x'", 422, x=1),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
async def test_the_fake_refuses_the_requests_that_the_real_provider_refuses(case: Refusal) -> None:
    async with provider(case.provider) as server, aiohttp.ClientSession() as session:
        async with session.post(server.url + case.path, json=case.body, headers=case.headers) as answer:
            assert answer.status == case.status, await answer.text()
            assert case.message in await answer.text()
        assert len(server.refusals) == 1
