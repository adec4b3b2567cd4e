"""Wire formats, as pure codecs: each is one row of a table here."""

from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT
from umg_grpc.wire.embeddings import EMBEDDINGS
from umg_grpc.wire.format import TextFormat
from umg_grpc.wire.messages import MESSAGES
from umg_grpc.wire.native import NATIVE
from umg_grpc.wire.native_embeddings import NATIVE_EMBEDDING, NATIVE_EMBEDDINGS
from umg_grpc.wire.rerank import RERANK, RERANK_V2
from umg_grpc.wire.responses import RESPONSES
from umg_grpc.wire.unary import UnaryFormat

FORMATS: dict[str, TextFormat] = {
    CHAT.name: CHAT,
    MESSAGES.name: MESSAGES,
    NATIVE.name: NATIVE,
    RESPONSES.name: RESPONSES,
}

EMBEDDING_FORMATS: dict[str, UnaryFormat[pb.EmbedRequest, pb.EmbedResponse]] = {
    EMBEDDINGS.name: EMBEDDINGS,
    NATIVE_EMBEDDINGS.name: NATIVE_EMBEDDINGS,
    NATIVE_EMBEDDING.name: NATIVE_EMBEDDING,
}

RERANK_FORMATS: dict[str, UnaryFormat[pb.RerankRequest, pb.RerankResponse]] = {
    RERANK.name: RERANK,
    RERANK_V2.name: RERANK_V2,
}
