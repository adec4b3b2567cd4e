"""Embedding and ranking models of clouds: the gateway's calls are those of the vendors' own SDKs, and each model gets the
body of its page.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import pytest_asyncio
from cohere.aws_client import get_url, map_token_counts
from google import genai
from google.genai import types
from google.oauth2.credentials import Credentials

from tests.support.callers.transports import TRANSPORTS
from tests.support.callers.vector_callers import Embed, VectorCaller, channel, vector_caller
from tests.support.error_checks import raises_error
from tests.support.providers.server import ReceivedRequest, RecordingProvider, serve_provider
from tests.support.providers.vector_providers import Provider, provider
from tests.support.providers.vectors import tokens, vector
from umg_grpc.knowledge.cloud_vector_models import VECTOR_MODELS
from umg_grpc.v1 import pb
from umg_grpc.wire.core.bedrock_invoke_calls import INPUT_TOKENS, model_path
from umg_grpc.wire.embedding_formats import EMBEDDING_UPSTREAMS
from umg_grpc.wire.native_embeddings import NATIVE_EMBEDDINGS
from umg_grpc.wire.rerank import RERANK_UPSTREAMS

Json = dict[str, Any]
BEDROCK, VERTEX = EMBEDDING_UPSTREAMS["bedrock_embeddings"], EMBEDDING_UPSTREAMS["vertex_embeddings"]
TITAN = {
    "titan-v1": "amazon.titan-embed-text-v1",
    "titan-v2": "amazon.titan-embed-text-v2:0",
    "titan-image": "amazon.titan-embed-image-v1",
    "nova": "amazon.nova-2-multimodal-embeddings-v1:0",
    "cohere-v3": "cohere.embed-multilingual-v3",
    "cohere-v4": "us.cohere.embed-v4:0",
}
"""Id of a caller -> id at Bedrock."""


# --- bodies


def request_of(*texts: str, **options: Any) -> pb.EmbedRequest:
    return pb.EmbedRequest(model="m", inputs=[pb.EmbeddingInput(text=text) for text in texts], **options)


@dataclass(frozen=True)
class Body:
    id: str
    model: str
    body: Json
    options: Json = field(default_factory=dict)
    dropped: str = ""
    public_id: str = "m"


def nova(purpose: str, **sizes: int) -> Json:
    text = {"truncationMode": "NONE", "value": "Hi"}
    return {
        "taskType": "SINGLE_EMBEDDING",
        "singleEmbeddingParams": {"embeddingPurpose": purpose, **sizes, "text": text},
    }


def cohere(kind: str, **sizes: int) -> Json:
    return {"texts": ["Hi"], "input_type": kind, "embedding_types": ["float"], **sizes}


ARN = "arn:aws:bedrock:us-east-1:123456789012:provisioned-model/abc"
BODIES = [
    Body("Titan G1", TITAN["titan-v1"], {"inputText": "Hi"}),
    Body("Titan G1 with a purpose", TITAN["titan-v1"], {"inputText": "Hi"}, {"task_type": "CLUSTERING"}, "task_type"),
    Body("Titan v2", TITAN["titan-v2"], {"inputText": "Hi", "dimensions": 256}, {"dimensions": 256}),
    Body(
        "Titan of texts and images",
        TITAN["titan-image"],
        {"inputText": "Hi", "embeddingConfig": {"outputEmbeddingLength": 384}},
        {"dimensions": 384},
    ),
    Body("Nova", TITAN["nova"], nova("GENERIC_INDEX", embeddingDimension=1024), {"dimensions": 1024}),
    Body("Nova for a query", TITAN["nova"], nova("TEXT_RETRIEVAL"), {"task_type": "RETRIEVAL_QUERY"}),
    Body("Cohere v3", TITAN["cohere-v3"], cohere("search_document")),
    Body("Cohere v3 for a query", TITAN["cohere-v3"], cohere("search_query"), {"task_type": "RETRIEVAL_QUERY"}),
    Body("a purpose without a name", TITAN["cohere-v3"], cohere("search_document"), {"task_type": "SEMANTIC_SIMILARITY"}, "task_type"),
    Body("Cohere v4", TITAN["cohere-v4"], cohere("search_document", output_dimension=512), {"dimensions": 512}),
    Body("an ARN", ARN, cohere("search_document")),
    Body("an ARN with the id of a model before it", ARN, {"inputText": "Hi"}, public_id="amazon.titan-embed-text-v1"),
    Body("the id of a user", TITAN["titan-v1"], {"inputText": "Hi"}, {"user": "u"}, "user"),
]  # fmt: skip


@pytest.mark.parametrize("case", BODIES, ids=lambda case: case.id)
def test_a_model_of_bedrock_gets_the_body_of_its_page(case: Body) -> None:
    request = request_of("Hi", **case.options)
    request.model = case.public_id
    encoded = BEDROCK.encode_request(request, case.model)
    assert json.loads(encoded.body) == case.body
    assert encoded.path == model_path(case.model, "invoke")
    assert encoded.report.header() == case.dropped


@pytest.mark.parametrize("model", [TITAN["titan-v1"], TITAN["cohere-v3"]])
def test_a_length_that_a_model_cannot_have_is_refused(model: str) -> None:
    with raises_error(reason=pb.ERROR_REASON_UNTRANSLATABLE, field="dimensions"):
        BEDROCK.encode_request(request_of("Hi", dimensions=256), model)


@pytest.mark.parametrize("codec", [BEDROCK, VERTEX], ids=lambda codec: codec.name)
def test_tokens_and_several_lengths_are_refused(codec: Any) -> None:
    tokens_alone = pb.EmbedRequest(inputs=[pb.EmbeddingInput(tokens=pb.EmbeddingTokens(ids=[1]))])
    lengths = pb.EmbedRequest(inputs=[pb.EmbeddingInput(text="a", dimensions=length) for length in (2, 3)])
    for request, named in ((tokens_alone, "inputs[0].tokens"), (lengths, "inputs[1].dimensions")):
        with raises_error(field=named):
            codec.encode_request(request, "gemini-embedding-001")


def test_rows_of_a_protocol_end_with_one_for_all_other_models() -> None:
    for protocol in {row.protocol for row in VECTOR_MODELS}:
        assert [row.models == "" for row in VECTOR_MODELS if row.protocol == protocol].count(True) == 1
    assert all(row.source and row.as_of for row in VECTOR_MODELS)


def test_rankings_state_the_version_that_coheres_models_need() -> None:
    request = pb.RerankRequest(query="q", documents=[pb.RerankDocument(text="d")], top_n=5, priority=3)
    codec = RERANK_UPSTREAMS["bedrock_rerank"]
    for model, version in (("cohere.rerank-v3-5:0", {"api_version": 2}), ("amazon.rerank-v1:0", {})):
        encoded = codec.encode_request(request, model)
        assert json.loads(encoded.body) == {"query": "q", "documents": ["d"], "top_n": 1, **version}
        assert (encoded.path, encoded.report.header()) == (f"/model/{model}/invoke", "priority")
        assert get_url(platform="bedrock", aws_region="eu-west-1", model=model, stream=False).endswith(encoded.path)


def test_the_header_of_the_usage_is_the_one_that_coheres_client_reads() -> None:
    counted = map_token_counts(httpx.Response(200, headers={INPUT_TOKENS: "17"}))
    assert counted.tokens is not None
    assert counted.tokens.input_tokens == 17


# --- calls


@pytest_asyncio.fixture(params=["http, in process", "grpc"])
async def bedrock(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[tuple[VectorCaller, Provider], None]:
    assert request.param in TRANSPORTS
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(provider("bedrock_embeddings"))
        models = [f'{{id: {name}, upstream: "{model}"}}' for name, model in TITAN.items()]
        lines = "channels:\n" + channel("main", "bedrock_embeddings", server.base_url, *models)
        made = await stack.enter_async_context(vector_caller(request.param, lines, tmp_path_factory.mktemp("data")))
        yield made, server


async def test_models_of_bedrock_embed_batches_with_their_usage(bedrock: tuple[VectorCaller, Provider]) -> None:
    made, server = bedrock
    for name in TITAN:
        before = len(server.received)
        result = await made.embed(Embed(name))
        assert result.vectors == [vector(str(text)) for text in Embed().inputs], result
        assert (result.tokens, result.estimated or False) == (sum(tokens(str(text)) for text in Embed().inputs), False)
        assert len(server.received) - before == (1 if name.startswith("cohere") else 3)
    assert server.refusals == []


# --- calls of Google's SDK


@dataclass(frozen=True)
class GoogleCall:
    id: str
    model: str
    texts: tuple[str, ...] = ("Hi",)
    config: Json = field(default_factory=dict)
    request: Json = field(default_factory=dict)


GOOGLE_CALLS = [
    GoogleCall("several texts", "text-embedding-005", ("Hi", "Ho")),
    GoogleCall(
        "options",
        "text-embedding-005",
        ("Hi",),
        {"task_type": "RETRIEVAL_DOCUMENT", "title": "T", "output_dimensionality": 4},
        {"taskType": "RETRIEVAL_DOCUMENT", "title": "T", "outputDimensionality": 4},
    ),
    GoogleCall("a newer model", "gemini-embedding-2"),
    GoogleCall(
        "options of a newer model",
        "gemini-embedding-2",
        ("Hi",),
        {"task_type": "CLUSTERING", "output_dimensionality": 4},
        {"taskType": "CLUSTERING", "outputDimensionality": 4},
    ),
]


def google_answer(received: ReceivedRequest) -> Json:
    count = len(received.json.get("instances", ()))
    embeddings = {"values": [0.5] * 4, "statistics": {"token_count": 1, "truncated": False}}
    if count:
        return {"predictions": [{"embeddings": embeddings}] * count}
    return {"embedding": {"values": [0.5] * 4}, "usageMetadata": {"promptTokenCount": 1}}


def sdk_call(url: str, case: GoogleCall) -> Callable[[], object]:
    def call() -> object:
        sdk = genai.Client(
            vertexai=True,
            project="p",
            location="us-central1",
            credentials=Credentials("t"),
            http_options=types.HttpOptions(base_url=url, api_version="v1"),
        )
        config = types.EmbedContentConfig(**case.config) if case.config else None
        return sdk.models.embed_content(model=case.model, contents=list(case.texts), config=config)

    return call


@pytest.mark.parametrize("case", GOOGLE_CALLS, ids=lambda case: case.id)
async def test_a_call_on_vertex_is_that_of_the_vendors_own_sdk(
    case: GoogleCall, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with serve_provider(RecordingProvider(respond=google_answer)) as server:
        await asyncio.to_thread(sdk_call(server.url, case))
        [theirs] = server.received
        body = {"requests": [{"content": {"parts": [{"text": text}]}, **case.request} for text in case.texts]}
        decoded = NATIVE_EMBEDDINGS.decode_request(json.dumps(body).encode(), {}, case.model)
        encoded = VERTEX.encode_request(decoded.canonical, case.model, decoded.notes)
    assert theirs.path.endswith(encoded.path), theirs.path
    ours = json.loads(encoded.body)
    content = theirs.json.get("content")
    assert ours == (theirs.json | {"content": {"parts": content["parts"]}} if content else theirs.json)
