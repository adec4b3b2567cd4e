"""Answers of providers that are not what the format says: made whole where that is safe, refused where it is not."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from tests.vectors import EMBEDDING, provider
from tests.vectors.callers import FIELDS, Embed, OverGrpc, OverHttp, channel, way
from tests.vectors.making import vector

pytestmark = pytest.mark.asyncio(loop_scope="module")

BROKEN = ("few", "many", "empty", "null", "huge", "words", "no-vectors", "fails-in-200", "html", "twice")
WHOLE = ("shuffled", "unplaced", "uncounted", "half-counted", "numbers", "marked")
MODELS = {
    "embeddings": BROKEN + WHOLE,
    "native_embeddings": [each for each in BROKEN if each != "twice"] + ["uncounted", "marked"],
}
TEXTS = tuple(f"text number {number}" for number in range(5))


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["http, in process", "grpc"])
async def gateway(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[OverHttp | OverGrpc, None]:
    data: Path = tmp_path_factory.mktemp("data")
    async with AsyncExitStack() as stack:
        config = "channels:\n"
        for name in EMBEDDING:
            server = await stack.enter_async_context(provider(name))
            models = [f'{{id: {public(name, model)}, upstream: "{model}"}}' for model in MODELS[name]]
            config += channel(name, name, server.base_url, *models)
        yield await stack.enter_async_context(way(request.param, config, data))


def public(name: str, model: str) -> str:
    return f"{name}/{model}"


@dataclass(frozen=True)
class Odd:
    """A face towards a provider that answers so."""

    by: str
    name: str
    model: str

    @property
    def passes(self) -> bool:
        """Whether the answer goes back as it came."""
        return self.by.partition(",")[0] == self.name

    def __str__(self) -> str:
        return f"{self.by} to {self.name}, {self.model}"


ODD = [
    Odd(by, name, model)
    for name in EMBEDDING
    for model in MODELS[name]
    for by in ("embeddings", "native_embeddings", FIELDS)
]
# What is passed on is only looked at as far as the service must know it: its number of vectors, its usage.
SEEN_IN_PASSING = {"few", "many", "no-vectors", "fails-in-200", "html"}
REFUSED = [odd for odd in ODD if odd.model in BROKEN and (not odd.passes or odd.model in SEEN_IN_PASSING)]
GOOD = [odd for odd in ODD if odd.model in WHOLE and not odd.passes]


def every_way(odd: list[Odd]) -> pytest.MarkDecorator:
    """Each by both ways; the schema's own fields go over gRPC only."""
    pairs = [
        (name, each) for name in ("http, in process", "grpc") for each in odd if name == "grpc" or each.by != FIELDS
    ]
    ids = [f"{name}-{each}" for name, each in pairs]
    return pytest.mark.parametrize(("gateway", "odd"), pairs, indirect=["gateway"], ids=ids)


@every_way(REFUSED)
async def test_an_answer_without_the_vectors_is_a_failure_and_no_short_answer(
    odd: Odd, gateway: OverHttp | OverGrpc
) -> None:
    told = await gateway.embed(Embed(public(odd.name, odd.model), TEXTS), odd.by)
    assert (told.status, told.reason or "UPSTREAM_FAILED") == (502, "UPSTREAM_FAILED"), told
    assert told.message
    assert "<" not in told.message


@every_way(GOOD)
async def test_an_answer_that_has_them_is_put_in_order(odd: Odd, gateway: OverHttp | OverGrpc) -> None:
    told = await gateway.embed(Embed(public(odd.name, odd.model), TEXTS), odd.by)
    assert told.vectors == [vector(text) for text in TEXTS], told
    assert told.tokens
    assert told.model in ("", public(odd.name, odd.model))


async def test_what_a_caller_of_the_same_format_reads_is_the_providers_own(gateway: OverHttp | OverGrpc) -> None:
    """The number of vectors is right, and their order told."""
    ask = Embed(public("embeddings", "shuffled"), TEXTS)
    if isinstance(gateway, OverHttp):
        told = await gateway.post("/v1/embeddings", {"model": ask.model, "input": list(TEXTS)})
        assert [item["index"] for item in told.json["data"]] == [4, 3, 2, 1, 0]
