"""Types of the responses of embeddings, reranking and the model lists, for the OpenAPI document."""

from typing import Literal

from msgspec import Raw, Struct

from umg_grpc.wire.core.json import ABSENT
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
    document: Raw = ABSENT
    """As it was sent, if the request selects it."""


class Ranking(Struct, kw_only=True):
    """Response of reranking (`/v1/rerank`, `/v2/rerank`)."""

    id: str
    model: str
    results: list[Ranked]
    """The best document first."""
    usage: EmbeddingUsage
    meta: dict[str, Raw]


# --- models


class ChatModel(Struct, kw_only=True):
    """Model in a model list of the chat format."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ChatModels(Struct, kw_only=True):
    """Model list of the chat format."""

    object: Literal["list"]
    data: list[ChatModel]


class MessagesModel(Struct, kw_only=True):
    """Model in a model list of the messages format, for requests with the header `anthropic-version`."""

    type: Literal["model"]
    id: str
    display_name: str
    created_at: str
    max_input_tokens: int | None
    max_tokens: int | None


class MessagesModels(Struct, kw_only=True):
    """Page of a model list of the messages format; `first_id` and `last_id` are null for an empty page."""

    data: list[MessagesModel]
    has_more: bool
    first_id: str | None
    last_id: str | None


class CohereModel(Struct, kw_only=True):
    """Model in a model list of Cohere's API, for requests of its SDKs."""

    name: str
    is_deprecated: bool
    endpoints: list[str]
    finetuned: bool
    tokenizer_url: str | None
    default_endpoints: list[str]
    features: list[str] | None
    context_length: Count | None = None
    sampling_defaults: dict[str, float] | None = None


class CohereModels(Struct, kw_only=True):
    """Page of a model list of Cohere's API."""

    models: list[CohereModel]
    next_page_token: str | None = None


class NativeModel(Struct, rename="camel", kw_only=True):
    """Model in a model list of the native format."""

    name: str
    base_model_id: str
    version: str
    display_name: str
    supported_generation_methods: list[str]
    input_token_limit: int | None = None
    output_token_limit: int | None = None


class NativeModels(Struct, rename="camel", kw_only=True):
    """Page of a model list of the native format."""

    models: list[NativeModel]
    next_page_token: str | None = None


class OllamaDetails(Struct, kw_only=True):
    """Member `details` of a model of Ollama's API; "" for unknown properties."""

    parent_model: str
    format: str
    family: str
    families: list[str]
    parameter_size: str
    quantization_level: str
    context_length: Count | None = None
    embedding_length: Count | None = None


class OllamaModel(Struct, kw_only=True):
    """Model in the list of `GET /api/tags`."""

    name: str
    model: str
    modified_at: str
    size: Count
    """Bytes on the gateway's machine, which are none."""
    digest: str
    details: OllamaDetails
    capabilities: list[str]


class OllamaModels(Struct, kw_only=True):
    """Response of `GET /api/tags` and `GET /api/ps`."""

    models: list[OllamaModel]


class OllamaShownModel(Struct, kw_only=True):
    """Response of `POST /api/show`."""

    modelfile: str
    parameters: str
    """Defaults of the model, one in each line."""
    template: str
    details: OllamaDetails
    model_info: dict[str, Raw]
    """Known properties, for example `famC.context_length`; `general.architecture` is the first part of their names."""
    capabilities: list[str]
    modified_at: str
