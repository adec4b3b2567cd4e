"""The official cohere SDK, unmodified, embeds through the gateway: `ClientV2` and `AsyncClientV2`."""

import asyncio
import base64
from collections.abc import AsyncGenerator, Awaitable, Mapping
from dataclasses import dataclass
from typing import Any

import cohere
import numpy as np
import pytest
import pytest_asyncio
from cohere.core import ApiError

from tests.support.gateways import Running, running
from tests.world.sdk.vectors import ADA, CONFIG, EMBEDDERS, TEXTS, Embedder, check_vectors

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = EMBEDDERS[0].id


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    async with running(CONFIG, tmp_path_factory.mktemp("cohere")) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def client(gateway: Running) -> AsyncGenerator[cohere.AsyncClientV2, None]:
    async with cohere.AsyncClientV2(api_key=gateway.key, base_url=gateway.url) as sdk:
        yield sdk


def _embed(client: cohere.AsyncClientV2, **options: Any) -> Awaitable[cohere.EmbedByTypeResponse]:
    return client.v2.embed(**{"model": MODEL, "texts": list(TEXTS), "input_type": "search_document", **options})


@pytest.mark.parametrize("embedder", EMBEDDERS, ids=lambda each: each.id)
async def test_texts_are_embedded(client: cohere.AsyncClientV2, embedder: Embedder) -> None:
    answer = await _embed(client, model=embedder.id, embedding_types=["float"])
    assert answer.embeddings.float_ is not None
    check_vectors(answer.embeddings.float_, embedder.dimensions)
    assert answer.texts == list(TEXTS)
    assert answer.id
    assert answer.meta is not None
    assert answer.meta.billed_units is not None
    assert answer.meta.billed_units.input_tokens


async def test_each_type_is_made_of_the_same_floats(client: cohere.AsyncClientV2) -> None:
    types = ["float", "base64", "binary", "ubinary"]
    found = (await _embed(client, embedding_types=types, output_dimension=128)).embeddings
    floats = np.asarray(found.float_, "<f4")
    assert floats.shape == (len(TEXTS), 128)
    assert [base64.b64decode(each) for each in found.base64 or ()] == [vector.tobytes() for vector in floats]
    bits = np.packbits(floats > 0, axis=1)
    assert np.asarray(found.ubinary).tolist() == bits.tolist()
    assert np.asarray(found.binary).tolist() == (bits.astype(int) - 128).tolist()


async def test_inputs_and_the_blocking_client(gateway: Running, client: cohere.AsyncClientV2) -> None:
    inputs: Any = [{"content": [{"type": "text", "text": text}]} for text in TEXTS]

    def embedded() -> list[list[float]] | None:
        with cohere.ClientV2(api_key=gateway.key, base_url=gateway.url) as sdk:
            answer = sdk.v2.embed(model=MODEL, inputs=inputs, input_type="search_query", embedding_types=["float"])
            return answer.embeddings.float_

    assert await asyncio.to_thread(embedded) == (await _embed(client)).embeddings.float_


@dataclass(frozen=True)
class Refused:
    id: str
    options: Mapping[str, Any]
    raises: type[ApiError]
    message: str


REFUSED = [
    Refused("an unknown model", {"model": "nope-embedding"}, cohere.NotFoundError, "nope-embedding"),
    Refused("int8", {"embedding_types": ["int8"]}, cohere.BadRequestError, "embedding_types[0]"),
    Refused("an empty text", {"texts": ["a", ""]}, cohere.BadRequestError, "texts[1]"),
    Refused("images", {"texts": None, "images": ["data:image/png;base64,AA=="]}, cohere.BadRequestError, "images"),
    Refused("a length of another model", {"model": ADA.id, "output_dimension": 128}, cohere.BadRequestError, "output_dimension"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
async def test_a_refusal_is_the_sdks_own_exception(case: Refused, client: cohere.AsyncClientV2) -> None:
    with pytest.raises(case.raises) as caught:
        await _embed(client, **case.options)
    assert isinstance(caught.value.body, Mapping)
    assert case.message in caught.value.body["message"]


async def test_fields_that_no_provider_has_are_reported(gateway: Running) -> None:
    async with cohere.AsyncClientV2(api_key=gateway.key, base_url=gateway.url) as sdk:
        raw = await sdk.v2.with_raw_response.embed(model=MODEL, texts=["a"], input_type="clustering", truncate="END")
    assert "truncate" in raw.headers["x-umg-dropped"]
