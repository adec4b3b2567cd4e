"""Strict fake providers that rerank (text formats, 5.2): Cohere-like in the first and the second version, and
Jina-like.
"""

from typing import Any, ClassVar

from tests.support.providers.server import KEY, Json, ReceivedRequest, RefusedError
from tests.support.providers.strict_vector_server import VectorRequest
from tests.support.providers.vectors import score, tokens

MAX_DOCUMENTS = 1000
ID = "07734bd2-2473-4f07-94e1-0d9f0e6843cf"
STRING, WHOLE, BOOLEAN = (str,), (int,), (bool,)
LOGITS = "logits"
"""Model whose scores are no probabilities."""


class RerankV1:
    """Cohere-like provider, first version: documents may be objects."""

    base_path = "/v1"
    version = "1"
    fields: ClassVar[dict[str, tuple[type, ...]]] = {
        "model": STRING,
        "query": STRING,
        "documents": (list,),
        "top_n": WHOLE,
        "rank_fields": (list,),
        "return_documents": BOOLEAN,
        "max_chunks_per_doc": WHOLE,
    }
    refused_status = 400
    returns_by_default = False

    def admit(self, received: ReceivedRequest) -> None:
        if received.headers.get("authorization") != f"Bearer {KEY}":
            raise RefusedError("invalid api token", status=401)

    def read(self, received: ReceivedRequest) -> VectorRequest | None:
        if (received.method, received.path) != ("POST", f"{self.base_path}/rerank"):
            return None
        body = received.json
        for name, value in body.items():
            if name not in self.fields:
                raise self._refused(f"unknown field: parameter '{name}' is not a valid field", name)
            if not isinstance(value, self.fields[name]) or (isinstance(value, bool) and self.fields[name] != BOOLEAN):
                raise self._refused(f"invalid type: parameter '{name}' is of the wrong type", name)
        for name in ("model", "query", "documents"):
            if not body.get(name):
                raise self._refused(f"invalid request: {name} is required and must not be empty", name)
        if body.get("top_n", 1) < 1:
            raise self._refused("invalid request: top_n must be at least 1", "top_n")
        if len(body["documents"]) > MAX_DOCUMENTS:
            raise self._refused(f"too many documents: at most {MAX_DOCUMENTS}", "documents")
        return VectorRequest(body["model"], tuple(map(self._text, body["documents"])), body)

    def write(self, request: VectorRequest) -> Json | bytes:
        ranked = sorted(
            (
                {"index": at, "relevance_score": score(request.body["query"], text)}
                for at, text in enumerate(request.texts)
            ),
            key=lambda result: -result["relevance_score"],
        )[: request.body.get("top_n")]
        if request.body.get("return_documents", self.returns_by_default):
            for result in ranked:
                result["document"] = {"text": request.texts[int(result["index"])]}
        if request.model == LOGITS:
            for result in ranked:
                result["relevance_score"] = result["relevance_score"] * 20 - 12
        return _odd(request, self._body(request, ranked), ranked)

    def error(self, status: int, message: str, at: str | None) -> Json:
        return {"id": ID, "message": message}

    def _body(self, request: VectorRequest, ranked: list[Json]) -> Json:
        meta = {"api_version": {"version": self.version}, "billed_units": {"search_units": 1}}
        return {"id": ID, "results": ranked, "meta": meta}

    def _text(self, document: Any) -> str:
        if isinstance(document, dict) and isinstance(document.get("text"), str):
            return str(document["text"])
        if not isinstance(document, str):
            raise self._refused("invalid request: a document is a string or an object with `text`", "documents")
        return document

    def _refused(self, message: str, at: str) -> RefusedError:
        return RefusedError(message, at, status=self.refused_status)


class RerankV2(RerankV1):
    """Cohere-like provider, second version: strings only."""

    base_path = "/v2"
    version = "2"
    fields: ClassVar = {
        "model": STRING,
        "query": STRING,
        "documents": (list,),
        "top_n": WHOLE,
        "max_tokens_per_doc": WHOLE,
        "priority": WHOLE,
    }
    refused_status = 422

    def _text(self, document: Any) -> str:
        if not isinstance(document, str):
            raise self._refused("invalid request: documents must be strings", "documents")
        return document


class Jina(RerankV1):
    """Jina-like provider: documents are returned unless the request turns that off, and tokens are counted."""

    fields: ClassVar = {
        "model": STRING,
        "query": STRING,
        "documents": (list,),
        "top_n": WHOLE,
        "return_documents": BOOLEAN,
    }
    refused_status = 422
    returns_by_default = True

    def error(self, status: int, message: str, at: str | None) -> Json:
        if status != 422:
            return {"detail": message}
        return {"detail": [{"type": "invalid", "loc": ["body", at], "msg": message}]}

    def _body(self, request: VectorRequest, ranked: list[Json]) -> Json:
        total = sum(map(tokens, (request.body["query"], *request.texts)))
        return {"model": request.model, "object": "list", "usage": {"total_tokens": total}, "results": ranked}


def _odd(request: VectorRequest, body: Json, ranked: list[Json]) -> Json:
    match request.model:
        case "uncounted":
            body.pop("usage", None), body.pop("meta", None), body.pop("id", None)
        case "score":  # name of the field at other providers
            for result in ranked:
                result["score"] = result.pop("relevance_score")
        case "data":
            body["data"] = body.pop("results")
        case "shuffled":
            ranked.reverse()
        case "alike":
            for result in ranked:
                result["relevance_score"] = 0.5
            ranked.reverse()
        case "too-many":
            body["results"] = _all(request)
        case "too-few":
            ranked.pop()
        case "twice":
            ranked.append(ranked[0])
        case "beyond":
            ranked[0]["index"] = len(request.texts)
        case "unscored":
            del ranked[0]["relevance_score"]
        case "no-results":
            del body["results"]
    return body


def _all(request: VectorRequest) -> list[Json]:
    return [
        {"index": at, "relevance_score": score(request.body["query"], text)} for at, text in enumerate(request.texts)
    ]
