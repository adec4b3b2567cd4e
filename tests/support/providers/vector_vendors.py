"""Fake vendors of vectors and rankings that refuse members with their own texts. They are reached as the proxy of a
channel whose address is the vendor's.
"""

import base64
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from aiohttp import web

from tests.support.providers.server import FakeProvider, Json, ReceivedRequest

LENGTH, MISTRAL_LENGTH = 4, 1024
MISTRAL = {"model", "input", "metadata", "output_dimension", "output_dtype", "encoding_format"}
VOYAGE = {"model", "input", "input_type", "truncation", "output_dimension", "output_dtype", "encoding_format"}
VOYAGE_RANKING = {"model", "query", "documents", "top_k", "return_documents", "truncation"}
JINA = {
    *("model", "input", "task", "dimensions", "embedding_type", "normalized", "late_chunking", "truncate"),
}


@dataclass(kw_only=True)
class VectorVendors(FakeProvider):
    hosts: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        host = urlsplit(str(request.url)).hostname or ""
        self.hosts.append(host)
        body = received.json
        if refusal := _refusal(host, received.path, body):
            status, answer = refusal
            return web.json_response(answer, status=status)
        if received.path.endswith("/rerank"):
            order = range(len(body["documents"]))[: body.get("top_k")]
            scores = [{"index": index, "relevance_score": 1 / (index + 1)} for index in order]
            return web.json_response({"object": "list", "data": scores, "usage": {"total_tokens": 3}})
        return web.json_response(_vectors(body))


def _refusal(host: str, path: str, body: Json) -> tuple[int, Json] | None:
    match host:
        case "api.mistral.ai":
            return _mistral(body)
        case "api.voyageai.com":
            return _voyage(body, VOYAGE_RANKING if path.endswith("/rerank") else VOYAGE)
        case "api.jina.ai":
            return _jina(body)
        case "dashscope.aliyuncs.com" if body.get("encoding_format", "float") != "float":
            error = {"message": "encoding_format only supports float", "code": "InvalidParameter"}
            return 400, {"error": error}
    return None


def _mistral(body: Json) -> tuple[int, Json] | None:
    for name in body.keys() - MISTRAL:
        detail = {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
        return 422, {"detail": [detail]}
    if "output_dimension" in body and body["model"] == "mistral-embed":
        return 400, {"object": "error", "message": "mistral-embed does not support output_dimension", "code": 3051}
    return None


def _voyage(body: Json, members: set[str]) -> tuple[int, Json] | None:
    for name in body.keys() - members:
        return 400, {"detail": f"Argument '{name}' is not supported by our API."}
    if (value := body.get("encoding_format", "base64")) != "base64":
        accepted = (
            f"Value '{value}' supplied for argument 'encoding_format' is not valid -- accepted values are 'base64'."
        )
        return 400, {"detail": accepted}
    return None


def _jina(body: Json) -> tuple[int, Json] | None:
    for name in body.keys() - JINA:
        error = {"field": f"body -> {body['model']} -> {name}", "message": "Extra inputs are not permitted"}
        return 422, {"detail": "Extra inputs are not permitted", "errors": [{**error, "type": "extra_forbidden"}]}
    return None


def vector_of(index: int, length: int = LENGTH) -> list[float]:
    return [float(index + number) for number in range(length)]


def _vectors(body: Mapping[str, object]) -> Json:
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    own = MISTRAL_LENGTH if body["model"] == "mistral-embed" else LENGTH
    length = body.get("output_dimension") or body.get("dimensions") or own
    assert isinstance(length, int)
    data = []
    for index in range(len(texts)):
        vector: object = vector_of(index, length)
        if body.get("encoding_format") == "base64":
            vector = base64.b64encode(struct.pack(f"<{length}f", *vector_of(index, length))).decode()
        data.append({"object": "embedding", "index": index, "embedding": vector})
    usage = {"prompt_tokens": 2, "total_tokens": 2}
    return {"object": "list", "model": body["model"], "data": data, "usage": usage}
