"""Strict fake provider of the embeddings format (text formats, 5.1): accepts only requests of the SDK's own type."""

import base64
from typing import Any

from openai.types import EmbeddingCreateParams

from tests.support.providers.common import bracketed
from tests.support.providers.server import KEY, Json, ReceivedRequest, RefusedError
from tests.support.providers.strict_vector_server import VectorRequest
from tests.support.providers.typed_dict_validation import Leniency, check
from tests.support.providers.vectors import LENGTH, numbers, packed, tokens, vector

MAX_INPUTS = 2048
VOCABULARY = 200_000  # token ids below it are known; this vocabulary is none of the gateway's own
FIXED = "fixed"
"""Model whose vectors cannot be shortened."""
MATRYOSHKA = "text-embedding-3-small-stubborn"
"""Model with Matryoshka vectors, at a server that ignores the requested length."""
LENIENT = ("lenient", "verbatim")
"""Models that take unknown fields."""
VERBATIM = (
    b'{"object":"list","x_extra":{"kept":[1,2.0,"three",1e2]},"data":[{"object":"embedding","index":0,'
    b'"embedding":[0.10,1e-3,-0.0,1.50],"x_each":null}],"model":"verbatim",'
    b'"usage":{"prompt_tokens":3,"total_tokens":4,"x_cached":{"tokens":1}}}'
)
"""Answer of the model `verbatim`."""


class Embeddings:
    """Strict fake provider of the embeddings format (see the module)."""

    base_path = "/v1"

    def admit(self, received: ReceivedRequest) -> None:
        if received.headers.get("authorization") != f"Bearer {KEY}":
            raise RefusedError(f"Incorrect API key provided: {KEY}.", status=401)

    def read(self, received: ReceivedRequest) -> VectorRequest | None:
        if (received.method, received.path) != ("POST", "/v1/embeddings"):
            return None
        body = received.json
        if not isinstance(body.get("input", ""), str | list):
            raise RefusedError("'$.input' is invalid: expected a string or an array.", "input")
        problem = check(body, EmbeddingCreateParams, Leniency({}, {}))
        if problem is not None and not (problem.kind == "unknown" and body.get("model") in LENIENT):
            raise RefusedError(f"{bracketed(problem.path)}: {problem.message}", bracketed(problem.path))
        model = body["model"]
        if not model:
            raise RefusedError("you must provide a model parameter", "model")
        length = body.get("dimensions")
        if length is not None and (model == FIXED or not 1 <= length <= LENGTH):
            raise RefusedError("This model does not support specifying dimensions.", "dimensions")
        return VectorRequest(model, tuple(_inputs(body["input"])), body)

    def write(self, request: VectorRequest) -> Json | bytes:
        if request.model == "verbatim":
            return VERBATIM
        length = request.body.get("dimensions", LENGTH)
        if request.model == "stubborn" or (request.model == "uneven" and len(request.texts) == 1):
            length = LENGTH - 1
        if request.model == MATRYOSHKA:
            length = LENGTH
        vectors = [vector(text, length) for text in request.texts]
        encode = _base64 if request.body.get("encoding_format") == "base64" and request.model != "numbers" else numbers
        items = [{"object": "embedding", "index": at, "embedding": encode(each)} for at, each in enumerate(vectors)]
        counted = sum(map(tokens, request.texts))
        usage = {"prompt_tokens": counted, "total_tokens": counted}
        body = {"object": "list", "data": items, "model": f"{request.model}-2026-01", "usage": usage}
        return self._odd(request.model, body, items)

    def error(self, status: int, message: str, at: str | None) -> Json:
        kind = {429: "rate_limit_error"}.get(status, "invalid_request_error" if status < 500 else "server_error")
        return {"error": {"message": message, "type": kind, "param": at, "code": None}}

    def _odd(self, model: str, body: Json, items: list[Json]) -> Json:
        match model:
            case "few":
                items.pop()
            case "many":
                items.append(items[0] | {"index": len(items)})
            case "shuffled":
                items.reverse()
            case "twice":  # one position twice, another not at all
                items[-1]["index"] = 0
            case "unplaced":
                for item in items:
                    del item["index"]
            case "beyond":  # numbered from 1
                for item in items:
                    item["index"] += 1
            case "texts":
                for item in items:
                    item["embedding"] = [str(number) for number in _unpacked(item["embedding"])]
            case "urlsafe":
                for item in items:
                    written = packed(_unpacked(item["embedding"]))
                    item["embedding"] = base64.urlsafe_b64encode(written).decode().rstrip("=")
            case "worded":
                for item in items:
                    item["index"] = str(item["index"])
            case "ragged":
                items[-1]["embedding"] = items[-1]["embedding"][:4]
            case "missing":
                items[0]["embedding"] = None
            case "half":  # half of a number
                items[0]["embedding"] = base64.b64encode(bytes(4 * LENGTH - 2)).decode()
            case "uncounted":
                del body["usage"]
            case "owed":
                body["usage"] = {"prompt_tokens": -5, "total_tokens": -5}
            case "nonsense":
                body["usage"] = {"prompt_tokens": "x", "total_tokens": [1]}
            case "half-counted":
                body["usage"] = {"prompt_tokens": body["usage"]["prompt_tokens"]}
            case "empty":
                items[0]["embedding"] = []
            case "null":
                items[0]["embedding"] = [None, 1.0]
            case "huge":
                items[0]["embedding"] = [1e39, 1.0]
            case "words":
                items[0]["embedding"] = "no base64 at all!"
            case "no-vectors":
                body["data"] = []
        return body


def _unpacked(embedding: Any) -> list[float]:
    return numbers(base64.b64decode(embedding)) if isinstance(embedding, str) else list(embedding)


def _inputs(value: Any) -> list[str]:
    if isinstance(value, str):
        return [_text(value, "input")]
    if not value:
        raise RefusedError("'$.input' is invalid: an empty array.", "input")
    if isinstance(value[0], int):
        return [_tokens(value, "input")]
    if len(value) > MAX_INPUTS:
        raise RefusedError(f"'$.input' is invalid: at most {MAX_INPUTS} inputs.", "input")
    return [
        _text(each, f"input[{at}]") if isinstance(each, str) else _tokens(each, f"input[{at}]")
        for at, each in enumerate(value)
    ]


def _text(text: str, at: str) -> str:
    if not text:
        raise RefusedError(f"{at}: input cannot be an empty string.", at)
    return text


def _tokens(ids: list[int], at: str) -> str:
    if not ids or not all(0 <= each < VOCABULARY for each in ids):
        raise RefusedError(f"{at}: invalid token ids.", at)
    return ",".join(map(str, ids))


def _base64(packed: bytes) -> str:
    return base64.b64encode(packed).decode()
