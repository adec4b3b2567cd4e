"""Embeddings format (`POST /v1/embeddings`): codec for callers' requests and for calls of providers."""

from functools import partial

from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import encode_error
from umg_grpc.wire.core.account_object_detection import OBJECT_WORDS, ObjectRules
from umg_grpc.wire.core.provider_key_headers import AZURE_KEY_HEADER
from umg_grpc.wire.embeddings.request import FORMAT_NAME, decode_request, encode_request, wire_path
from umg_grpc.wire.embeddings.response import decode_response, encode_pieces, encode_response
from umg_grpc.wire.errors.provider_errors import decode_error
from umg_grpc.wire.shared_embedding_checks import TOO_LONG
from umg_grpc.wire.unary_format_interface import UnaryFormat

MAX_INPUTS = 2048  # reference, 5.1


EMBEDDINGS_FORMAT: UnaryFormat[pb.EmbedRequest, pb.EmbedResponse] = UnaryFormat(
    name=FORMAT_NAME,
    protocol="embeddings",
    takes_tokens=True,
    source_headers=(),
    decode_request=decode_request,
    encode_response=encode_response,
    encode_error=encode_error,
    wire_path=wire_path,
    encode_request=encode_request,
    decode_response=decode_response,
    decode_error=partial(decode_error, too_long=TOO_LONG),
    objects=ObjectRules(free=frozenset({"input"}), words=OBJECT_WORDS | {"encoding_format"}),
    provider_name="openai",
    key_headers=(AZURE_KEY_HEADER,),
    max_items=MAX_INPUTS,
    encode_pieces=encode_pieces,
)
