"""Tables of the embedding formats. Each format is one row."""

from umg_grpc.v1 import pb
from umg_grpc.wire.bedrock_embeddings import BEDROCK_EMBEDDINGS
from umg_grpc.wire.cohere_embeddings import COHERE_EMBED
from umg_grpc.wire.embeddings import EMBEDDINGS_FORMAT
from umg_grpc.wire.native_embeddings import NATIVE_EMBEDDING, NATIVE_EMBEDDINGS
from umg_grpc.wire.ollama_embeddings import OLLAMA_EMBED, OLLAMA_EMBEDDINGS
from umg_grpc.wire.unary_format_interface import UnaryFace, UnaryFormat, UnaryProviderFormat
from umg_grpc.wire.vertex_embeddings import VERTEX_EMBEDDINGS

EMBEDDING_FORMATS: dict[str, UnaryFormat[pb.EmbedRequest, pb.EmbedResponse]] = {
    EMBEDDINGS_FORMAT.name: EMBEDDINGS_FORMAT,
    NATIVE_EMBEDDINGS.name: NATIVE_EMBEDDINGS,
    NATIVE_EMBEDDING.name: NATIVE_EMBEDDING,
}
"""Formats that both callers and providers use, by name."""
EMBEDDING_FACES: dict[str, UnaryFace[pb.EmbedRequest, pb.EmbedResponse]] = {
    **EMBEDDING_FORMATS,
    OLLAMA_EMBED.name: OLLAMA_EMBED,
    OLLAMA_EMBEDDINGS.name: OLLAMA_EMBEDDINGS,
    COHERE_EMBED.name: COHERE_EMBED,
}
"""Formats of callers by name, including formats that no provider uses."""
EMBEDDING_UPSTREAMS: dict[str, UnaryProviderFormat[pb.EmbedRequest, pb.EmbedResponse]] = {
    **EMBEDDING_FORMATS,
    VERTEX_EMBEDDINGS.name: VERTEX_EMBEDDINGS,
    BEDROCK_EMBEDDINGS.name: BEDROCK_EMBEDDINGS,
}
"""Formats of providers by name, including formats that no caller uses."""
