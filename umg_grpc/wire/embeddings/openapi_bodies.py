"""Types of the bodies of all embedding formats, for the OpenAPI document."""

from collections.abc import Mapping
from types import MappingProxyType

from umg_grpc.wire import ollama_embeddings as ollama
from umg_grpc.wire.cohere_embeddings.request import FACE_NAME as COHERE
from umg_grpc.wire.cohere_embeddings.schema import EmbedBody as CohereBody
from umg_grpc.wire.embeddings.request import FORMAT_NAME
from umg_grpc.wire.embeddings.schema import EmbeddingsBody
from umg_grpc.wire.native_embeddings.request import BATCH_FORMAT, SINGLE_FORMAT
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
        FORMAT_NAME: BodyTypes(EmbeddingsBody, Embeddings),
        COHERE: BodyTypes(CohereBody, CohereEmbeddings),
        SINGLE_FORMAT: BodyTypes(EmbedBody, NativeEmbedding),
        BATCH_FORMAT: BodyTypes(BatchBody, NativeEmbeddings),
        ollama.EMBED_FACE: BodyTypes(OllamaEmbedBody, OllamaEmbeddings),
        ollama.EMBEDDINGS_FACE: BodyTypes(OllamaEmbeddingsBody, OllamaEmbedding),
    }
)
