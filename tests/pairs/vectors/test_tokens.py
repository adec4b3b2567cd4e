"""Texts as token ids: sent unchanged to providers that take token ids, as text to the others."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from splintr import Tokenizer

from tests.pairs.table import EMBEDDING_FACES, EMBEDDING_PROVIDERS
from tests.support.callers.transports import TRANSPORTS
from tests.support.callers.vector_callers import (
    Embed,
    HttpVectorCaller,
    VectorCaller,
    VectorCallers,
    channel,
    faces_of,
    vector_callers,
)
from tests.support.providers.vector_providers import Provider, provider
from tests.support.providers.vectors import vector

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXTS = ("hello world", "thrée 🌍", "  two  spaces\nand a line")
VOCABULARY = Tokenizer.from_pretrained("cl100k_base")
TOKENS = tuple(list(VOCABULARY.encode(text)) for text in TEXTS)
OTHER = Tokenizer.from_pretrained("o200k_base")

Gateway = tuple[VectorCaller, dict[str, Provider]]
Gateways = tuple[VectorCallers, dict[str, Provider]]
PAIRS = [(name, by) for name in TRANSPORTS for by in faces_of(name, EMBEDDING_FACES) if not by.startswith("native")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateways(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gateways, None]:
    async with AsyncExitStack() as stack:
        servers = {name: await stack.enter_async_context(provider(name)) for name in EMBEDDING_PROVIDERS}
        config = "channels:\n" + "".join(
            channel(
                name, name, server.base_url, f"{{id: to-{name}, upstream: m}}", f"{{id: other-{name}, upstream: m}}"
            )
            for name, server in servers.items()
        )
        config += channel("both-plain", "embeddings", servers["embeddings"].base_url, "{id: both, upstream: busy}")
        config += channel(
            "both-native", "native_embeddings", servers["native_embeddings"].base_url, "{id: both, upstream: m}"
        )
        config += "models: {other-native_embeddings: {tokenizer: o200k_base}}\n"
        yield await stack.enter_async_context(vector_callers(TRANSPORTS, config, tmp_path_factory)), servers


@pytest.fixture
def gateway(request: pytest.FixtureRequest, gateways: Gateways) -> Gateway:
    made, servers = gateways
    return made[getattr(request, "param", TRANSPORTS[0])], servers


every_face = pytest.mark.parametrize(
    ("gateway", "by"), PAIRS, indirect=["gateway"], ids=[f"{name}-{by}" for name, by in PAIRS]
)


@every_face
async def test_tokens_reach_a_provider_that_takes_them_as_they_are(by: str, gateway: Gateway) -> None:
    made, servers = gateway
    result = await made.embed(Embed("to-embeddings", TOKENS), by)
    assert result.vectors == [vector(ids) for ids in TOKENS], result
    assert servers["embeddings"].last["input"] == [list(ids) for ids in TOKENS]
    assert result.tokens == sum(map(len, TOKENS))


@every_face
async def test_tokens_are_made_text_for_a_provider_that_takes_none(by: str, gateway: Gateway) -> None:
    made, servers = gateway
    result = await made.embed(Embed("to-native_embeddings", TOKENS), by)
    assert result.vectors == [vector(text) for text in TEXTS], result
    assert "x-umg-dropped" not in result.headers
    assert servers["native_embeddings"].refusals == []


async def test_the_tokens_of_one_text_are_one_input(gateway: Gateway) -> None:
    made, _ = gateway
    assert isinstance(made, HttpVectorCaller)
    for model, expected in (("to-embeddings", vector(TOKENS[0])), ("to-native_embeddings", vector(TEXTS[0]))):
        result = await made.embed(Embed(model, TOKENS[0]))  # type: ignore[arg-type]
        assert result.vectors == [expected], result


async def test_the_operators_vocabulary_reads_the_tokens(gateway: Gateway) -> None:
    made, _ = gateway
    tokens = [list(OTHER.encode(text)) for text in TEXTS]
    result = await made.embed(Embed("other-native_embeddings", tokens))
    assert result.vectors == [vector(text) for text in TEXTS], result


async def test_tokens_of_an_unknown_vocabulary_are_validated_by_the_provider(gateway: Gateway) -> None:
    """Check that 150,000 is accepted, which is above the vocabulary that decodes tokens for other providers."""
    made, servers = gateway
    result = await made.embed(Embed("to-embeddings", [[150_000], [1, 2]]))
    assert result.vectors == [vector([150_000]), vector([1, 2])], result
    assert servers["embeddings"].last["input"] == [[150_000], [1, 2]]


@every_face
async def test_an_unknown_token_is_refused_by_its_position(by: str, gateway: Gateway) -> None:
    made, servers = gateway
    before = len(servers["native_embeddings"].received)
    result = await made.embed(Embed("to-native_embeddings", [[1, 2], [3, 150_000]]), by)
    assert (result.status, result.reason or "UNTRANSLATABLE") == (400, "UNTRANSLATABLE"), result
    assert "150000" in result.message
    assert result.field == ("input[1]" if made.name.startswith("http") else "inputs[1].tokens.ids")
    if made.name.startswith("http"):
        assert result.json["error"]["code"] == "unsupported_parameter"
    assert len(servers["native_embeddings"].received) == before


async def test_a_call_moves_on_to_a_provider_that_takes_text(gateway: Gateway) -> None:
    made, _ = gateway
    result = await made.embed(Embed("both", TOKENS))
    assert result.vectors == [vector(text) for text in TEXTS], result


async def test_half_a_character_where_a_client_cut_a_text_is_no_error(gateway: Gateway) -> None:
    made, servers = gateway
    cut = list(VOCABULARY.encode("a long text that ends in 🌍"))[:-1]
    result = await made.embed(Embed("to-native_embeddings", [cut]))
    assert result.status == 200, result
    assert servers["native_embeddings"].last["requests"][0]["content"]["parts"][0]["text"].startswith("a long text")


@pytest.mark.parametrize(
    ("written", "field"),
    [
        ([[]], "input[0]"),
        ([["x"]], "input[0][0]"),
        ([[1], "x"], "input[1]"),
        ([1, "x"], "input[1]"),
        ([1, [2]], "input[1]"),
        ([-1], "input[0]"),
        ([[2**32]], "input[0][0]"),
        ([1.5], "input[0]"),
        ([True], "input[0]"),
    ],
    ids=str,
)
async def test_an_invalid_list_of_tokens_is_refused(written: list[object], field: str, gateway: Gateway) -> None:
    made, _ = gateway
    assert isinstance(made, HttpVectorCaller)
    for model in ("to-embeddings", "to-native_embeddings"):
        result = await made.post("/v1/embeddings", {"model": model, "input": written})
        assert (result.status, result.field) == (400, field), result
