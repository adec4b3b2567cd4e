"""Types of the responses of embeddings and reranking, for the OpenAPI document."""

from typing import Literal

from msgspec import Raw, Struct

from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER
from umg_grpc.wire.openapi_schemas.text_response_types import Count

# --- embeddings


class Embedding(Struct, kw_only=True):
    """Vector of one input."""

    object: Literal["embedding"]
    index: Count
    embedding: list[float] | str
    """Numbers, or base64 of little-endian float32 where the request selects it."""


class EmbeddingUsage(Struct, kw_only=True):
    """Token usage of an embedding or reranking call."""

    prompt_tokens: Count
    total_tokens: Count


class Embeddings(Struct, kw_only=True):
    """Response of `POST /v1/embeddings`."""

    object: Literal["list"]
    model: str
    data: list[Embedding]
    usage: EmbeddingUsage


class CohereEmbeddings(Struct, kw_only=True):
    """Response of `POST /v2/embed`."""

    id: str
    response_type: Literal["embeddings_by_type"]
    embeddings: dict[str, list[list[float] | str]]
    """Type of vectors -> vectors, one for each input."""
    texts: list[str]
    meta: dict[str, Raw]


class Vector(Struct, kw_only=True):
    """Vector of one input."""

    values: list[float]


class NativeEmbedding(Struct, kw_only=True):
    """Response of `:embedContent`."""

    embedding: Vector


class NativeEmbeddings(Struct, kw_only=True):
    """Response of `:batchEmbedContents`."""

    embeddings: list[Vector]


class OllamaEmbeddings(Struct, kw_only=True):
    """Response of `POST /api/embed`, with durations in nanoseconds."""

    model: str
    embeddings: list[list[float]]
    total_duration: Count | None = None
    load_duration: Count | None = None
    prompt_eval_count: Count | None = None


class OllamaEmbedding(Struct, kw_only=True):
    """Response of `POST /api/embeddings`."""

    embedding: list[float]


# --- reranking


class Ranked(Struct, kw_only=True):
    """Element of `results`: one document's position in the request, and its relevance score."""

    index: Count
    relevance_score: float
    document: Raw = ABSENT_MEMBER
    """As it was sent, if the request selects it."""


class Ranking(Struct, kw_only=True):
    """Response of reranking (`/v1/rerank`, `/v2/rerank`)."""

    id: str
    model: str
    results: list[Ranked]
    """The best document first."""
    usage: EmbeddingUsage
    meta: dict[str, Raw]
