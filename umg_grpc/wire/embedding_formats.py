"""Table of the embedding formats, with one row for each."""

from umg_grpc.v1 import pb
from umg_grpc.wire.embeddings import EMBEDDINGS
from umg_grpc.wire.native_embeddings import NATIVE_EMBEDDING, NATIVE_EMBEDDINGS
from umg_grpc.wire.unary_format import UnaryFormat

EMBEDDING_FORMATS: dict[str, UnaryFormat[pb.EmbedRequest, pb.EmbedResponse]] = {
    EMBEDDINGS.name: EMBEDDINGS,
    NATIVE_EMBEDDINGS.name: NATIVE_EMBEDDINGS,
    NATIVE_EMBEDDING.name: NATIVE_EMBEDDING,
}
