"""Any face, over any way, towards any provider that embeds: the same vectors to the last bit."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
import pytest_asyncio

from tests.pairs.table import EMBEDDING_FACES, EMBEDDING_PROVIDERS
from tests.support.callers.transports import TRANSPORTS
from tests.support.callers.vector_callers import (
    FIELDS,
    Embed,
    VectorCaller,
    VectorCallers,
    channel,
    faces_of,
    vector_callers,
)
from tests.support.providers.vector_providers import Provider, provider
from tests.support.providers.vectors import vector

pytestmark = pytest.mark.asyncio(loop_scope="module")

Gateway = tuple[VectorCaller, dict[str, Provider]]
Gateways = tuple[VectorCallers, dict[str, Provider]]
ONE = ("thrée 🌍",)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateways(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gateways, None]:
    async with AsyncExitStack() as stack:
        servers = {name: await stack.enter_async_context(provider(name)) for name in EMBEDDING_PROVIDERS}
        config = "channels:\n" + "".join(
            channel(
                name, name, server.base_url, f"{{id: to-{name}, upstream: m}}", f"{{id: small-{name}, upstream: m}}"
            )
            for name, server in servers.items()
        )
        # the lengths of this model's vectors are in the config
        config += "models:\n" + "".join(
            f"  small-{name}: {{capabilities: {{dimensions: 8, other_dimensions: [2, 4]}}}}\n"
            for name in EMBEDDING_PROVIDERS
        )
        yield await stack.enter_async_context(vector_callers(TRANSPORTS, config, tmp_path_factory)), servers


@pytest.fixture(params=TRANSPORTS)
def gateway(request: pytest.FixtureRequest, gateways: Gateways) -> Gateway:
    made, servers = gateways
    return made[request.param], servers


every_provider = pytest.mark.parametrize("name", EMBEDDING_PROVIDERS)


def by_faces(*faces: str) -> pytest.MarkDecorator:
    """Parametrize every way with each of the faces, all by default; the schema's own fields go over gRPC only."""
    pairs = [
        (name, by)
        for name in TRANSPORTS
        for by in faces_of(name, EMBEDDING_FACES)
        if by in (faces or (*EMBEDDING_FACES, FIELDS))
    ]
    ids = [f"{name}-{by}" for name, by in pairs]
    return pytest.mark.parametrize(("gateway", "by"), pairs, indirect=["gateway"], ids=ids)


every_face = by_faces()
faces_with_tasks = by_faces("native_embedding", "native_embeddings", FIELDS)


def adapted_request(request: Embed, by: str) -> Embed:
    """Return the request as the face can express it: one face takes one text only."""
    return replace(request, inputs=ONE) if by == "native_embedding" else request


@every_provider
@every_face
async def test_vectors_come_in_order_and_to_the_last_bit(name: str, by: str, gateway: Gateway) -> None:
    made, servers = gateway
    request = adapted_request(Embed(f"to-{name}"), by)
    result = await made.embed(request, by)
    assert result.status == 200, result
    assert result.vectors == [vector(str(text)) for text in request.inputs]
    assert result.model == (request.model if not by.startswith("native") or made.name.startswith("grpc") else "")
    assert result.tokens == sum(len(str(text).split()) for text in request.inputs)
    assert result.estimated in (None, False)
    assert "x-umg-dropped" not in result.headers
    assert servers[name].refusals == []


@every_provider
@every_face
async def test_a_shorter_length_is_sent_to_every_provider(name: str, by: str, gateway: Gateway) -> None:
    made, servers = gateway
    request = adapted_request(Embed(f"small-{name}", dimensions=4), by)
    result = await made.embed(request, by)
    assert result.vectors == [vector(str(text), 4) for text in request.inputs], result
    assert "x-umg-dropped" not in result.headers
    assert servers[name].refusals == []


@every_provider
@every_face
async def test_a_length_that_the_model_has_not_is_refused_before_its_provider_is_called(
    name: str, by: str, gateway: Gateway
) -> None:
    made, servers = gateway
    before = len(servers[name].received)
    for length in (3, 9):
        result = await made.embed(adapted_request(Embed(f"small-{name}", dimensions=length), by), by)
        assert (result.status, result.reason or "INVALID_FIELD") == (400, "INVALID_FIELD"), result
        assert f"small-{name}" in result.message
        word = "outputDimensionality" if by.startswith("native") and made.name.startswith("http") else "dimensions"
        assert word in result.message
    assert len(servers[name].received) == before


TASK = Embed(task="RETRIEVAL_DOCUMENT", title="T")


@faces_with_tasks
async def test_a_task_and_a_title_reach_the_providers_that_know_them(by: str, gateway: Gateway) -> None:
    made, _ = gateway
    request = adapted_request(replace(TASK, model="to-native_embeddings"), by)
    result = await made.embed(request, by)
    expected = [vector(str(text), task="RETRIEVAL_DOCUMENT", title="T") for text in request.inputs]
    assert result.vectors == expected, result
    assert "x-umg-dropped" not in result.headers


@faces_with_tasks
async def test_a_task_type_and_a_title_are_reported_where_the_provider_does_not_support_them(
    by: str, gateway: Gateway
) -> None:
    made, servers = gateway
    request = adapted_request(replace(TASK, model="to-embeddings"), by)
    result = await made.embed(request, by)
    assert result.vectors == [vector(str(text)) for text in request.inputs], result
    dropped = result.headers["x-umg-dropped"]
    words = ("taskType" if by.startswith("native") else "task_type", "title")
    assert all(word in dropped for word in words), dropped
    assert servers["embeddings"].refusals == []
    before = len(servers["embeddings"].received)
    refused = await made.embed(request, by, **{"x-umg-strict": "true"})
    assert (refused.status, refused.reason or "UNTRANSLATABLE") == (400, "UNTRANSLATABLE")
    assert words[0] in refused.message
    assert len(servers["embeddings"].received) == before


@by_faces("embeddings", "embeddings, base64", FIELDS)
async def test_a_user_reaches_the_providers_that_know_one_and_is_reported_for_others(by: str, gateway: Gateway) -> None:
    made, servers = gateway
    result = await made.embed(adapted_request(Embed("to-embeddings", user="u-1"), by), by)
    assert (result.status, result.headers.get("x-umg-dropped")) == (200, None)
    assert servers["embeddings"].last["user"] == "u-1"
    result = await made.embed(adapted_request(Embed("to-native_embeddings", user="u-1"), by), by)
    assert (result.status, result.headers.get("x-umg-dropped")) == (200, "user")
    refused = await made.embed(Embed("to-native_embeddings", user="u-1"), by, **{"x-umg-strict": "true"})
    assert (refused.status, refused.field) == (400, "user")


async def test_unknown_fields_are_reported_for_providers_of_another_format(gateway: Gateway) -> None:
    made, _ = gateway
    for by, to in (("embeddings", "native_embeddings"), ("native_embeddings", "embeddings")):
        result = await made.embed(Embed(f"to-{to}", more={"x_unknown": {"a": 1}, "x_more": 2}), by)
        assert (result.status, result.headers.get("x-umg-dropped")) == (200, "x_unknown, x_more"), result
        refused = await made.embed(Embed(f"to-{to}", more={"x_unknown": 1}), by, **{"x-umg-strict": "true"})
        assert (refused.status, "x_unknown" in refused.message) == (400, True)
