"""LangChain's embeddings of two vendors, unmodified, against the gateway; that of openai sends tokens instead of texts."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import openai
import pytest
import pytest_asyncio
from langchain_openai import OpenAIEmbeddings
from splintr import Tokenizer

from tests.support.gateways import Running, running
from tests.world.sdk.apart_runner import Apart, installed
from tests.world.sdk.runner import installed_or_skipped
from tests.world.sdk.vectors import (
    CAT,
    CONFIG,
    EMBEDDERS,
    ONE_LENGTH,
    REFUSED,
    TEXTS,
    UNKNOWN_MODEL,
    WORDLLAMA,
    WRONG_KEY,
    Embed,
    Embedder,
    Refused,
    check_close,
    check_message,
    check_same,
    check_vectors,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

VOCABULARY_URL = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
BASE_TOKENS = 100_256  # of cl100k_base, without its special ones


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    async with running(CONFIG, tmp_path_factory.mktemp("langchain")) as made:
        yield made


# --- openai's


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache directory of tiktoken with the file that it would download, byte for byte (it compares a hash)."""
    tokenizer = Tokenizer.from_pretrained("cl100k_base")
    lines = [base64.b64encode(tokenizer.decode_token_bytes(rank)) + b" %d\n" % rank for rank in range(BASE_TOKENS)]
    directory = tmp_path_factory.mktemp("tiktoken")
    name = hashlib.sha1(VOCABULARY_URL.encode()).hexdigest()
    (directory / name).write_bytes(b"".join(lines))
    return directory


@pytest.fixture(autouse=True)
def _offline(vocabulary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(vocabulary))


Made = Callable[..., OpenAIEmbeddings]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embeddings(gateway: Running) -> AsyncGenerator[Made, None]:
    """Yield a factory of LangChain's clients. They never close connections, so they share clients closed here."""
    async with openai.DefaultAsyncHttpxClient() as waiting:
        with openai.DefaultHttpxClient() as blocking:
            connection = {"base_url": f"{gateway.url}/v1", "http_client": blocking, "http_async_client": waiting}

            def make(model: str = WORDLLAMA.id, **options: Any) -> OpenAIEmbeddings:
                return OpenAIEmbeddings(
                    **{"model": model, "api_key": gateway.key, "max_retries": 0, **connection, **options}
                )

            yield make


@pytest.mark.parametrize("model", EMBEDDERS, ids=lambda model: model.id)
async def test_documents_and_queries_as_tokens(model: Embedder, embeddings: Made) -> None:
    client = embeddings(model.id)
    documents = await client.aembed_documents(list(TEXTS))
    check_vectors(documents, model.dimensions)
    check_close(documents, [await client.aembed_query(text) for text in TEXTS])
    check_same(documents, await asyncio.to_thread(client.embed_documents, list(TEXTS)))
    as_texts = embeddings(model.id, check_embedding_ctx_length=False)
    check_same(documents, await as_texts.aembed_documents(list(TEXTS)))


async def test_vectors_have_the_requested_length(embeddings: Made) -> None:
    check_vectors(await embeddings(dimensions=64).aembed_documents(list(TEXTS)), 64)


async def test_more_documents_than_it_sends_at_once_keep_their_order(embeddings: Made) -> None:
    client = embeddings()
    texts = [f"{TEXTS[number % 4]} It is note {number}." for number in range(1100)]
    found = await client.aembed_documents(texts)
    assert len(found) == len(texts)
    for place in (0, 999, 1000, 1099):
        check_close([found[place]], [await client.aembed_query(texts[place])])


@pytest.mark.parametrize("model", [WORDLLAMA.id, "text-embedding-3-small"])
async def test_a_text_longer_than_it_sends_at_once_is_put_together(model: str, embeddings: Made) -> None:
    short, long = await embeddings(model).aembed_documents([CAT, f"{CAT} " * 1500])  # in parts of 8191 tokens
    similarity = sum(one * other for one, other in zip(short, long, strict=True))
    assert similarity > 0.9  # the vectors have unit length


@pytest.mark.parametrize("refused", [UNKNOWN_MODEL, WRONG_KEY, ONE_LENGTH], ids=lambda refused: refused.id)
async def test_a_failure_is_openais_own_exception(refused: Refused, embeddings: Made) -> None:
    request = refused.request
    client = embeddings(request.model, **request.options(dimensions="dimensions", key="api_key"))
    with pytest.raises(openai.APIStatusError) as caught:
        await client.aembed_documents(list(request.texts))
    assert caught.value.status_code == refused.status
    check_message(refused, "embeddings", caught.value.message)


async def test_an_empty_document_is_refused(embeddings: Made) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await embeddings().aembed_documents([CAT, ""])
    assert "input" in caught.value.message


# --- google's


@pytest.fixture(scope="module")
def apart() -> Iterator[Apart]:
    packages = installed_or_skipped(installed)
    yield packages
    packages.scripts.close()


async def google(
    apart: Apart, gateway: Running, waiting: bool, named_requests: Iterable[tuple[str, Embed]]
) -> dict[str, Any]:
    jobs = [{"id": name, **asdict(request)} for name, request in named_requests]
    return await apart.run("langchain_google.py", root=gateway.url, key=gateway.key, waiting=waiting, jobs=jobs)


both_ways = pytest.mark.parametrize("waiting", [True, False], ids=["waiting", "blocking"])


@both_ways
async def test_documents_and_queries_of_google(waiting: bool, apart: Apart, gateway: Running) -> None:
    named_requests = []
    for model in EMBEDDERS:
        named_requests += [(f"{model.id} {text}", Embed(model.id, [text], alone=True)) for text in TEXTS]
        named_requests += [(f"{model.id} all", Embed(model.id))]
        named_requests += [(f"{model.id} short", Embed(model.id, dimensions=model.shorter, task="CLUSTERING"))]
    found = await google(apart, gateway, waiting, named_requests)
    for model in EMBEDDERS:
        many = found[f"{model.id} all"]
        assert "error" not in many, many
        check_vectors(many["vectors"], model.dimensions)
        alone = [found[f"{model.id} {text}"]["vectors"][0] for text in TEXTS]
        check_vectors(alone, model.dimensions)
        check_vectors(found[f"{model.id} short"]["vectors"], model.shorter or model.dimensions)


async def test_more_documents_than_google_takes_at_once_keep_their_order(apart: Apart, gateway: Running) -> None:
    texts = [f"{TEXTS[number % 4]} It is note {number}." for number in range(250)]
    places = (0, 99, 100, 249)
    named_requests = [(str(place), Embed(WORDLLAMA.id, [texts[place]])) for place in places]
    found = await google(apart, gateway, True, [("all", Embed(WORDLLAMA.id, texts)), *named_requests])
    assert len(found["all"]["vectors"]) == len(texts)
    for place in places:
        check_close([found["all"]["vectors"][place]], found[str(place)]["vectors"])


@both_ways
async def test_a_failure_of_google_has_the_gateways_message(waiting: bool, apart: Apart, gateway: Running) -> None:
    refused = [case for case in REFUSED if case.request.texts]  # LangChain sends no request without texts
    found = await google(apart, gateway, waiting, [(case.id, case.request) for case in refused])
    for case in refused:
        error = found[case.id].get("error")
        assert error is not None, (case.id, found[case.id])
        assert error["class"] == "GoogleGenerativeAIError"
        assert str(case.status) in error["message"]
        check_message(case, "native_embeddings", error["message"])
