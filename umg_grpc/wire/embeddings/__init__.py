"""Embeddings (`POST /v1/embeddings`), face and upstream."""

from collections.abc import Mapping

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import provider_errors
from umg_grpc.wire.chat.errors import encode_error
from umg_grpc.wire.embed import about_inputs
from umg_grpc.wire.embeddings.request import FIELDS, NAME, decode_request, encode_request, wire_path
from umg_grpc.wire.embeddings.response import decode_response, encode_pieces, encode_response
from umg_grpc.wire.unary import UnaryFormat

MOST_INPUTS = 2048  # reference, 5.1


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> UmgError:
    """What the caller is told of a refused call."""
    return about_inputs(provider_errors.decode_error(status, headers, body))


EMBEDDINGS: UnaryFormat[pb.EmbedRequest, pb.EmbedResponse] = UnaryFormat(
    name=NAME,
    protocol="embeddings",
    source_headers=(),
    decode_request=decode_request,
    encode_response=encode_response,
    encode_error=encode_error,
    wire_path=wire_path,
    unknown_fields=FIELDS.unknown,
    encode_request=encode_request,
    decode_response=decode_response,
    decode_error=decode_error,
    most_items=MOST_INPUTS,
    encode_pieces=encode_pieces,
)
