"""Answers of providers that break their format: completed where that is safe, refused where it is not."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.pairs.table import EMBEDDING_PROVIDERS
from tests.support.callers.vector_callers import FIELDS, Embed, VectorCaller, VectorCallers, channel, vector_callers
from tests.support.providers.embeddings import MATRYOSHKA
from tests.support.providers.vector_providers import provider
from tests.support.providers.vectors import LENGTH, vector

pytestmark = pytest.mark.asyncio(loop_scope="module")

BROKEN = (
    *("few", "many", "empty", "missing", "null", "huge", "words", "ragged", "no-vectors", "fails-in-200", "html"),
    *("twice", "beyond", "worded", "half"),
)
NUMBERED = ("twice", "beyond", "worded", "half")
"""Answers that only a format with numbered vectors, or vectors in base64, can express."""
UNCOUNTED = ("uncounted", "owed", "nonsense")
WHOLE = ("shuffled", "unplaced", "texts", "urlsafe", *UNCOUNTED, "half-counted", "numbers", "marked")
STUBBORN = ("stubborn", MATRYOSHKA)
"""Models whose vectors have one length, for any requested length."""
MODELS = {
    "embeddings": BROKEN + WHOLE + STUBBORN,
    "native_embeddings": (
        *(each for each in BROKEN if each not in NUMBERED),
        *UNCOUNTED,
        *("marked", "texts"),
        *STUBBORN,
    ),
    "vertex_embeddings": (*(each for each in BROKEN if each not in NUMBERED), *UNCOUNTED, "marked", "texts", *STUBBORN),
    "bedrock_embeddings": (
        *(each for each in BROKEN if each not in NUMBERED),
        *UNCOUNTED,
        "marked",
        "texts",
        *STUBBORN,
    ),
}
TWO_TRANSPORTS = ("http, in process", "grpc")
TEXTS = tuple(f"text number {number}" for number in range(5))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateways(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[VectorCallers, None]:
    async with AsyncExitStack() as stack:
        config = "channels:\n"
        for name in EMBEDDING_PROVIDERS:
            server = await stack.enter_async_context(provider(name))
            models = [f'{{id: {public(name, model)}, upstream: "{model}"}}' for model in MODELS[name]]
            config += channel(name, name, server.base_url, *models)
        yield await stack.enter_async_context(vector_callers(TWO_TRANSPORTS, config, tmp_path_factory))


@pytest.fixture(params=TWO_TRANSPORTS)
def gateway(request: pytest.FixtureRequest, gateways: VectorCallers) -> VectorCaller:
    return gateways[request.param]


def public(name: str, model: str) -> str:
    return f"{name}/{model}"


@dataclass(frozen=True)
class Odd:
    """A face towards a provider whose model gives an odd answer."""

    by: str
    name: str
    model: str

    @property
    def passes(self) -> bool:
        """Whether the response is passed through unchanged."""
        return self.by.partition(",")[0] == self.name

    def __str__(self) -> str:
        return f"{self.by} to {self.name}, {self.model}"


ODD = [
    Odd(by, name, model)
    for name in EMBEDDING_PROVIDERS
    for model in MODELS[name]
    for by in ("embeddings", "embeddings, base64", "native_embeddings", FIELDS)
]
# A passthrough answer is not decoded: the size of a number is not checked.
REFUSED = [odd for odd in ODD if odd.model in BROKEN and not (odd.passes and odd.model == "huge")]
GOOD = [odd for odd in ODD if odd.model in WHOLE]


def every_way(odd: list[Odd]) -> pytest.MarkDecorator:
    """Parametrize each case with both ways; the schema's own fields go over gRPC only."""
    pairs = [
        (name, each) for name in ("http, in process", "grpc") for each in odd if name == "grpc" or each.by != FIELDS
    ]
    ids = [f"{name}-{each}" for name, each in pairs]
    return pytest.mark.parametrize(("gateway", "odd"), pairs, indirect=["gateway"], ids=ids)


@every_way(REFUSED)
async def test_an_answer_without_the_vectors_is_a_failure_and_no_short_answer(odd: Odd, gateway: VectorCaller) -> None:
    result = await gateway.embed(Embed(public(odd.name, odd.model), TEXTS), odd.by)
    assert (result.status, result.reason or "UPSTREAM_FAILED") == (502, "UPSTREAM_FAILED"), result
    assert result.message
    assert "<" not in result.message


@every_way(GOOD)
async def test_an_answer_that_has_them_is_put_in_order(odd: Odd, gateway: VectorCaller) -> None:
    result = await gateway.embed(Embed(public(odd.name, odd.model), TEXTS), odd.by)
    assert result.vectors == [vector(text) for text in TEXTS], result
    assert result.tokens
    assert result.model in ("", public(odd.name, odd.model))
    if gateway.name == "grpc":
        assert result.estimated == (odd.model in UNCOUNTED)


@every_way([odd for odd in ODD if odd.model == MATRYOSHKA])
async def test_vectors_of_a_model_that_allows_it_are_cut_to_the_requested_length(
    odd: Odd, gateway: VectorCaller
) -> None:
    result = await gateway.embed(Embed(public(odd.name, odd.model), TEXTS, dimensions=4), odd.by)
    assert result.vectors == [vector(text, 4) for text in TEXTS], result


@every_way([odd for odd in ODD if odd.model == "stubborn"])
async def test_vectors_of_another_length_than_requested_are_a_failure(odd: Odd, gateway: VectorCaller) -> None:
    result = await gateway.embed(Embed(public(odd.name, odd.model), TEXTS, dimensions=4), odd.by)
    assert result.status == 502, result
    assert f"vectors of {LENGTH - 1} numbers, not of the 4 that were requested" in result.message
    result = await gateway.embed(Embed(public(odd.name, odd.model), TEXTS), odd.by)
    assert result.vectors == [vector(text, LENGTH - 1) for text in TEXTS], result
