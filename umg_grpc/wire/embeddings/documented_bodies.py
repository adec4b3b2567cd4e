"""Types of the bodies of all embedding formats, for the OpenAPI document."""

from collections.abc import Mapping
from types import MappingProxyType

from umg_grpc.wire import ollama_embeddings as ollama
from umg_grpc.wire.cohere_embeddings.request import NAME as COHERE
from umg_grpc.wire.cohere_embeddings.schema import EmbedBody as CohereBody
from umg_grpc.wire.embeddings.request import NAME
from umg_grpc.wire.embeddings.schema import EmbeddingsBody
from umg_grpc.wire.native_embeddings.request import BATCH, SINGLE
from umg_grpc.wire.native_embeddings.schema import BatchBody, EmbedBody
from umg_grpc.wire.ollama_embeddings.schema import EmbedBody as OllamaEmbedBody
from umg_grpc.wire.ollama_embeddings.schema import EmbeddingsBody as OllamaEmbeddingsBody
from umg_grpc.wire.openapi_schemas.body_types import BodyTypes
from umg_grpc.wire.openapi_schemas.retrieval_response_types import (
    CohereEmbeddings,
    Embeddings,
    NativeEmbedding,
    NativeEmbeddings,
    OllamaEmbedding,
    OllamaEmbeddings,
)

BODY_TYPES: Mapping[str, BodyTypes] = MappingProxyType(
    {
        NAME: BodyTypes(EmbeddingsBody, Embeddings),
        COHERE: BodyTypes(CohereBody, CohereEmbeddings),
        SINGLE: BodyTypes(EmbedBody, NativeEmbedding),
        BATCH: BodyTypes(BatchBody, NativeEmbeddings),
        ollama.EMBED: BodyTypes(OllamaEmbedBody, OllamaEmbeddings),
        ollama.EMBEDDINGS: BodyTypes(OllamaEmbeddingsBody, OllamaEmbedding),
    }
)
