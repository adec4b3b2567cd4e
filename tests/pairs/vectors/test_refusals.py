"""Requests that the gateway itself refuses, before any provider is called, over every way and face."""

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
import pytest_asyncio

from tests.pairs.table import EMBEDDING_FACES, RERANK_FACES
from tests.support.callers.transports import TRANSPORTS
from tests.support.callers.vector_callers import (
    FIELDS,
    Embed,
    GrpcVectorCaller,
    HttpVectorCaller,
    Rerank,
    VectorCaller,
    VectorCallers,
    VectorResult,
    channel,
    faces_of,
    vector_callers,
)
from tests.support.gateways import KEY
from tests.support.providers.vector_providers import Provider, provider
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.v1 import pb, rpc

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODELS = """
limits: {embedding_inputs: 5, rerank_documents: 3}
models:
  short: {capabilities: {dimensions: 8, other_dimensions: any}}
  always: {capabilities: {dimensions: 8}}
"""
Gateway = tuple[VectorCaller, list[Provider]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateways(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[tuple[VectorCallers, list[Provider]], None]:
    async with AsyncExitStack() as stack:
        plain, ranker = [await stack.enter_async_context(provider(name)) for name in ("embeddings", "rerank v1")]
        config = "channels:\n" + channel("embeds", "embeddings", plain.base_url, "m", "short", "always")
        config += channel("ranks", "rerank", ranker.base_url, "ranker")
        config += channel("writes", "chat", ranker.base_url, "writer")
        config += channel("all", "chat, embeddings", plain.base_url, "able")
        made = await stack.enter_async_context(vector_callers(TRANSPORTS, config + MODELS, tmp_path_factory))
        yield made, [plain, ranker]


@pytest.fixture(params=TRANSPORTS)
def gateway(request: pytest.FixtureRequest, gateways: tuple[VectorCallers, list[Provider]]) -> Gateway:
    made, servers = gateways
    return made[request.param], servers


@dataclass(frozen=True)
class Refusal:
    id: str
    request: Embed
    status: int
    reason: str
    field: str = ""  # canonical
    message: str = ""
    key: str | None = KEY
    faces: tuple[str, ...] = ("embeddings", "native_embeddings", FIELDS)


REFUSALS = [
    Refusal("no key", Embed(), 401, "MISSING_KEY", message="key", key=None),
    Refusal("a wrong key", Embed(), 401, "INVALID_KEY", message="key", key="sk-umg-wrong"),
    Refusal("an unknown model", Embed("nope"), 404, "MODEL_NOT_FOUND", message="nope"),
    Refusal("a length above the model's own", Embed("short", dimensions=9), 400, "INVALID_FIELD", "dimensions", "at most 8"),
    Refusal("a length of a model that has one", Embed("always", dimensions=4), 400, "UNSUPPORTED_FIELD", "dimensions", "always"),
    Refusal("the one length that a model has", Embed("always", dimensions=8), 400, "UNSUPPORTED_FIELD", "dimensions", "always"),
    Refusal("length 0", Embed("short", dimensions=0), 400, "INVALID_FIELD", "dimensions"),
    Refusal("length -1", Embed("short", dimensions=-1), 400, "INVALID_FIELD", "dimensions"),
    Refusal("no inputs", Embed(inputs=()), 400, "INVALID_FIELD", "inputs"),
    Refusal("an empty text", Embed(inputs=("x", "")), 400, "INVALID_FIELD", "inputs[1].text"),
    Refusal("six inputs where five are allowed", Embed(inputs=["x"] * 6), 400, "INVALID_FIELD", "inputs", "5"),
    Refusal("a model that ranks", Embed("ranker"), 400, "UNSUPPORTED_FIELD", "model", "`ranker` cannot embed texts; it can rerank documents"),
    Refusal("a model that writes", Embed("writer"), 400, "UNSUPPORTED_FIELD", "model", "`writer` cannot embed texts; it can generate text"),
]  # fmt: skip
CASES = [
    (name, by, case)
    for name in TRANSPORTS
    for case in REFUSALS
    for by in case.faces
    if by in faces_of(name, EMBEDDING_FACES)
]
# Our facade or its codec refuses a malformed body: on the channel without a socket the test takes the facade's place.
EMPTY = ("no inputs", "an empty text", "length 0", "length -1")


@pytest.mark.parametrize(
    ("gateway", "by", "case"), CASES, indirect=["gateway"], ids=[f"{name}-{by}-{case.id}" for name, by, case in CASES]
)
async def test_input_that_cannot_be_embedded_is_refused_with_its_status(
    by: str, case: Refusal, gateway: Gateway
) -> None:
    made, servers = gateway
    before = [len(server.received) for server in servers]
    result = await made.embed(case.request, by, case.key)
    assert result.status == case.status, result
    assert case.message in result.message
    if made.name.startswith("grpc"):
        # absent required fields may be reported as missing
        assert result.reason in {case.reason, "MISSING_FIELD" if case.id in EMPTY else case.reason}
        if by == FIELDS:
            assert result.field == case.field
    elif by == "embeddings":
        assert result.field == case.field.replace("inputs", "input").replace(".text", "")
    elif case.field:  # a native error names it in its message
        words = {"dimensions": "outputDimensionality", "model": "model", "inputs": "requests"}
        assert words.get(case.field, "requests[1].content") in result.message
    assert [len(server.received) for server in servers] == before


@dataclass(frozen=True)
class Unranked:
    id: str
    request: Rerank
    status: int
    reason: str
    field: str = ""
    message: str = ""
    key: str | None = KEY


UNRANKED = [
    Unranked("no key", Rerank("ranker"), 401, "MISSING_KEY", key=None),
    Unranked("a wrong key", Rerank("ranker"), 401, "INVALID_KEY", key="sk-umg-wrong"),
    Unranked("an unknown model", Rerank("nope"), 404, "MODEL_NOT_FOUND", message="nope"),
    Unranked("no documents", Rerank("ranker", documents=()), 400, "INVALID_FIELD", "documents"),
    Unranked("an empty query", Rerank("ranker", query=""), 400, "INVALID_FIELD", "query"),
    Unranked("top_n 0", Rerank("ranker", more={"top_n": 0}), 400, "INVALID_FIELD", "top_n"),
    Unranked("an object without text", Rerank("ranker", documents=[{"a": "x"}]), 400, "INVALID_FIELD", "documents[0]", "text"),
    Unranked("four documents where three are allowed", Rerank("ranker", documents=["x"] * 4), 400, "INVALID_FIELD", "documents", "3"),
    Unranked("a model that embeds", Rerank("m"), 400, "UNSUPPORTED_FIELD", "model", "`m` cannot rerank documents; it can embed texts"),
    Unranked("a model that writes", Rerank("writer"), 400, "UNSUPPORTED_FIELD", "model", "`writer` cannot rerank documents; it can generate text"),
    Unranked("a model that does both others", Rerank("able"), 400, "UNSUPPORTED_FIELD", "model", "it can generate text and embed texts"),
]  # fmt: skip
RERANK_CASES = [(name, by, case) for name in TRANSPORTS for case in UNRANKED for by in faces_of(name, RERANK_FACES)]


@pytest.mark.parametrize(
    ("gateway", "by", "case"),
    RERANK_CASES,
    indirect=["gateway"],
    ids=[f"{name}-{by}-{case.id}" for name, by, case in RERANK_CASES],
)
async def test_documents_that_cannot_be_ranked_are_refused_with_their_status(
    by: str, case: Unranked, gateway: Gateway
) -> None:
    made, servers = gateway
    before = [len(server.received) for server in servers]
    result = await made.rerank(case.request, by, case.key)
    assert result.status == case.status, result
    assert case.message in result.message
    assert result.field in {case.field, f"{case.field}.object_json"}
    if result.reason:
        assert result.reason in {case.reason, "MISSING_FIELD" if case.field in {"documents", "query"} else case.reason}
    assert [len(server.received) for server in servers] == before


# --- text of a model that writes none


TEXT_CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}),
    "responses": ("/v1/responses", {"input": "x"}),
    "messages": ("/v1/messages", {"messages": [{"role": "user", "content": "x"}], "max_tokens": 9}),
    "count_tokens": ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "x"}]}),
    "compact": ("/v1/responses/compact", {"input": "x"}),
    "input_tokens": ("/v1/responses/input_tokens", {"input": "x"}),
    "native": ("/v1beta/models/{}:generateContent", {"contents": [{"parts": [{"text": "x"}]}]}),
    "native stream": ("/v1beta/models/{}:streamGenerateContent", {"contents": [{"parts": [{"text": "x"}]}]}),
    "countTokens": ("/v1/models/{}:countTokens", {"contents": [{"parts": [{"text": "x"}]}]}),
}
ABLE = {"m": "it can embed texts", "ranker": "it can rerank documents"}


@pytest.mark.parametrize("gateway", ["http, in process", "http, apart"], indirect=True)
@pytest.mark.parametrize("model", ABLE)
@pytest.mark.parametrize("call", TEXT_CALLS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_no_text_is_requested_of_a_model_that_writes_none(
    call: str, model: str, stream: bool, gateway: Gateway
) -> None:
    made, servers = gateway
    before = [len(server.received) for server in servers]
    path, body = TEXT_CALLS[call]
    body = body | ({} if "{}" in path else {"model": model}) | ({"stream": True} if stream and "{}" not in path else {})
    assert isinstance(made, HttpVectorCaller)
    sent = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    async with made.transport.session.post(
        made.transport.url + path.format(model), data=json.dumps(body), headers=sent
    ) as answer:
        assert answer.status == 400, await answer.text()
        message = (await answer.json())["error"]["message"]
    assert f"`{model}` cannot generate text" in message
    assert ABLE[model] in message
    assert [len(server.received) for server in servers] == before


@pytest.mark.parametrize("gateway", ["grpc"], indirect=True)
async def test_no_text_is_requested_of_it_over_grpc(gateway: Gateway) -> None:
    made, _ = gateway
    assert isinstance(made, GrpcVectorCaller)
    stub, metadata = (
        rpc.GenerationServiceStub(made.transport.channel),
        grpc.aio.Metadata(("authorization", f"Bearer {KEY}")),
    )
    request = pb.GenerateRequest(
        model="m", messages=[pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="x"))])]
    )
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Generate(request, metadata=metadata)
    assert (from_rpc(caught.value).name, from_rpc(caught.value).metadata["field"]) == ("UNSUPPORTED_FIELD", "model")


async def test_a_model_that_can_do_two_things_does_both(gateway: Gateway) -> None:
    made, _ = gateway
    result: VectorResult = await made.embed(Embed("able"))
    assert result.status == 200, result


# --- a source document over a socket


@pytest.mark.parametrize("gateway", ["grpc"], indirect=True)
@pytest.mark.parametrize("name", ["soap", "chat", "", "rerank"])
async def test_a_source_of_another_operation_is_refused(name: str, gateway: Gateway) -> None:
    made, _ = gateway
    assert isinstance(made, GrpcVectorCaller)
    request = pb.EmbedRequest(model="m", source=pb.SourceDocument(format=name, body=b'{"model":"m","input":"x"}'))
    metadata = grpc.aio.Metadata(("authorization", f"Bearer {KEY}"))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await rpc.EmbeddingServiceStub(made.transport.channel).Embed(request, metadata=metadata)
    error = from_rpc(caught.value)
    assert (error.name, error.metadata) == ("INVALID_FIELD", {"field": "source.format"})
    assert "native_embeddings" in error.message


@pytest.mark.parametrize("gateway", ["grpc"], indirect=True)
async def test_fields_beside_an_untrusted_source_are_ignored(gateway: Gateway) -> None:
    made, servers = gateway
    assert isinstance(made, GrpcVectorCaller)
    metadata = grpc.aio.Metadata(("authorization", f"Bearer {KEY}"))
    stub = rpc.EmbeddingServiceStub(made.transport.channel)
    source = pb.SourceDocument(
        format="embeddings", body=b'{"model":"m","input":["x"]}', headers={"authorization": "Bearer mine"}
    )
    request = pb.EmbedRequest(model="nope", inputs=[pb.EmbeddingInput(text="another")], dimensions=99, source=source)
    answer = await stub.Embed(request, metadata=metadata)
    assert answer.model == "m"
    assert servers[0].last == {"model": "m", "input": ["x"]}
    assert servers[0].received[-1].headers["authorization"] == "Bearer sk-provider"
    # and a body with another model than the request, where the format has the model in its path
    batch = pb.SourceDocument(
        format="native_embedding", body=b'{"model":"models/short","content":{"parts":[{"text":"x"}]}}'
    )
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Embed(pb.EmbedRequest(model="m", source=batch), metadata=metadata)
    assert from_rpc(caught.value).metadata == {"field": "model"}
    assert (await stub.Embed(pb.EmbedRequest(model="short", source=batch), metadata=metadata)).model == "short"


@pytest.mark.parametrize("gateway", ["grpc"], indirect=True)
async def test_a_source_without_a_model_anywhere_is_refused(gateway: Gateway) -> None:
    made, _ = gateway
    assert isinstance(made, GrpcVectorCaller)
    source = pb.SourceDocument(format="native_embedding", body=b'{"content":{"parts":[{"text":"x"}]}}')
    metadata = grpc.aio.Metadata(("authorization", f"Bearer {KEY}"))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await rpc.EmbeddingServiceStub(made.transport.channel).Embed(pb.EmbedRequest(source=source), metadata=metadata)
    assert from_rpc(caught.value).name in {"MISSING_FIELD", "INVALID_FIELD"}
    assert from_rpc(caught.value).metadata == {"field": "model"}
