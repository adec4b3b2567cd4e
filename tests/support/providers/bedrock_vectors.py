"""Strict fake of Bedrock's InvokeModel for embeddings and rankings: each model takes the members that its page has."""

import re
from typing import Any, ClassVar

from tests.support.providers.embeddings import MATRYOSHKA
from tests.support.providers.rerank import RerankV2
from tests.support.providers.server import KEY, Json, ReceivedRequest, RefusedError
from tests.support.providers.strict_vector_server import VectorRequest
from tests.support.providers.vectors import LENGTH, numbers, tokens, vector

PATH = re.compile(r"/model/([^/]+)/invoke")
PURPOSES = ("search_document", "search_query", "classification", "clustering")
NOVA_PURPOSES = (
    *("GENERIC_INDEX", "GENERIC_RETRIEVAL", "TEXT_RETRIEVAL", "IMAGE_RETRIEVAL", "VIDEO_RETRIEVAL"),
    *("DOCUMENT_RETRIEVAL", "AUDIO_RETRIEVAL", "CLASSIFICATION", "CLUSTERING"),
)
MAX_TEXTS = 96


def admitted(received: ReceivedRequest) -> None:
    if received.headers.get("authorization") != f"Bearer {KEY}":
        raise RefusedError("The security token included in the request is invalid.", status=403)


def only(value: Any, names: set[str]) -> None:
    """Raise RefusedError unless a value is an object with some of the members."""
    if not isinstance(value, dict):
        raise RefusedError("Malformed input request: expected type: JSONObject, please reformat your input.")
    if unknown := sorted(set(value) - names):
        raise RefusedError(f"Malformed input request: extraneous key [{unknown[0]}] is not permitted.")


class BedrockEmbeddings:
    """Models of Amazon and Cohere that embed. Ids without a name are Cohere's newest."""

    base_path = ""

    def admit(self, received: ReceivedRequest) -> None:
        admitted(received)

    def read(self, received: ReceivedRequest) -> VectorRequest | None:
        found = PATH.fullmatch(received.path)
        if received.method != "POST" or found is None:
            return None
        model, body = found[1], received.json
        if "titan-embed-image" in model:
            only(body, {"inputText", "inputImage", "embeddingConfig"})
            only(body.get("embeddingConfig", {}), {"outputEmbeddingLength"})
            length = body.get("embeddingConfig", {}).get("outputEmbeddingLength")
            return _request(model, [body.get("inputText")], length)
        if "titan-embed-text-v2" in model:
            only(body, {"inputText", "dimensions", "normalize", "embeddingTypes"})
            return _request(model, [body.get("inputText")], body.get("dimensions"))
        if "titan" in model:
            only(body, {"inputText"})
            return _request(model, [body.get("inputText")], None)
        return self._nova(model, body) if "nova" in model else self._cohere(model, body)

    def _nova(self, model: str, body: Json) -> VectorRequest:
        only(body, {"schemaVersion", "taskType", "singleEmbeddingParams"})
        parameters = body.get("singleEmbeddingParams", {})
        only(parameters, {"embeddingPurpose", "embeddingDimension", "text"})
        only(parameters.get("text"), {"truncationMode", "value"})
        if body.get("taskType") != "SINGLE_EMBEDDING" or parameters.get("embeddingPurpose") not in NOVA_PURPOSES:
            raise RefusedError("Invalid taskType or embeddingPurpose.")
        if parameters["text"].get("truncationMode") not in ("START", "END", "NONE"):
            raise RefusedError("truncationMode is required.")
        return _request(model, [parameters["text"].get("value")], parameters.get("embeddingDimension"))

    def _cohere(self, model: str, body: Json) -> VectorRequest:
        older = "embed-english" in model or "embed-multilingual" in model
        sizes = set() if older else {"output_dimension", "max_tokens"}
        only(body, {"texts", "input_type", "embedding_types", "truncate"} | sizes)
        if body.get("input_type") not in PURPOSES:
            raise RefusedError("valid input_type must be provided with the provided model")
        if not isinstance(body.get("texts"), list) or not 1 <= len(body["texts"]) <= MAX_TEXTS:
            raise RefusedError(f"total number of texts must be at most {MAX_TEXTS}")
        return _request(model, body["texts"], body.get("output_dimension"), by_type="embedding_types" in body)

    def write(self, request: VectorRequest) -> Json | bytes:
        length = request.body["length"] or LENGTH
        if request.model == "stubborn" or (request.model == "uneven" and len(request.texts) == 1):
            length = LENGTH - 1
        if request.model == MATRYOSHKA:
            length = LENGTH
        vectors: list[Any] = [numbers(vector(text, length)) for text in request.texts]
        _make_odd(request.model, vectors)
        if "titan" in request.model:
            return {"embedding": vectors[0], "inputTextTokenCount": tokens(request.texts[0])}
        if "nova" in request.model:
            return {"embeddings": [{"embeddingType": "TEXT", "embedding": vectors[0]}]}
        if request.model == "no-vectors":
            return {"id": "1", "texts": list(request.texts)}
        if not request.body["by_type"]:
            return {"id": "1", "response_type": "embeddings_floats", "embeddings": vectors}
        return {"id": "1", "response_type": "embeddings_by_type", "embeddings": {"float": vectors}}

    def headers(self, request: VectorRequest) -> dict[str, str]:
        counted = {"uncounted": "", "owed": "-5", "nonsense": "x"}.get(
            request.model, str(sum(map(tokens, request.texts)))
        )
        return {"x-amzn-bedrock-input-token-count": counted} if counted and "titan" not in request.model else {}

    def error(self, status: int, message: str, at: str | None) -> Json:
        return {"message": message}


class BedrockRerank(RerankV2):
    """Models of Amazon and Cohere that rank."""

    base_path = ""
    fields: ClassVar = {"query": (str,), "documents": (list,), "top_n": (int,), "api_version": (int,)}
    refused_status = 400

    def admit(self, received: ReceivedRequest) -> None:
        admitted(received)

    def read(self, received: ReceivedRequest) -> VectorRequest | None:
        found = PATH.fullmatch(received.path)
        if received.method != "POST" or found is None:
            return None
        body = received.json
        needs_version = "amazon." not in found[1]
        only(body, set(self.fields) if needs_version else set(self.fields) - {"api_version"})
        if needs_version and body.get("api_version") != 2:
            raise RefusedError("Malformed input request: required key [api_version] not found.")
        for name in ("query", "documents"):
            if not body.get(name):
                raise RefusedError(f"Malformed input request: required key [{name}] not found.")
        if body.get("top_n", 1) < 1:
            raise RefusedError("Malformed input request: top_n must be at least 1.")
        return VectorRequest(found[1], tuple(map(self._text, body["documents"])), body)

    def headers(self, request: VectorRequest) -> dict[str, str]:
        if request.model == "uncounted":
            return {}
        total = sum(map(tokens, (request.body["query"], *request.texts)))
        return {"x-amzn-bedrock-input-token-count": str(total)}

    def error(self, status: int, message: str, at: str | None) -> Json:
        return {"message": message}

    def _body(self, request: VectorRequest, ranked: list[Json]) -> Json:
        return {"results": ranked}


def _request(model: str, texts: list[Any], length: Any, *, by_type: bool = False) -> VectorRequest:
    if not all(isinstance(text, str) and text for text in texts):
        raise RefusedError("Malformed input request: expected minLength: 1, please reformat your input.")
    if length is not None and (not isinstance(length, int) or not 1 <= length <= LENGTH):
        raise RefusedError("Malformed input request: it is not a valid length of the vectors.")
    return VectorRequest(model, tuple(texts), {"length": length, "by_type": by_type})


def _make_odd(model: str, vectors: list[Any]) -> None:
    match model:
        case "few":
            vectors.pop()
        case "many":
            vectors.append(vectors[0])
        case "ragged":
            vectors[-1] = vectors[-1][:4]
        case "missing":
            vectors[0] = None
        case "texts":
            vectors[:] = [[str(number) for number in each] for each in vectors]
        case "empty":
            vectors[0] = []
        case "null":
            vectors[0] = [None, 1.0]
        case "huge":
            vectors[0] = [1e39]
        case "words":
            vectors[0] = "AAAA"
