"""Test callers of all embedding and rerank formats over every transport, with one form of results."""

import base64
import dataclasses
import io
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from http_facade.exchange.grpc_service_calls import attach
from tests.support.callers.transports import (
    CallResult,
    GrpcTransport,
    HttpTransport,
    credentials,
    error_fields,
    metadata,
    open_caller,
)
from tests.support.gateways import KEY
from tests.support.providers.vectors import packed
from umg_grpc.base.errors import UmgError
from umg_grpc.config import Config
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest
from umg_grpc.wire.rerank import RERANK_FORMATS

Json = dict[str, Any]
FIELDS = "fields"
"""Value in place of a face, over gRPC: the schema's own fields and no source document."""


@dataclass(frozen=True)
class Embed:
    """Request of a test to embed texts, independent of the format."""

    model: str = "m"
    inputs: Sequence[str | Sequence[int]] = ("one", "two words", "thrée 🌍")
    dimensions: int | None = None
    task: str | None = None
    title: str | None = None
    user: str | None = None
    more: Mapping[str, object] = dataclasses.field(default_factory=dict)  # further top-level fields of the body


@dataclass(frozen=True)
class Rerank:
    """Request of a test to rank documents, independent of the format."""

    model: str = "m"
    query: str = "where is the cat"
    documents: Sequence[str | Mapping[str, object]] = ("bread and salt", "where the cat sleeps", "a cat")
    more: Mapping[str, object] = dataclasses.field(default_factory=dict)


@dataclass
class VectorResult(CallResult):
    """Result of an embedding or rerank call: the vectors or ranking, or the error, that the caller received."""

    body: bytes = b""  # over HTTP, or of the source document of a response
    vectors: list[bytes] = dataclasses.field(default_factory=list)
    ranking: list[tuple[int, float, object]] = dataclasses.field(
        default_factory=list
    )  # the last is the document, None without
    tokens: int | None = None
    estimated: bool | None = None  # None where the transport does not return it

    @property
    def json(self) -> Any:
        return json.loads(self.body)


# --- bodies


def embed_body(request: Embed, by: str) -> Json:
    """Return the body of an embedding request. `by`: name of the format."""
    if by.startswith("embeddings"):
        fields = {"dimensions": request.dimensions, "user": request.user}
        fields |= {"encoding_format": "base64" if by.endswith("base64") else None}
        body: Json = {"model": request.model, "input": list(request.inputs), **given(fields), **request.more}
        return body
    options = given({"taskType": request.task, "title": request.title, "outputDimensionality": request.dimensions})
    items: list[Json] = [{"content": {"parts": [{"text": text}]}, **options} for text in request.inputs]
    if by == "native_embedding":
        (item,) = items
        return item | dict(request.more)
    return {"requests": [{"model": f"models/{request.model}", **item} for item in items], **request.more}


def rerank_body(request: Rerank) -> Json:
    return {"model": request.model, "query": request.query, "documents": list(request.documents), **request.more}


def given(fields: Mapping[str, object]) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def path_of(by: str, model: str) -> str:
    match by:
        case "native_embedding":
            return f"/v1beta/models/{model}:embedContent"
        case "native_embeddings":
            return f"/v1/models/{model}:batchEmbedContents"
        case "rerank" | "rerank_v2":
            return {"rerank": "/v1/rerank", "rerank_v2": "/v2/rerank"}[by]
        case _:
            return "/v1/embeddings"


def fields_of(request: Embed) -> pb.EmbedRequest:
    """Return an embedding request in the schema's own fields, without a body."""
    message = pb.EmbedRequest(
        model=request.model, dimensions=request.dimensions, task_type=request.task, user=request.user
    )
    for each in request.inputs:
        if isinstance(each, str):
            message.inputs.add(text=each, title=request.title)
        else:
            message.inputs.add(tokens=pb.EmbeddingTokens(ids=each))
    return message


def rerank_fields_of(request: Rerank) -> pb.RerankRequest:
    message = pb.RerankRequest(model=request.model, query=request.query, **request.more)
    for document in request.documents:
        if isinstance(document, str):
            message.documents.add(text=document)
        else:
            message.documents.add(object_json=json.dumps(document))
    return message


# --- answers


def read_embed(body: Any, by: str, result: VectorResult) -> None:
    """Read the body of an embedding answer into a result. `by`: name of the format."""
    if by.startswith("embeddings"):
        assert body["object"] == "list"
        assert all(item["object"] == "embedding" for item in body["data"])
        assert [item["index"] for item in body["data"]] == list(range(len(body["data"])))
        result.vectors = [_vector(item["embedding"], is_base64=by.endswith("base64")) for item in body["data"]]
        result.model = body["model"]
        if "usage" in body:
            result.tokens = body["usage"]["total_tokens"]
            assert body["usage"]["prompt_tokens"] <= body["usage"]["total_tokens"]
        return
    items = [body["embedding"]] if by == "native_embedding" else body["embeddings"]
    result.vectors = [packed(item["values"]) for item in items]
    usages = [body["usageMetadata"]["promptTokenCount"]] if "usageMetadata" in body else []
    usages += [body["metadata"]["usage"][name] for name in ("prompt_tokens", "total_tokens") if "metadata" in body]
    assert len(set(usages)) <= 1
    result.tokens = usages[0] if usages else None


def _vector(written: object, *, is_base64: bool) -> bytes:
    if isinstance(written, str):
        assert is_base64
        return base64.b64decode(written, validate=True)
    assert isinstance(written, list)
    return packed(written)


def read_rerank(body: Any, result: VectorResult) -> None:
    result.ranking = [(each["index"], each["relevance_score"], each.get("document")) for each in body["results"]]
    result.model, result.tokens = body["model"], body["usage"]["total_tokens"]
    assert body["id"]


# --- the callers


@dataclass
class HttpVectorCaller:
    """Caller over the gateway's HTTP server."""

    transport: HttpTransport

    @property
    def name(self) -> str:
        return self.transport.name

    async def embed(
        self, request: Embed, by: str = "embeddings", key: str | None = KEY, **headers: str
    ) -> VectorResult:
        result = await self.post(path_of(by, request.model), embed_body(request, by), key, headers)
        if result.status == 200:
            read_embed(result.json, by, result)
        return result

    async def rerank(self, request: Rerank, by: str = "rerank", key: str | None = KEY, **headers: str) -> VectorResult:
        result = await self.post(path_of(by, request.model), rerank_body(request), key, headers)
        if result.status == 200:
            read_rerank(result.json, result)
        return result

    async def post(
        self, path: str, body: object, key: str | None = KEY, headers: Mapping[str, str] | None = None
    ) -> VectorResult:
        sent = {"content-type": "application/json", **credentials(key), **(headers or {})}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.transport.session.post(
            self.transport.url + path, data=io.BytesIO(data), headers=sent
        ) as response:
            result = VectorResult(response.status, headers=response.headers, body=await response.read())
        assert response.content_type == "application/json"
        if result.status != 200:
            error = result.json["error"]
            result.message = error["message"]
            result.field = error.get("param") or ""
            if "/models/" in path:
                assert error["code"] == result.status
                assert error["status"]
            elif path.startswith("/v2/"):
                assert result.json["message"] == result.message
        return result


@dataclass
class GrpcVectorCaller:
    """Caller over generated gRPC stubs, which sends a body as a source document."""

    transport: GrpcTransport

    @property
    def name(self) -> str:
        return self.transport.name

    async def embed(
        self,
        request: Embed,
        by: str = "embeddings",
        key: str | None = KEY,
        seconds: float | None = None,
        **headers: str,
    ) -> VectorResult:
        name = by.partition(",")[0]
        try:
            method = rpc.EmbeddingServiceStub(self.transport.channel).Embed
            if by == FIELDS:
                message = fields_of(request)
            else:
                message, notes = self._sourced(request, by, name)
                method = attach(method, notes)
            call = method(message, metadata=metadata(key, headers), timeout=seconds)
            answer = await call
        except (grpc.aio.AioRpcError, UmgError) as error:
            return VectorResult(**error_fields(error))
        result = VectorResult(headers=dict(await call.initial_metadata()), body=answer.source.body)
        if answer.HasField("source"):
            assert answer.source.format == name
            read_embed(result.json, by, result)
        else:
            result.vectors = [each.values for each in answer.embeddings]
        assert result.model in ("", answer.model)
        result.model = answer.model
        assert answer.usage.total_tokens >= answer.usage.input_tokens
        result.tokens, result.estimated = answer.usage.total_tokens, answer.usage.estimated
        return result

    async def rerank(self, request: Rerank, by: str = "rerank", key: str | None = KEY, **headers: str) -> VectorResult:
        try:
            method = rpc.RerankServiceStub(self.transport.channel).Rerank
            if by == FIELDS:
                message = rerank_fields_of(request)
            else:
                message, notes = self._rerank_sourced(request, by)
                method = attach(method, notes)
            call = method(message, metadata=metadata(key, headers))
            answer = await call
        except (grpc.aio.AioRpcError, UmgError) as error:
            return VectorResult(**error_fields(error))
        result = VectorResult(headers=dict(await call.initial_metadata()), model=answer.model)
        for each in answer.results:
            document: object = each.document.text if each.HasField("document") else None
            if each.document.object_json:
                document = json.loads(each.document.object_json)
            result.ranking.append((each.index, each.relevance_score, document))
        result.tokens, result.estimated = answer.usage.total_tokens, answer.usage.estimated
        assert answer.response_id
        return result

    def _sourced(self, request: Embed, by: str, name: str) -> DecodedRequest[pb.EmbedRequest]:
        body, codec = json.dumps(embed_body(request, by)).encode(), EMBEDDING_FORMATS[name]
        model = "" if name == "embeddings" else request.model  # which the path of all others has
        if not self.transport.decodes:
            source = pb.SourceDocument(format=name, body=body)
            return DecodedRequest(pb.EmbedRequest(model=model, source=source), NO_NOTES)
        return codec.decode_request(body, {}, model)

    def _rerank_sourced(self, request: Rerank, by: str) -> DecodedRequest[pb.RerankRequest]:
        body = json.dumps(rerank_body(request)).encode()
        if not self.transport.decodes:
            return DecodedRequest(pb.RerankRequest(source=pb.SourceDocument(format=by, body=body)), NO_NOTES)
        return RERANK_FORMATS[by].decode_request(body, {})


VectorCaller = HttpVectorCaller | GrpcVectorCaller
"""Caller of embeddings and reranking over any transport."""


def vector_caller(name: str, config: str | Config, data: Path) -> AbstractAsyncContextManager[VectorCaller]:
    """Run a gateway with this config. Yield an embedding and rerank caller of it over the transport `name`."""
    return open_caller(name, config, data, HttpVectorCaller, GrpcVectorCaller)


VectorCallers = dict[str, VectorCaller]


@asynccontextmanager
async def vector_callers(
    names: Sequence[str], config: str | Config, directories: pytest.TempPathFactory
) -> AsyncGenerator[VectorCallers, None]:
    """Yield a caller of one gateway with the config for each transport, to be shared by the cases of a module.

    pytest would make an indirect fixture of module scope anew for each case that has direct parameters too.
    """
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(vector_caller(name, config, directories.mktemp("data")))
            for name in names
        }


def channel(name: str, protocol: str, base_url: str, *models: str, **options: object) -> str:
    """Return one channel of a config as YAML, to be joined with others below `channels:`."""
    lines = {"protocols": f"[{protocol}]", "base_url": base_url, "api_key": "sk-provider", **options}
    keys = "".join(f"    {key}: {value}\n" for key, value in lines.items())
    return f"  - name: {name}\n{keys}    models: [{', '.join(models or ('m',))}]\n"


def faces_of(transport: str, faces: Sequence[str]) -> tuple[str, ...]:
    """Return the formats that are tested over a transport: over gRPC also the schema's own fields, without a body."""
    return (*faces, FIELDS) if transport.startswith("grpc") else tuple(faces)
