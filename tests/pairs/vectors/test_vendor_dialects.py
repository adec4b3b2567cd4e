"""Embeddings and rankings by real vendors: members of the body as each accepts them, changes reported."""

import base64
import json
import struct
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.support.callers.vector_callers import HttpVectorCaller, channel, vector_caller
from tests.support.providers.server import serve_provider
from tests.support.providers.vector_vendors import VectorVendors, vector_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOSTS = {
    "mistral": ("http://api.mistral.ai/v1", ("mistral-embed", "codestral-embed")),
    "voyage": ("http://api.voyageai.com/v1", ("voyage-4-large", "rerank-3")),
    "jina": ("http://api.jina.ai/v1", ("jina-embeddings-v3", "jina-embeddings-v4")),
    "dashscope": ("http://dashscope.aliyuncs.com/compatible-mode/v1", ("text-embedding-v4",)),
    "other": ("http://vectors.example/v1", ("text-embedding-3-small",)),
}
Gateway = tuple[HttpVectorCaller, VectorVendors]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gateway, None]:
    async with AsyncExitStack() as stack:
        vendors = await stack.enter_async_context(serve_provider(VectorVendors()))
        proxy = vendors.url
        config = "channels:\n"
        for name, (url, models) in HOSTS.items():
            config += channel(name, "embeddings, rerank", url, *models, proxy=proxy)
        made = await stack.enter_async_context(
            vector_caller("http, in process", config, tmp_path_factory.mktemp("vendors"))
        )
        assert isinstance(made, HttpVectorCaller)
        yield made, vendors


@dataclass(frozen=True)
class Sent:
    """Call of a caller, and the members beside the model and the inputs that the vendor gets."""

    id: str
    model: str
    body: Mapping[str, object]
    sent: Mapping[str, object]
    dropped: str | None = None
    path: str = "/v1/embeddings"


NATIVE = "/v1beta/models/{model}:embedContent"
TEXT = {"content": {"parts": [{"text": "one"}]}}
SENT = [
    Sent("an end user to Mistral", "mistral-embed", {"user": "somebody-1"}, {}, "user"),
    Sent("Mistral's only length", "mistral-embed", {"dimensions": 1024}, {}),
    Sent("a length to Mistral's model with lengths", "codestral-embed", {"dimensions": 8}, {"output_dimension": 8}),
    Sent("numbers to Mistral", "mistral-embed", {"encoding_format": "float"}, {"encoding_format": "float"}),
    Sent("an end user to Voyage", "voyage-4-large", {"user": "somebody-1"}, {}, "user"),
    Sent("numbers to Voyage", "voyage-4-large", {"encoding_format": "float"}, {}),
    Sent("base64 to Voyage", "voyage-4-large", {"encoding_format": "base64"}, {"encoding_format": "base64"}),
    Sent("a length to Voyage", "voyage-4-large", {"dimensions": 8}, {"output_dimension": 8}),
    Sent("Voyage's own member", "voyage-4-large", {"input_type": "query"}, {"input_type": "query"}),
    Sent("an end user to Jina", "jina-embeddings-v3", {"user": "somebody-1"}, {}, "user"),
    Sent("numbers to Jina", "jina-embeddings-v4", {"encoding_format": "float"}, {}),
    Sent("base64 to Jina", "jina-embeddings-v3", {"encoding_format": "base64"}, {}),
    Sent("a length to Jina", "jina-embeddings-v3", {"dimensions": 8}, {"dimensions": 8}),
    Sent("base64 to DashScope", "text-embedding-v4", {"encoding_format": "base64", "dimensions": 8}, {"dimensions": 8}),
    Sent(
        "everything to an unknown vendor",
        "text-embedding-3-small",
        {"user": "somebody-1", "encoding_format": "float", "dimensions": 8},
        {"user": "somebody-1", "encoding_format": "float", "dimensions": 8},
    ),
    Sent(
        "a native caller's length and task to Voyage",
        "voyage-4-large",
        {**TEXT, "outputDimensionality": 8, "taskType": "RETRIEVAL_QUERY"},
        {"encoding_format": "base64", "output_dimension": 8, "input_type": "query"},
        path=NATIVE,
    ),
    Sent("a native caller's task to Jina", "jina-embeddings-v3", {**TEXT, "taskType": "CLUSTERING"}, {"task": "separation"}, path=NATIVE),
    Sent("a native caller's task that Voyage does not have", "voyage-4-large", {**TEXT, "taskType": "CLUSTERING"}, {"encoding_format": "base64"}, "taskType", NATIVE),
    Sent("a native caller's task to Mistral", "mistral-embed", {**TEXT, "taskType": "RETRIEVAL_QUERY"}, {"encoding_format": "base64"}, "taskType", NATIVE),
]  # fmt: skip


@pytest.mark.parametrize("case", SENT, ids=lambda case: case.id)
async def test_a_vendor_gets_the_members_that_it_accepts(case: Sent, gateway: Gateway) -> None:
    made, vendors = gateway
    own = {} if case.path == NATIVE else {"model": case.model, "input": ["one", "two"]}
    result = await made.post(case.path.format(model=case.model), {**own, **case.body})
    assert result.status == 200, result.message
    rest = {name: value for name, value in vendors.last.items() if name not in ("model", "input")}
    assert (rest, result.headers.get("x-umg-dropped")) == (case.sent, case.dropped)


@pytest.mark.parametrize(
    "model", ["voyage-4-large", "jina-embeddings-v3", "codestral-embed", "text-embedding-v4", "text-embedding-3-small"]
)
@pytest.mark.parametrize("form", [None, "float", "base64"])
async def test_the_answer_has_the_form_that_the_caller_selected(model: str, form: str | None, gateway: Gateway) -> None:
    made, _ = gateway
    selected = {"encoding_format": form} if form else {}
    result = await made.post("/v1/embeddings", {"model": model, "input": ["one", "two"], **selected})
    vectors = [item["embedding"] for item in result.json["data"]]
    if form == "base64":
        vectors = [list(struct.unpack("<4f", base64.b64decode(vector))) for vector in vectors]
    assert vectors == [vector_of(0), vector_of(1)]


@dataclass(frozen=True)
class Refused:
    """Call that no model of the channel can serve, and the name of the field in the caller's format."""

    id: str
    path: str
    body: Mapping[str, object]
    field: str


REFUSED = [
    Refused(
        "embeddings", "/v1/embeddings", {"model": "mistral-embed", "input": "one", "dimensions": 512}, "dimensions"
    ),
    Refused(
        "native", NATIVE.format(model="mistral-embed"), {**TEXT, "outputDimensionality": 512}, "outputDimensionality"
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
async def test_a_length_that_the_model_does_not_have_is_refused(case: Refused, gateway: Gateway) -> None:
    made, vendors = gateway
    before = len(vendors.received)
    result = await made.post(case.path, dict(case.body))
    assert result.status == 400
    assert case.field in json.dumps(result.json)
    assert "1024 numbers only" in result.message
    assert len(vendors.received) == before


async def test_a_strict_call_with_a_member_that_would_be_left_out_is_refused(gateway: Gateway) -> None:
    made, _ = gateway
    body = {"model": "voyage-4-large", "input": "one", "user": "somebody-1"}
    result = await made.post("/v1/embeddings", body, headers={"x-umg-strict": "true"})
    assert (result.status, "user" in result.message) == (400, True)


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
async def test_voyage_ranks_under_its_own_name_of_the_count(path: str, gateway: Gateway) -> None:
    made, vendors = gateway
    body = {"model": "rerank-3", "query": "cat", "documents": ["a", "b", "c"], "top_n": 2}
    result = await made.post(path, body)
    assert result.status == 200, result.message
    assert [each["index"] for each in result.json["results"]] == [0, 1]
    assert (vendors.last["top_k"], "top_n" in vendors.last) == (2, False)
