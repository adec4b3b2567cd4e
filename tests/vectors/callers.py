"""Callers of the gateway: every face by which it embeds or reranks, over HTTP and gRPC, with and without a socket."""

import base64
import dataclasses
import io
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import grpc

from http_facade.errors import HTTP_STATUS
from tests.e2e.faces import KEY, NAMES, GrpcFace, HttpFace, face
from tests.vectors.making import packed
from umg_grpc.config import Config, parse
from umg_grpc.errors import UmgError
from umg_grpc.status import from_rpc
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import EMBEDDING_FORMATS, RERANK_FORMATS

Json = dict[str, Any]
FACES = ("embeddings", "embeddings, base64", "native_embedding", "native_embeddings")
"""By which callers embed; the second is the first with `encoding_format: base64`."""
RERANK_FACES = ("rerank", "rerank_v2")
FIELDS = "fields"
"""In place of a face, over gRPC: the schema's own fields and no source document."""
WAYS = NAMES


@dataclass(frozen=True)
class Embed:
    """What is to be embedded."""

    model: str = "m"
    inputs: Sequence[str | Sequence[int]] = ("one", "two words", "thrée 🌍")
    dimensions: int | None = None
    task: str | None = None
    title: str | None = None
    user: str | None = None
    more: Mapping[str, object] = dataclasses.field(default_factory=dict)  # beside, at the top level of the body


@dataclass(frozen=True)
class Rerank:
    """What is to be ranked."""

    model: str = "m"
    query: str = "where is the cat"
    documents: Sequence[str | Mapping[str, object]] = ("bread and salt", "where the cat sleeps", "a cat")
    more: Mapping[str, object] = dataclasses.field(default_factory=dict)


@dataclass
class Told:
    """What a caller got, said alike for all ways. Of a refusal `status` is that of HTTP."""

    status: int = 200
    reason: str = ""  # "" where the way does not tell it
    message: str = ""
    field: str = ""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    body: bytes = b""  # over HTTP, or of the source of an answer
    vectors: list[bytes] = dataclasses.field(default_factory=list)
    ranking: list[tuple[int, float, object]] = dataclasses.field(
        default_factory=list
    )  # with the document, None without
    model: str = ""
    tokens: int | None = None
    estimated: bool | None = None  # None where the way does not tell it

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Way(Protocol):
    """How the gateway is reached."""

    name: str

    async def embed(self, ask: Embed, by: str = "embeddings", key: str | None = KEY, **headers: str) -> Told: ...
    async def rerank(self, ask: Rerank, by: str = "rerank", key: str | None = KEY, **headers: str) -> Told: ...


# --- bodies


def embed_body(ask: Embed, by: str) -> Json:
    """The body of a face."""
    if by.startswith("embeddings"):
        said = {"dimensions": ask.dimensions, "user": ask.user}
        said |= {"encoding_format": "base64" if by.endswith("base64") else None}
        body: Json = {"model": ask.model, "input": list(ask.inputs), **given(said), **ask.more}
        return body
    options = given({"taskType": ask.task, "title": ask.title, "outputDimensionality": ask.dimensions})
    items: list[Json] = [{"content": {"parts": [{"text": text}]}, **options} for text in ask.inputs]
    if by == "native_embedding":
        (item,) = items
        return item | dict(ask.more)
    return {"requests": [{"model": f"models/{ask.model}", **item} for item in items], **ask.more}


def rerank_body(ask: Rerank) -> Json:
    return {"model": ask.model, "query": ask.query, "documents": list(ask.documents), **ask.more}


def given(said: Mapping[str, object]) -> Json:
    return {name: value for name, value in said.items() if value is not None}


def path_of(by: str, model: str) -> str:
    """Where the face is on HTTP."""
    match by:
        case "native_embedding":
            return f"/v1beta/models/{model}:embedContent"
        case "native_embeddings":
            return f"/v1/models/{model}:batchEmbedContents"
        case "rerank" | "rerank_v2":
            return {"rerank": "/v1/rerank", "rerank_v2": "/v2/rerank"}[by]
        case _:
            return "/v1/embeddings"


def fields_of(ask: Embed) -> pb.EmbedRequest:
    """The request in the schema's own fields."""
    request = pb.EmbedRequest(model=ask.model, dimensions=ask.dimensions, task_type=ask.task, user=ask.user)
    for each in ask.inputs:
        if isinstance(each, str):
            request.inputs.add(text=each, title=ask.title)
        else:
            request.inputs.add(tokens=pb.EmbeddingTokens(ids=each))
    return request


def rerank_fields_of(ask: Rerank) -> pb.RerankRequest:
    request = pb.RerankRequest(model=ask.model, query=ask.query, **ask.more)
    for document in ask.documents:
        if isinstance(document, str):
            request.documents.add(text=document)
        else:
            request.documents.add(object_json=json.dumps(document))
    return request


# --- answers


def read_embed(body: Any, by: str, told: Told) -> None:
    """Fills in what an answer of the face says."""
    if by.startswith("embeddings"):
        assert body["object"] == "list"
        assert all(item["object"] == "embedding" for item in body["data"])
        assert [item["index"] for item in body["data"]] == list(range(len(body["data"])))
        told.vectors = [_vector(item["embedding"], base64_asked=by.endswith("base64")) for item in body["data"]]
        told.model = body["model"]
        if "usage" in body:
            told.tokens = body["usage"]["total_tokens"]
            assert body["usage"]["prompt_tokens"] <= body["usage"]["total_tokens"]
        return
    items = [body["embedding"]] if by == "native_embedding" else body["embeddings"]
    told.vectors = [packed(item["values"]) for item in items]
    usages = [body["usageMetadata"]["promptTokenCount"]] if "usageMetadata" in body else []
    usages += [body["metadata"]["usage"][name] for name in ("prompt_tokens", "total_tokens") if "metadata" in body]
    assert len(set(usages)) <= 1
    told.tokens = usages[0] if usages else None


def _vector(written: object, *, base64_asked: bool) -> bytes:
    if isinstance(written, str):
        assert base64_asked
        return base64.b64decode(written, validate=True)
    assert isinstance(written, list)
    return packed(written)


def read_rerank(body: Any, told: Told) -> None:
    told.ranking = [(each["index"], each["relevance_score"], each.get("document")) for each in body["results"]]
    told.model, told.tokens = body["model"], body["usage"]["total_tokens"]
    assert body["id"]


# --- the ways


@dataclass
class OverHttp:
    """The HTTP face."""

    name: str
    url: str
    session: aiohttp.ClientSession

    async def embed(self, ask: Embed, by: str = "embeddings", key: str | None = KEY, **headers: str) -> Told:
        told = await self.post(path_of(by, ask.model), embed_body(ask, by), key, headers)
        if told.status == 200:
            read_embed(told.json, by, told)
        return told

    async def rerank(self, ask: Rerank, by: str = "rerank", key: str | None = KEY, **headers: str) -> Told:
        told = await self.post(path_of(by, ask.model), rerank_body(ask), key, headers)
        if told.status == 200:
            read_rerank(told.json, told)
        return told

    async def post(
        self, path: str, body: object, key: str | None = KEY, headers: Mapping[str, str] | None = None
    ) -> Told:
        sent = {"content-type": "application/json", **_authorization(key), **(headers or {})}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.session.post(self.url + path, data=io.BytesIO(data), headers=sent) as response:
            told = Told(response.status, headers=response.headers, body=await response.read())
        assert response.content_type == "application/json"
        if told.status != 200:
            error = told.json["error"]
            told.message = error["message"]
            told.field = error.get("param") or ""
            if "/models/" in path:
                assert error["code"] == told.status
                assert error["status"]
            elif path.startswith("/v2/"):
                assert told.json["message"] == told.message
        return told


@dataclass
class OverGrpc:
    """The schema's own stubs. A face is a source document; on the channel without a socket it is decoded before, as by
    our own facade: only that one is trusted with both.
    """

    name: str
    channel: grpc.aio.Channel
    decodes: bool

    async def embed(
        self,
        ask: Embed,
        by: str = "embeddings",
        key: str | None = KEY,
        seconds: float | None = None,
        **headers: str,
    ) -> Told:
        name = by.partition(",")[0]
        try:
            request = fields_of(ask) if by == FIELDS else self._sourced(ask, by, name)
            call = rpc.EmbeddingServiceStub(self.channel).Embed(
                request, metadata=_metadata(key, headers), timeout=seconds
            )
            answer = await call
        except (grpc.aio.AioRpcError, UmgError) as error:
            return _refused(error)
        told = Told(headers=dict(await call.initial_metadata()), body=answer.source.body)
        if answer.HasField("source"):
            assert answer.source.format == name
            read_embed(told.json, by, told)
        else:
            told.vectors = [each.values for each in answer.embeddings]
        assert told.model in ("", answer.model)
        told.model = answer.model
        assert answer.usage.total_tokens >= answer.usage.input_tokens
        told.tokens, told.estimated = answer.usage.total_tokens, answer.usage.estimated
        return told

    async def rerank(self, ask: Rerank, by: str = "rerank", key: str | None = KEY, **headers: str) -> Told:
        try:
            request = rerank_fields_of(ask) if by == FIELDS else self._rerank_sourced(ask, by)
            call = rpc.RerankServiceStub(self.channel).Rerank(request, metadata=_metadata(key, headers))
            answer = await call
        except (grpc.aio.AioRpcError, UmgError) as error:
            return _refused(error)
        told = Told(headers=dict(await call.initial_metadata()), model=answer.model)
        for result in answer.results:
            document: object = result.document.text if result.HasField("document") else None
            if result.document.object_json:
                document = json.loads(result.document.object_json)
            told.ranking.append((result.index, result.relevance_score, document))
        told.tokens, told.estimated = answer.usage.total_tokens, answer.usage.estimated
        assert answer.response_id
        return told

    def _sourced(self, ask: Embed, by: str, name: str) -> pb.EmbedRequest:
        body, codec = json.dumps(embed_body(ask, by)).encode(), EMBEDDING_FORMATS[name]
        model = ask.model if codec.name_model is not None else ""
        if not self.decodes:
            return pb.EmbedRequest(model=model, source=pb.SourceDocument(format=name, body=body))
        request = codec.decode_request(body, {})
        if codec.name_model is not None:
            codec.name_model(request, model)
        return request

    def _rerank_sourced(self, ask: Rerank, by: str) -> pb.RerankRequest:
        body = json.dumps(rerank_body(ask)).encode()
        if not self.decodes:
            return pb.RerankRequest(source=pb.SourceDocument(format=by, body=body))
        return RERANK_FORMATS[by].decode_request(body, {})


def _refused(error: grpc.aio.AioRpcError | UmgError) -> Told:
    known = error if isinstance(error, UmgError) else from_rpc(error)
    headers = {} if isinstance(error, UmgError) else dict(error.initial_metadata() or ())
    if "retry_after_seconds" in known.metadata:
        headers["retry-after"] = known.metadata["retry_after_seconds"]
    field_named = known.metadata.get("field", "")
    return Told(HTTP_STATUS[known.reason], known.name, known.message, field_named, headers)


def _authorization(key: str | None) -> dict[str, str]:
    return {} if key is None else {"authorization": f"Bearer {key}"}


def _metadata(key: str | None, headers: Mapping[str, str]) -> grpc.aio.Metadata:
    return grpc.aio.Metadata(*_authorization(key).items(), *headers.items())


@asynccontextmanager
async def way(name: str, config: str | Config, data: Path) -> AsyncGenerator[OverHttp | OverGrpc, None]:
    """The gateway of a config, reached in one of the ways."""
    parsed = parse(config, "test.yaml", {}) if isinstance(config, str) else config
    async with face(name, parsed, data) as made:
        if isinstance(made, GrpcFace):
            yield OverGrpc(name, made.channel, decodes=name.endswith("in process"))
        else:
            assert isinstance(made, HttpFace)
            async with aiohttp.ClientSession() as session:
                yield OverHttp(name, made.url, session)


def channel(name: str, protocol: str, base_url: str, *models: str, **options: object) -> str:
    """One channel of a config, to be joined with others below `channels:`."""
    lines = {"protocols": f"[{protocol}]", "base_url": base_url, "api_key": "sk-provider", **options}
    said = "".join(f"    {key}: {value}\n" for key, value in lines.items())
    return f"  - name: {name}\n{said}    models: [{', '.join(models or ('m',))}]\n"


def faces_of(way_name: str, faces: Sequence[str]) -> tuple[str, ...]:
    """The faces of a way: over gRPC the schema's own fields too."""
    return (*faces, FIELDS) if way_name.startswith("grpc") else tuple(faces)
