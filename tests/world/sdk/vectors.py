"""Requests to every official client of embeddings and reranking, independent of the format, and checks of each answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CONFIG = """
channels:
  - {name: local, protocols: [local], models: [wordllama-256, wordllama-rerank]}
  - name: sandbox
    protocols: [sandbox]
    pace: 0
    models:
      - text-embedding-3-small
      - text-embedding-3-large
      - text-embedding-ada-002
      - famG-embedding-001
      - text-embedding-004
      - rerank-v1
      - famO-5-mini
"""
"""Config of a gateway: the local models and the simulated ones."""

CAT = "A cat sleeps on the warm sofa."
KITTEN = "The kitten is napping on the couch."
RATES = "The central bank raised interest rates."
BANK = "Interest rates went up after the bank's decision."
TEXTS = (CAT, RATES, KITTEN, BANK)
"""Four texts: the first is close to the third, the second to the fourth; the others are far apart."""

Vectors = list[list[float]]


@dataclass(frozen=True)
class Embedder:
    id: str
    dimensions: int
    shorter: int | None = 128  # another length that the model can give


ADA = Embedder("text-embedding-ada-002", 1536, None)
WORDLLAMA = Embedder("wordllama-256", 256)
EMBEDDERS = [
    Embedder("text-embedding-3-small", 1536),
    Embedder("text-embedding-3-large", 3072),
    ADA,
    Embedder("famG-embedding-001", 3072),
    Embedder("text-embedding-004", 768),
    WORDLLAMA,
]


@dataclass(frozen=True)
class Embed:
    """Texts to embed. Without a key the caller's own is used."""

    model: str = "text-embedding-3-small"
    texts: Sequence[str] = TEXTS
    alone: bool = False  # by the client's function for one text; only one text is given
    dimensions: int | None = None
    task: str | None = None
    title: str | None = None
    key: str | None = None

    def options(self, **names: str) -> dict[str, Any]:
        """Return the options beside the texts, renamed to the caller's names (`field=name`); unset ones are absent."""
        values = {name: getattr(self, field) for field, name in names.items()}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class Refused:
    """A request that the gateway refuses, and words of the message. It contains the format's own name of `field`."""

    id: str
    request: Embed
    status: int
    expected_message: str = ""
    field: str = ""


UNKNOWN_MODEL = Refused("an unknown model", Embed(model="nope-embedding"), 404, "nope-embedding")
WRONG_KEY = Refused("a wrong key", Embed(key="sk-umg-wrong"), 401, "key")
EMPTY_TEXT = Refused("an empty text", Embed(texts=(CAT, "")), 400, field="text")
NO_TEXTS = Refused("no texts", Embed(texts=()), 400, field="texts")
ONE_LENGTH = Refused("a length that the model cannot give", Embed(ADA.id, dimensions=128), 400, ADA.id, "dimensions")
TOO_LONG = Refused("a length above the model's own", Embed(dimensions=1537), 400, field="dimensions")
BETWEEN = Refused("a length between the model's own", Embed(WORDLLAMA.id, dimensions=100), 400, field="dimensions")
REFUSED = [UNKNOWN_MODEL, WRONG_KEY, EMPTY_TEXT, NO_TEXTS, ONE_LENGTH, TOO_LONG, BETWEEN]

FIELDS = {
    "embeddings": {"text": "input[1]", "texts": "input", "dimensions": "dimensions"},
    "native_embeddings": {
        "text": "requests[1].content",
        "texts": "requests",
        "dimensions": "outputDimensionality",
    },
}
"""Format -> its names of the fields of `Refused`."""


def check_message(refused: Refused, wire_format: str, message: str) -> None:
    """Check that the message contains the expected words and the format's name of the field."""
    assert refused.expected_message in message
    if refused.field:
        assert FIELDS[wire_format][refused.field] in message


def check_vectors(vectors: Vectors, dimensions: int) -> None:
    """Check the vectors of `TEXTS`: of equal length, only finite numbers, close texts closer than far ones."""
    found = np.asarray(vectors, dtype="<f4")
    assert found.shape == (len(TEXTS), dimensions)
    assert np.isfinite(found).all()
    unit = found / np.linalg.norm(found, axis=1, keepdims=True)
    near = unit @ unit.T
    assert min(near[0, 2], near[1, 3]) > max(near[0, 1], near[0, 3], near[1, 2], near[2, 3]) + 0.2


def check_same(one: Vectors, other: Vectors) -> None:
    """Check that the vectors are equal to the last bit of a float32, in any encoding."""
    assert len(one) == len(other)
    for vector, again in zip(one, other, strict=True):
        np.testing.assert_array_equal(np.asarray(vector, dtype="<f4"), np.asarray(again, dtype="<f4"))


def check_close(one: Vectors, other: Vectors) -> None:
    """Check that the vectors differ only by the order of summation: the other texts of a batch change no more."""
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


QUERY = "Where does the kitten sleep?"
DOCUMENTS = (BANK, CAT, "Bake the bread in a hot oven.", "My dog likes long walks.")
BEST = 1
"""Position of the document that answers the query."""
OBJECTS = tuple({"text": text, "title": f"Note {position}"} for position, text in enumerate(DOCUMENTS))
RERANKERS = ("rerank-v1", "wordllama-rerank")


@dataclass(frozen=True)
class Rerank:
    """Documents to rank. Without a key the caller's own is used."""

    model: str = "rerank-v1"
    query: str = QUERY
    documents: Sequence[str | dict[str, str]] = DOCUMENTS
    top_n: int | None = None
    return_documents: bool | None = None
    rank_fields: Sequence[str] | None = None
    key: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The options; unset ones are absent."""
        values = {name: getattr(self, name) for name in ("top_n", "return_documents", "rank_fields")}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class Unranked:
    """A request that the gateway refuses, with words of its message and the name of cohere's own exception."""

    id: str
    request: Rerank
    status: int
    error: str
    expected_message: str


UNRANKED = [
    Unranked("an unknown model", Rerank(model="nope-rerank"), 404, "NotFoundError", "nope-rerank"),
    Unranked("a wrong key", Rerank(key="sk-umg-wrong"), 401, "UnauthorizedError", "key"),
    Unranked("no documents", Rerank(documents=()), 400, "BadRequestError", "documents"),
    Unranked("an empty query", Rerank(query=""), 400, "BadRequestError", "query"),
    Unranked("none of the best", Rerank(top_n=0), 400, "BadRequestError", "top_n"),
    Unranked("a model that embeds", Rerank(model=WORDLLAMA.id), 400, "BadRequestError", WORDLLAMA.id),
]


def check_ranking(places: Sequence[int], scores: Sequence[float], count: int = len(DOCUMENTS)) -> None:
    """Check a ranking of `DOCUMENTS`: each at most once, the best first, by falling scores in [0, 1]."""
    assert len(places) == len(scores) == count
    assert len(set(places)) == count
    assert set(places) <= set(range(len(DOCUMENTS)))
    assert places[0] == BEST
    assert list(scores) == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
