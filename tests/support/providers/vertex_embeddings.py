"""Strict fake provider of embeddings on Vertex AI: `:predict` of its own models, `:embedContent` of newer ones."""

import re
from typing import Any

from tests.support.providers.native_embeddings import TASKS, NativeEmbeddings
from tests.support.providers.server import KEY, Json, ReceivedRequest, RefusedError
from tests.support.providers.strict_vector_server import VectorRequest
from tests.support.providers.vectors import LENGTH, tokens

PLACE = "/v1/projects/p/locations/l/publishers/google"
PATH = re.compile(rf"{PLACE}/models/([^/]+):(predict|embedContent)")
MAX_INSTANCES = 250
INSTANCE, PARAMETERS = {"content", "task_type", "title"}, {"autoTruncate", "outputDimensionality"}
CONFIG = {"taskType", "title", "outputDimensionality", "autoTruncate"}


class VertexEmbeddings(NativeEmbeddings):
    """Strict provider of embeddings on Vertex AI (see the module)."""

    base_path = PLACE

    def admit(self, received: ReceivedRequest) -> None:
        if received.headers.get("authorization") != f"Bearer {KEY}" or "x-goog-api-key" in received.headers:
            raise RefusedError("Request had invalid authentication credentials.", status=401)

    def read(self, received: ReceivedRequest) -> VectorRequest | None:
        found = PATH.fullmatch(received.path)
        if received.method != "POST" or found is None:
            return None
        model, method = found.groups()
        body = received.json
        if method == "embedContent":
            return self._single(model, body)
        _only(body, {"instances", "parameters"}, "")
        instances, parameters = body.get("instances"), body.get("parameters", {})
        limit = 1 if model.startswith("gemini-") else MAX_INSTANCES
        if not isinstance(instances, list) or not 1 <= len(instances) <= limit:
            raise RefusedError(f"{limit} instance(s) is allowed per prediction.")
        _only(parameters, PARAMETERS, "parameters.")
        for each in instances:
            _only(each, INSTANCE, "instances.")
            _check_text(each.get("content"))
            if "title" in each and each.get("task_type") != "RETRIEVAL_DOCUMENT":
                raise RefusedError("title is only valid with task_type=RETRIEVAL_DOCUMENT.")
        items = [
            _item(each.get("task_type"), each.get("title"), parameters.get("outputDimensionality"))
            for each in instances
        ]
        return VectorRequest(model, tuple(each["content"] for each in instances), {"requests": items, "batch": True})

    def write(self, request: VectorRequest) -> Json | bytes:
        body = super().write(request)
        assert isinstance(body, dict)
        if "batch" not in request.body:
            return body
        counts = [{"token_count": tokens(text), "truncated": False} for text in request.texts]
        match request.model:
            case "uncounted":
                counts = [{} for _ in counts]
            case "owed":
                counts = [{"token_count": -5} for _ in counts]
            case "nonsense":
                counts = [{"token_count": "x"} for _ in counts]
        if "embeddings" not in body:
            return {}
        vectors: list[Json] = body["embeddings"]
        counts += counts[:1] * (len(vectors) - len(counts))
        pairs = zip(vectors, counts, strict=False)
        return {"predictions": [{"embeddings": vector | {"statistics": counted}} for vector, counted in pairs]}

    def _single(self, model: str, body: Json) -> VectorRequest:
        _only(body, {"content", "embedContentConfig"}, "")
        content, config = body.get("content"), body.get("embedContentConfig", {})
        _only(config, CONFIG, "embedContentConfig.")
        if not isinstance(content, dict) or not content.get("parts"):
            raise RefusedError("content is not specified")
        [part] = content["parts"]
        _check_text(part.get("text"))
        item = _item(config.get("taskType"), config.get("title"), config.get("outputDimensionality"))
        return VectorRequest(model, (part["text"],), {"requests": [item]})


def _item(task: Any, title: Any, length: Any) -> Json:
    if task is not None and task not in TASKS:
        raise RefusedError(f"Invalid task type: {task}")
    if length is not None and (not isinstance(length, int) or not 1 <= length <= LENGTH):
        raise RefusedError(f"outputDimensionality must be in [1, {LENGTH}]")
    known = {"taskType": task, "title": title, "outputDimensionality": length}
    return {name: value for name, value in known.items() if value is not None}


def _check_text(text: Any) -> None:
    if not isinstance(text, str) or not text:
        raise RefusedError("The text content is empty.")


def _only(value: Any, names: set[str], at: str) -> None:
    if not isinstance(value, dict):
        raise RefusedError(f"Invalid value at '{at}'")
    if unknown := sorted(set(value) - names):
        raise RefusedError(
            f"Invalid JSON payload received. Unknown name \"{unknown[0]}\" at '{at}': Cannot find field."
        )
