"""A caller and a provider of one format: every field of the other side arrives, byte for byte."""

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.pairs.table import EMBEDDING_PROVIDERS
from tests.support.callers.vector_callers import Embed, GrpcVectorCaller, HttpVectorCaller, channel, vector_caller
from tests.support.providers.embeddings import VERBATIM
from tests.support.providers.native_embeddings import VERBATIM as NATIVE_VERBATIM
from tests.support.providers.native_embeddings import VERBATIM_ONE as NATIVE_VERBATIM_ONE
from tests.support.providers.vector_providers import Provider, provider

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODELS = ("verbatim", "lenient", "m", "shuffled", "uncounted", "numbers", "marked")
RENAMED = "{id: renamed, upstream: verbatim}"
ODD = '"x_unknown":{"b":1.0,"a":[1e2,null,"\\u00e9"]}'
BODY = '{ODD,"input":"x","model":"verbatim","user":"u"}'.replace("ODD", ODD)
BATCH = (
    '{"requests":[{"x_unknown":1.50,"content":{"parts":[{"text":"x","x_part":1.0}],"role":"user"},'
    '"model":"models/verbatim"}],ODD}'
).replace("ODD", ODD)
SINGLE = '{ODD,"content":{"parts":[{"text":"x"}]},"model":"models/verbatim"}'.replace("ODD", ODD)

Gateway = tuple[HttpVectorCaller, dict[str, Provider]]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["http, in process", "http, apart"])
async def gateway(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Gateway, None]:
    data: Path = tmp_path_factory.mktemp("data")
    async with AsyncExitStack() as stack:
        servers = {name: await stack.enter_async_context(provider(name)) for name in EMBEDDING_PROVIDERS}
        config = "channels:\n" + channel("plain", "embeddings", servers["embeddings"].base_url, *MODELS, RENAMED)
        models = [f"{{id: native-{model}, upstream: {model}}}" for model in MODELS]
        config += channel("native", "native_embeddings", servers["native_embeddings"].base_url, *models)
        made = await stack.enter_async_context(vector_caller(request.param, config, data))
        assert isinstance(made, HttpVectorCaller)
        yield made, servers


def text(document: bytes | str) -> Any:
    """Return a document's JSON, its numbers as they were written and its members in order."""
    return json.loads(document, parse_float=str, parse_int=str, object_pairs_hook=tuple)


async def test_a_body_reaches_its_provider_as_it_was_written(gateway: Gateway) -> None:
    made, servers = gateway
    assert (await made.post("/v1/embeddings", BODY.encode())).status == 200
    assert text(servers["embeddings"].received[-1].body) == text(BODY)


async def test_a_body_with_another_id_is_sent_with_the_providers_id(gateway: Gateway) -> None:
    made, servers = gateway
    assert (await made.post("/v1/embeddings", BODY.replace("verbatim", "renamed").encode())).status == 200
    assert text(servers["embeddings"].received[-1].body) == text(BODY)
    native = BATCH.replace("models/verbatim", "models/native-verbatim")
    assert (await made.post("/v1beta/models/native-verbatim:batchEmbedContents", native.encode())).status == 200
    assert servers["native_embeddings"].received[-1].path == "/v1beta/models/verbatim:batchEmbedContents"
    assert text(servers["native_embeddings"].received[-1].body) == text(BATCH)
    alone = SINGLE.replace("models/verbatim", "models/native-verbatim")
    assert (await made.post("/v1/models/native-verbatim:embedContent", alone.encode())).status == 200
    assert servers["native_embeddings"].received[-1].path == "/v1beta/models/verbatim:embedContent"
    assert text(servers["native_embeddings"].received[-1].body) == text(SINGLE)


async def test_an_answer_is_passed_through_byte_for_byte(gateway: Gateway) -> None:
    made, _ = gateway
    assert (await made.post("/v1/embeddings", BODY.encode())).body == VERBATIM
    renamed = await made.post("/v1/embeddings", BODY.replace("verbatim", "renamed").encode())
    assert renamed.body == VERBATIM.replace(b'"model":"verbatim"', b'"model":"renamed"')
    native = await made.post(
        "/v1beta/models/native-verbatim:batchEmbedContents",
        BATCH.replace("models/verbatim", "models/native-verbatim").encode(),
    )
    assert native.body == NATIVE_VERBATIM
    alone = await made.post(
        "/v1beta/models/native-verbatim:embedContent",
        SINGLE.replace("models/verbatim", "models/native-verbatim").encode(),
    )
    assert alone.body == NATIVE_VERBATIM_ONE


async def test_nothing_is_reported_as_dropped(gateway: Gateway) -> None:
    made, _ = gateway
    result = await made.post("/v1/embeddings", BODY.encode(), headers={"x-umg-strict": "true"})
    assert (result.status, result.headers.get("x-umg-dropped")) == (200, None)


async def test_usage_that_the_provider_left_out_is_counted(gateway: Gateway) -> None:
    made, _ = gateway
    result = await made.post("/v1/embeddings", {"model": "uncounted", "input": "hello world"})
    assert result.json["usage"] == {"prompt_tokens": 2, "total_tokens": 2}
    body = {"content": {"parts": [{"text": "hello world"}]}}
    native = await made.post("/v1beta/models/native-uncounted:embedContent", body)
    assert native.json["usageMetadata"] == {"promptTokenCount": 2}
    assert native.json["metadata"]["usage"] == {"prompt_tokens": 2, "total_tokens": 2}


async def test_a_grpc_caller_gets_the_source_or_the_vectors_and_never_neither(tmp_path: Path) -> None:
    async with provider("embeddings") as server:
        config = "channels:\n" + channel("plain", "embeddings", server.base_url, "verbatim", "m")
        async with vector_caller("grpc", config, tmp_path) as made:
            assert isinstance(made, GrpcVectorCaller)
            result = await made.embed(Embed("verbatim", inputs=["x"], more={"x_unknown": 1}))
            assert result.body == VERBATIM
            assert (result.model, result.tokens) == ("verbatim", 4)
            assert server.last["x_unknown"] == 1
            result = await made.embed(Embed("m", inputs=["x"]), "fields")
            assert (result.body, len(result.vectors)) == (b"", 1)
