"""Strict fake provider of native embeddings (text formats, 4.4). Vectors differ by task type and title."""

import re
from typing import Any

from tests.support.providers.embeddings import MATRYOSHKA
from tests.support.providers.server import KEY, Json, ReceivedRequest, RefusedError
from tests.support.providers.strict_vector_server import VectorRequest
from tests.support.providers.vectors import LENGTH, numbers, tokens, vector

MAX_ITEMS = 100
PATH = re.compile(r"/v1beta/models/([^/]+):(embedContent|batchEmbedContents)")
TASKS = (
    *("RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT", "SEMANTIC_SIMILARITY", "CLASSIFICATION", "CLUSTERING"),
    *("QUESTION_ANSWERING", "FACT_VERIFICATION", "CODE_RETRIEVAL_QUERY"),
)
SPELLINGS = {"task_type": "taskType", "output_dimensionality": "outputDimensionality"}
FIELDS: dict[str, tuple[type, ...]] = {
    "model": (str,),
    "content": (dict,),
    "taskType": (str,),
    "title": (str,),
    "outputDimensionality": (int,),
}
LENIENT = ("lenient", "verbatim")
VERBATIM = (
    b'{"x_extra":{"kept":[1,2.0,"three",1e2]},"embeddings":[{"values":[0.10,1e-3,-0.0,1.50],"x_each":null}],'
    b'"usageMetadata":{"promptTokenCount":3,"x_cached":1}}'
)
VERBATIM_ONE = (
    b'{"x_extra":{"kept":[1,2.0,"three",1e2]},"embedding":{"values":[0.10,1e-3,-0.0,1.50],"x_each":null},'
    b'"metadata":{"usage":{"prompt_tokens":3,"total_tokens":3,"x_cached":1}}}'
)


class NativeEmbeddings:
    """Strict provider of native embeddings (see the module)."""

    base_path = "/v1beta"

    def admit(self, received: ReceivedRequest) -> None:
        if received.headers.get("x-goog-api-key") != KEY or "authorization" in received.headers:
            raise RefusedError("API key not valid. Please pass a valid API key.", status=401)

    def read(self, received: ReceivedRequest) -> VectorRequest | None:
        found = PATH.fullmatch(received.path)
        if received.method != "POST" or found is None:
            return None
        model, action = found.groups()
        body, lenient = received.json, model in LENIENT
        if action == "embedContent":
            return VectorRequest(model, (_item(body, "", model, lenient=lenient)[0],), {"requests": [_known(body)]})
        _only(body, ("requests",), "", lenient=lenient)
        items = body.get("requests")
        if not isinstance(items, list) or not items:
            raise RefusedError("* BatchEmbedContentsRequest.requests: must not be empty")
        if len(items) > MAX_ITEMS:
            raise RefusedError("* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch")
        read = [_item(item, f"requests[{at}].", model, lenient=lenient, batch=True) for at, item in enumerate(items)]
        return VectorRequest(
            model, tuple(text for text, _ in read), {"requests": [known for _, known in read], "batch": True}
        )

    def write(self, request: VectorRequest) -> Json | bytes:
        batch = "batch" in request.body
        if request.model == "verbatim":
            return VERBATIM if batch else VERBATIM_ONE
        stubborn = request.model == "stubborn" or (request.model == "uneven" and len(request.texts) == 1)
        fixed = request.model == MATRYOSHKA
        vectors = [
            vector(
                text,
                LENGTH - 1 if stubborn else LENGTH if fixed else item.get("outputDimensionality", LENGTH),
                item.get("taskType", ""),
                item.get("title", ""),
            )
            for text, item in zip(request.texts, request.body["requests"], strict=True)
        ]
        items: list[Json] = [{"values": numbers(each)} for each in vectors]
        body: Json = {"embeddings": items} if batch else {"embedding": items[0]}
        body["usageMetadata"] = {"promptTokenCount": sum(map(tokens, request.texts))}
        match request.model:
            case "few":
                items.pop()
            case "many":
                items.append(items[0])
            case "ragged":
                items[-1]["values"].pop()
            case "missing":
                items[0]["values"] = None
            case "uncounted":
                del body["usageMetadata"]
            case "owed":
                body["usageMetadata"] = {"promptTokenCount": -5}
            case "nonsense":
                body["usageMetadata"] = {"promptTokenCount": "x", "totalTokenCount": [1]}
            case "texts":
                for item in items:
                    item["values"] = [str(number) for number in item["values"]]
            case "empty":
                items[0]["values"] = []
            case "null":
                items[0]["values"] = [None, 1.0]
            case "huge":
                items[0]["values"] = [1e39]
            case "words":
                items[0]["values"] = "AAAA"
            case "no-vectors":
                body = {}
        return body

    def error(self, status: int, message: str, at: str | None) -> Json:
        words = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
        return {"error": {"code": status, "message": message, "status": words.get(status, "INTERNAL")}}


def _item(item: Any, at: str, model: str, *, lenient: bool, batch: bool = False) -> tuple[str, Json]:
    """Return the text of an item to embed, and its known fields."""
    if not isinstance(item, dict):
        raise RefusedError(f"Invalid value at '{at}': expected an object")
    known = _known(item)
    _only(known, tuple(FIELDS), at, lenient=lenient)
    for name, kinds in FIELDS.items():
        if name in known and (not isinstance(known[name], kinds) or isinstance(known[name], bool)):
            raise RefusedError(f"Invalid value at '{at}{name}': {known[name]!r:.40}")
    if known.get("model", "" if batch else f"models/{model}") != f"models/{model}":
        raise RefusedError(f"* {at}model: it must be models/{model}")
    if known.get("taskType", TASKS[0]) not in TASKS:
        raise RefusedError(f"Invalid value at '{at}taskType': {known['taskType']}")
    if not 1 <= known.get("outputDimensionality", 1) <= LENGTH:
        raise RefusedError(f"* {at}outputDimensionality: must be in [1, {LENGTH}]")
    return _text(known.get("content"), f"{at}content", lenient=lenient), known


def _known(item: Json) -> Json:
    return {SPELLINGS.get(name, name): value for name, value in item.items()}


def _text(content: Any, at: str, *, lenient: bool) -> str:
    if not isinstance(content, dict):
        raise RefusedError(f"* {at}: contents is not specified")
    _only(content, ("parts", "role"), f"{at}.", lenient=lenient)
    parts = content.get("parts")
    if not isinstance(parts, list) or not parts:
        raise RefusedError(f"* {at}: contains no parts")
    for each in parts:
        _only(each, ("text",), f"{at}.parts.", lenient=lenient)
        if not isinstance(each.get("text"), str) or not each["text"]:
            raise RefusedError(f"* {at}: contains an empty Part.")
    return "\n".join(part["text"] for part in parts)


def _only(value: Json, names: tuple[str, ...], at: str, *, lenient: bool) -> None:
    unknown = next((name for name in value if name not in names), None)
    if unknown is not None and not lenient:
        raise RefusedError(f"Invalid JSON payload received. Unknown name \"{unknown}\" at '{at}': Cannot find field.")
