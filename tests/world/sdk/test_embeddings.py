"""The official Python SDKs of two vendors, unmodified, embed through the gateway: every model with each of them."""

import asyncio
import base64
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

import openai
import pytest
import pytest_asyncio
from google import genai
from google.genai import errors, types
from openai import AsyncOpenAI, OpenAI
from openai.types import CreateEmbeddingResponse
from splintr import Tokenizer

from tests.support.gateways import Running, running
from tests.world.sdk.vectors import (
    BETWEEN,
    CAT,
    CONFIG,
    EMBEDDERS,
    KITTEN,
    REFUSED,
    TEXTS,
    WORDLLAMA,
    Embed,
    Embedder,
    Refused,
    Vectors,
    check_close,
    check_message,
    check_same,
    check_vectors,
)

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    # the SDK subclasses the session of aiohttp
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]


class Sdks:
    """The SDKs' clients of a gateway. Each is made once per key, which takes long, and closed with the context."""

    def __init__(self, gateway: Running, stack: AsyncExitStack) -> None:
        self._url, self._key, self._stack = gateway.url, gateway.key, stack
        self._made: dict[tuple[str, str], Any] = {}

    async def openai(self, key: str | None = None) -> AsyncOpenAI:
        found = self._find("waiting", key)
        if found is None:
            found = AsyncOpenAI(base_url=f"{self._url}/v1", api_key=key or self._key, max_retries=0)
            self._keep("waiting", key, await self._stack.enter_async_context(found))
        return found

    def blocking_openai(self, key: str | None = None) -> OpenAI:
        found = self._find("blocking", key)
        if found is None:
            found = OpenAI(base_url=f"{self._url}/v1", api_key=key or self._key, max_retries=0)
            self._keep("blocking", key, self._stack.enter_context(found))
        return found

    def google(self, version: str | None, key: str | None = None) -> genai.Client:
        """Return the client of an API version; None selects the SDK's default version."""
        found = self._find(str(version), key)
        if found is None:
            options = types.HttpOptions(base_url=self._url, api_version=version)
            found = genai.Client(api_key=key or self._key, http_options=options)
            self._keep(str(version), key, found)
            self._stack.callback(found.close)
            self._stack.push_async_callback(found.aio.aclose)
        return found

    def _find(self, name: str, key: str | None) -> Any:
        return self._made.get((name, key or self._key))

    def _keep(self, name: str, key: str | None, made: Any) -> None:
        self._made[name, key or self._key] = made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sdks(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Sdks, None]:
    async with running(CONFIG, tmp_path_factory.mktemp("embeddings")) as gateway, AsyncExitStack() as stack:
        yield Sdks(gateway, stack)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sdk(sdks: Sdks) -> AsyncOpenAI:
    return await sdks.openai()


# --- every client


def _openai_options(request: Embed) -> dict[str, Any]:
    return {"model": request.model, "input": list(request.texts), **request.options(dimensions="dimensions")}


def _vectors(answer: CreateEmbeddingResponse, request: Embed) -> Vectors:
    assert answer.object == "list"
    assert answer.model == request.model
    assert answer.usage.total_tokens == answer.usage.prompt_tokens > 0
    assert [each.index for each in answer.data] == list(range(len(request.texts)))
    assert all(each.object == "embedding" for each in answer.data)
    return [each.embedding for each in answer.data]


async def _by_openai(sdks: Sdks, request: Embed) -> Vectors:
    client = await sdks.openai(request.key)
    return _vectors(await client.embeddings.create(**_openai_options(request)), request)


async def _by_openai_blocking(sdks: Sdks, request: Embed) -> Vectors:
    client = sdks.blocking_openai(request.key)
    return _vectors(await asyncio.to_thread(client.embeddings.create, **_openai_options(request)), request)


def _google_options(request: Embed, contents: object = None) -> dict[str, Any]:
    config = types.EmbedContentConfig(
        **request.options(task="task_type", title="title", dimensions="output_dimensionality")
    )
    return {"model": request.model, "contents": list(request.texts) if contents is None else contents, "config": config}


def _values(answer: types.EmbedContentResponse) -> Vectors:
    return [list(each.values or ()) for each in answer.embeddings or ()]


def _by_google(version: str) -> Callable[[Sdks, Embed], Awaitable[Vectors]]:
    async def embed(sdks: Sdks, request: Embed) -> Vectors:
        client = sdks.google(version, request.key)
        return _values(await client.aio.models.embed_content(**_google_options(request)))

    return embed


async def _by_google_blocking(sdks: Sdks, request: Embed) -> Vectors:
    client = sdks.google(None, request.key)
    return _values(await asyncio.to_thread(client.models.embed_content, **_google_options(request)))


OPENAI_ERRORS: Mapping[int, type[Exception]] = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    404: openai.NotFoundError,
}
GOOGLE_STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND"}


@dataclass(frozen=True)
class Client:
    id: str
    format: str
    embed: Callable[[Sdks, Embed], Awaitable[Vectors]]


CLIENTS = [
    Client("openai", "embeddings", _by_openai),
    Client("openai, blocking", "embeddings", _by_openai_blocking),
    Client("google-genai v1", "native_embeddings", _by_google("v1")),
    Client("google-genai v1beta", "native_embeddings", _by_google("v1beta")),
    Client("google-genai, blocking", "native_embeddings", _by_google_blocking),
]
every_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.id)
every_model = pytest.mark.parametrize("model", EMBEDDERS, ids=lambda model: model.id)


@every_model
@every_client
async def test_a_batch_keeps_its_order_and_similar_texts_have_similar_vectors(
    client: Client, model: Embedder, sdks: Sdks
) -> None:
    vectors = await client.embed(sdks, Embed(model.id))
    check_vectors(vectors, model.dimensions)
    alone = [await client.embed(sdks, Embed(model.id, [text])) for text in TEXTS]
    check_close(vectors, [each for (each,) in alone])


@pytest.mark.parametrize("model", [each for each in EMBEDDERS if each.shorter], ids=lambda model: model.id)
@every_client
async def test_vectors_have_the_requested_length(client: Client, model: Embedder, sdks: Sdks) -> None:
    assert model.shorter
    check_vectors(await client.embed(sdks, Embed(model.id, dimensions=model.shorter)), model.shorter)
    check_vectors(await client.embed(sdks, Embed(model.id, dimensions=model.dimensions)), model.dimensions)


@pytest.mark.parametrize("refused", REFUSED, ids=lambda refused: refused.id)
@every_client
async def test_a_failure_is_the_sdks_own_exception(client: Client, refused: Refused, sdks: Sdks) -> None:
    with pytest.raises((openai.APIStatusError, errors.APIError)) as caught:
        await client.embed(sdks, refused.request)
    error = caught.value
    if isinstance(error, openai.APIStatusError):
        assert isinstance(error, OPENAI_ERRORS[refused.status])
        assert error.request_id
    else:
        assert isinstance(error, errors.ClientError)
        assert (error.code, error.status) == (refused.status, GOOGLE_STATUSES[refused.status])
    check_message(refused, client.format, str(error.message))


@every_model
async def test_all_clients_are_given_the_same_vectors(model: Embedder, sdks: Sdks) -> None:
    first, *others = [await client.embed(sdks, Embed(model.id)) for client in CLIENTS]
    for other in others:
        check_same(first, other)


# --- openai


@every_model
async def test_the_sdk_requests_base64_and_it_equals_the_numbers(model: Embedder, sdk: AsyncOpenAI) -> None:
    request = {"model": model.id, "input": list(TEXTS)}
    raw = await sdk.embeddings.with_raw_response.create(**request)
    encoded = [each["embedding"] for each in raw.http_response.json()["data"]]
    decoded = [struct.unpack(f"<{model.dimensions}f", base64.b64decode(text, validate=True)) for text in encoded]
    numbers = await sdk.embeddings.with_raw_response.create(**request, encoding_format="float")
    plain = [each["embedding"] for each in numbers.http_response.json()["data"]]
    assert all(isinstance(number, float | int) for vector in plain for number in vector)
    check_same([list(vector) for vector in decoded], plain)
    check_same([each.embedding for each in raw.parse().data], plain)
    assert raw.parse().usage == numbers.parse().usage


@dataclass(frozen=True)
class Form:
    """A form of the field `input`, and the texts that it encodes."""

    id: str
    input: object
    texts: Sequence[str]


VOCABULARY = Tokenizer.from_pretrained("cl100k_base")
FORMS = [
    Form("one text", CAT, [CAT]),
    Form("the tokens of one text", VOCABULARY.encode(CAT), [CAT]),
    Form("the tokens of texts", [VOCABULARY.encode(text) for text in (KITTEN, CAT)], [KITTEN, CAT]),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.id)
@every_model
async def test_texts_and_tokens_give_the_same_vectors(model: Embedder, form: Form, sdk: AsyncOpenAI) -> None:
    found = await sdk.embeddings.create(model=model.id, input=form.input, user="someone")
    texts = await sdk.embeddings.create(model=model.id, input=list(form.texts))
    check_same([each.embedding for each in found.data], [each.embedding for each in texts.data])
    assert found.usage.prompt_tokens > 0


async def test_a_large_batch_keeps_its_order(sdk: AsyncOpenAI) -> None:
    texts = [f"{TEXTS[number % 4]} This is note {number} of the year {1000 + number}." for number in range(2048)]
    found = await sdk.embeddings.create(model=WORDLLAMA.id, input=texts)
    assert [each.index for each in found.data] == list(range(len(texts)))
    for place in (0, 1, 99, 1024, 2047):
        alone = await sdk.embeddings.create(model=WORDLLAMA.id, input=texts[place])
        check_close([found.data[place].embedding], [alone.data[0].embedding])


async def test_usage_grows_with_the_text(sdk: AsyncOpenAI) -> None:
    short, long = [await sdk.embeddings.create(model=WORDLLAMA.id, input=text) for text in (CAT, CAT * 10)]
    assert long.usage.prompt_tokens > 5 * short.usage.prompt_tokens


REFUSED_FIELDS = {
    "a model of texts": ({"model": "famO-5-mini"}, "model"),
    "a length of 0": ({"dimensions": 0}, "dimensions"),
    "an empty text": ({"input": ""}, "input"),
    "no tokens": ({"input": [[1], []]}, "input"),
    "a token that is none": ({"input": [[99_999_999]]}, "input"),
    "an unknown encoding": ({"encoding_format": "hex"}, "encoding_format"),
}


@pytest.mark.parametrize("case", REFUSED_FIELDS)
async def test_a_bad_field_is_named(case: str, sdk: AsyncOpenAI) -> None:
    fields, name = REFUSED_FIELDS[case]
    request: dict[str, Any] = {"model": "text-embedding-3-small", "input": CAT, **fields}
    with pytest.raises(openai.BadRequestError) as caught:
        await sdk.embeddings.create(**request)
    assert str(caught.value.param).startswith(name)
    assert caught.value.type == "invalid_request_error"


async def test_an_unknown_model_has_the_code_of_one(sdk: AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        await sdk.embeddings.create(model="nope", input=CAT)
    assert caught.value.code == "model_not_found"


# --- google-genai

CONFIGURED = Embed("famG-embedding-001", dimensions=256, task="RETRIEVAL_DOCUMENT", title="A note")


@pytest.mark.parametrize("version", ["v1", "v1beta"])
@every_model
async def test_a_task_and_a_title_are_taken_by_every_model(model: Embedder, version: str, sdks: Sdks) -> None:
    request = replace(CONFIGURED, model=model.id, dimensions=model.shorter)
    check_vectors(await _by_google(version)(sdks, request), model.shorter or model.dimensions)


@pytest.mark.parametrize("version", ["v1", "v1beta"])
async def test_one_content_is_one_vector(version: str, sdks: Sdks) -> None:
    models = sdks.google(version).aio.models
    both = types.Content(role="user", parts=[types.Part(text=CAT), types.Part(text=KITTEN)])
    joined, single = [_values(await models.embed_content(**_google_options(CONFIGURED, each))) for each in (both, CAT)]
    assert (len(joined), len(single)) == (1, 1)
    assert joined != single


async def test_a_models_name_may_have_its_prefix(sdks: Sdks) -> None:
    plain, prefixed = [await _by_google("v1")(sdks, Embed(name)) for name in (WORDLLAMA.id, f"models/{WORDLLAMA.id}")]
    check_same(plain, prefixed)


async def test_the_sdk_receives_the_usage(sdks: Sdks) -> None:
    answer = await sdks.google("v1").aio.models.embed_content(**_google_options(CONFIGURED))
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.prompt_token_count


async def test_the_message_lists_the_lengths_of_a_model(sdks: Sdks) -> None:
    with pytest.raises(errors.ClientError) as caught:
        await _by_google("v1")(sdks, BETWEEN.request)
    for length in ("64", "128", "256"):
        assert length in str(caught.value.message)
