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
from tests.support.providers.vectors import vector

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


async def test_the_items_of_a_batch_without_models_get_the_upstream_model(gateway: Gateway) -> None:
    made, servers = gateway
    body = {"requests": [{"content": {"parts": [{"text": "x"}]}}, {"content": {"parts": [{"text": "y"}]}}]}
    assert (await made.post("/v1beta/models/native-m:batchEmbedContents", body)).status == 200
    assert [item["model"] for item in servers["native_embeddings"].last["requests"]] == ["models/m", "models/m"]


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


@pytest.mark.parametrize("written", ["float", "base64", None])
async def test_the_callers_own_encoding_is_requested_and_returned(written: str | None, gateway: Gateway) -> None:
    made, servers = gateway
    body: dict[str, object] = {"model": "m", "input": ["x", "y"]}
    result = await made.post("/v1/embeddings", body | ({"encoding_format": written} if written else {}))
    assert servers["embeddings"].last.get("encoding_format") == written
    kinds = {type(item["embedding"]) for item in result.json["data"]}
    assert kinds == {str if written == "base64" else list}


async def test_numbers_instead_of_base64_are_converted(gateway: Gateway) -> None:
    """SDKs that select base64 read an array of numbers as bytes."""
    made, _ = gateway
    result = await made.post("/v1/embeddings", {"model": "numbers", "input": "x", "encoding_format": "base64"})
    assert isinstance(result.json["data"][0]["embedding"], str)


async def test_a_length_in_a_whole_float_is_sent_as_a_whole_number(gateway: Gateway) -> None:
    made, servers = gateway
    result = await made.post("/v1/embeddings", b'{"model":"m","input":"x","dimensions":4.0}')
    assert result.status == 200, result.message
    assert servers["embeddings"].received[-1].body.endswith(b'"dimensions":4}')


async def test_explicit_nulls_do_not_reach_a_strict_provider(gateway: Gateway) -> None:
    """Check bodies of LangChain and generated clients, which write every field."""
    made, servers = gateway
    body = {"model": "m", "input": "x", "dimensions": None, "user": None, "encoding_format": None}
    result = await made.post("/v1/embeddings", body)
    assert result.status == 200, result.message
    assert servers["embeddings"].refusals == []


async def test_a_byte_order_mark_is_taken_off(gateway: Gateway) -> None:
    made, _ = gateway
    for path, body in (
        ("/v1/embeddings", {"model": "marked", "input": "x"}),
        ("/v1/models/native-marked:embedContent", {"content": {"parts": [{"text": "x"}]}}),
    ):
        assert (await made.post(path, body)).body.startswith(b"{")


async def test_usage_that_the_provider_left_out_is_counted(gateway: Gateway) -> None:
    made, _ = gateway
    result = await made.post("/v1/embeddings", {"model": "uncounted", "input": "hello world"})
    assert result.json["usage"] == {"prompt_tokens": 2, "total_tokens": 2}
    body = {"content": {"parts": [{"text": "hello world"}]}}
    native = await made.post("/v1beta/models/native-uncounted:embedContent", body)
    assert native.json["usageMetadata"] == {"promptTokenCount": 2}
    assert native.json["metadata"]["usage"] == {"prompt_tokens": 2, "total_tokens": 2}


async def test_vectors_received_in_another_order_are_returned_in_that_of_the_texts(gateway: Gateway) -> None:
    made, _ = gateway
    result = await made.embed(Embed("shuffled", inputs=["a", "b", "c"]))
    assert result.vectors == [vector(text) for text in "abc"], result


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
