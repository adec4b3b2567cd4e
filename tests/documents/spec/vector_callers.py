"""Callers of embedding and reranking."""

import base64
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.documents.spec.callers import Face, Native, openai_error
from tests.support.callers.api import Reply

DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "famG-embedding-001": 3072,
    "text-embedding-004": 768,
    "wordllama-256": 256,
}
"""Every embedding model and its own length: those of the text document, and the local one."""
FIXED = "text-embedding-ada-002"
"""The model whose length cannot be changed."""
CAT, KITTEN, BANK = (
    "A cat sleeps on the warm sofa.",
    "The kitten is napping on the couch.",
    "The bank raised its rates.",
)
"""Three texts: the first two are close to each other, the third is far from both."""
Vector = list[float]


def near(one: Vector, other: Vector) -> float:
    """Return the cosine similarity."""
    first, second = np.asarray(one), np.asarray(other)
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def from_base64(written: str) -> Vector:
    """Return the numbers of little-endian float32s."""
    packed = base64.b64decode(written, validate=True)
    return list(struct.unpack(f"<{len(packed) // 4}f", packed))


class Embeddings(Face):
    """Caller of `POST /v1/embeddings`."""

    name = "embeddings"
    path, model, question_field = "/v1/embeddings", "text-embedding-3-small", "input"

    def prompt(self, text: str) -> Any:
        return text

    def error(self, reply: Reply, status: int) -> Any:
        return openai_error(reply, status)

    def names(self, error: Any, field: str) -> bool:
        return error["param"] == field and field in error["message"]

    def vectors(self, body: Any) -> list[Vector]:
        assert body["object"] == "list"
        assert [item["index"] for item in body["data"]] == list(range(len(body["data"])))
        assert {item["object"] for item in body["data"]} == {"embedding"}
        return [item["embedding"] for item in body["data"]]

    async def embed(self, *texts: str, model: str = "", **fields: object) -> list[Vector]:
        """Return the vectors of the texts."""
        return self.vectors(await self.answer({**fields, "input": list(texts)}, model=model))


class NativeEmbedding(Native):
    """Caller of `POST .../models/{model}:embedContent`."""

    name = "native_embedding"
    model, question_field = "text-embedding-004", "content"
    action = "embedContent"

    def prompt(self, text: str) -> Any:
        return {"parts": [{"text": text}]}

    def of(self, model: str, action: str = "") -> str:
        return super().of(model, action or self.action)

    def vectors(self, body: Any) -> list[Vector]:
        return [body["embedding"]["values"]]

    async def embed(self, *texts: str, model: str = "", **fields: object) -> list[Vector]:
        """Return the vectors of the texts, one per call."""
        return [self.vectors(await self.answer(fields, text=text, model=model))[0] for text in texts]


class NativeEmbeddings(NativeEmbedding):
    """Caller of `POST .../models/{model}:batchEmbedContents`."""

    name = "native_embeddings"
    question_field = "requests"
    action = "batchEmbedContents"

    def prompt(self, text: str) -> Any:
        return [self.item(text)]

    def item(self, text: str, **fields: object) -> dict[str, object]:
        return {"content": {"parts": [{"text": text}]}, **fields}

    def vectors(self, body: Any) -> list[Vector]:
        return [item["values"] for item in body["embeddings"]]

    async def embed(self, *texts: str, model: str = "", **fields: object) -> list[Vector]:
        """Return the vectors of the texts, all in one call."""
        items = [self.item(text, **fields) for text in texts]
        return self.vectors(await self.answer({"requests": items}, model=model))


DOCUMENTS = (BANK, "Bake the bread in a hot oven.", CAT, "My dog likes long walks.")
QUERY = "Where does the kitten sleep?"
BEST = DOCUMENTS.index(CAT)


class Rerank(Face):
    """Caller of `POST /v1/rerank`."""

    name = "rerank"
    path, model, question_field = "/v1/rerank", "rerank-v1", "query"

    def prompt(self, text: str) -> Any:
        return text

    def body(self, fields: Mapping[str, object] | None = None, *, text: str = QUERY, model: str = "") -> Any:
        return super().body({"documents": list(DOCUMENTS), **(fields or {})}, text=text, model=model)

    async def post(
        self, fields: Mapping[str, object] | None = None, *, text: str = QUERY, model: str = "", key: str | None = None
    ) -> Reply:
        return await super().post(fields, text=text, model=model, key=key)

    def error(self, reply: Reply, status: int) -> Any:
        return openai_error(reply, status)

    def names(self, error: Any, field: str) -> bool:
        return error["param"] == field and field in error["message"]

    def order(self, body: Any) -> Sequence[int]:
        """Return the positions of the documents, the best first."""
        return [result["index"] for result in body["results"]]


class RerankV2(Rerank):
    """Caller of `POST /v2/rerank`, which is in no document, but is called by the SDKs."""

    name = "rerank_v2"
    path = "/v2/rerank"
