"""Cohere's embeddings (`POST /v2/embed`), for callers only: this vendor is called in the embeddings format."""

from umg_grpc.v1 import pb
from umg_grpc.wire.cohere_embeddings.request import FACE_NAME, decode_request, wire_path
from umg_grpc.wire.cohere_embeddings.response import encode_pieces, encode_response
from umg_grpc.wire.cohere_errors import encode_error
from umg_grpc.wire.unary_format_interface import UnaryFace

COHERE_EMBED: UnaryFace[pb.EmbedRequest, pb.EmbedResponse] = UnaryFace(
    name=FACE_NAME,
    source_headers=(),
    decode_request=decode_request,
    encode_response=encode_response,
    encode_error=encode_error,
    wire_path=wire_path,
    encode_pieces=encode_pieces,
)
