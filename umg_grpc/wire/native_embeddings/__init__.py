"""Native embeddings (`POST /v1beta/models/{model}:embedContent`, `:batchEmbedContents`), for callers and providers."""

from dataclasses import replace
from functools import partial

from umg_grpc.v1 import pb
from umg_grpc.wire.core.provider_key_headers import NATIVE_KEY_HEADER
from umg_grpc.wire.native import errors
from umg_grpc.wire.native.account_object_references import OBJECT_RULES
from umg_grpc.wire.native_embeddings.caller_field_paths import wire_path_of_batch, wire_path_of_single
from umg_grpc.wire.native_embeddings.request import BATCH_FORMAT, SINGLE_FORMAT, decode_request, encode_request
from umg_grpc.wire.native_embeddings.response import (
    decode_response,
    encode_batch,
    encode_pieces_of_batch,
    encode_single,
)
from umg_grpc.wire.shared_embedding_checks import TOO_LONG
from umg_grpc.wire.unary_format_interface import UnaryFormat

MAX_INPUTS = 100  # inputs of `:batchEmbedContents`, as its provider documents


NATIVE_EMBEDDINGS: UnaryFormat[pb.EmbedRequest, pb.EmbedResponse] = UnaryFormat(
    name=BATCH_FORMAT,
    protocol="native_embeddings",
    source_headers=(),
    decode_request=partial(decode_request, BATCH_FORMAT),
    encode_response=encode_batch,
    encode_error=errors.encode_error,
    wire_path=wire_path_of_batch,
    encode_request=encode_request,
    decode_response=decode_response,
    decode_error=partial(errors.decode_error, too_long=TOO_LONG),
    objects=OBJECT_RULES,
    provider_name="gcp.gemini",
    key_header=NATIVE_KEY_HEADER,
    key_headers=("x-vendorg-api-key", "x-goog-api-key"),
    key_parameter="key",
    max_items=MAX_INPUTS,
    encode_pieces=encode_pieces_of_batch,
)
NATIVE_EMBEDDING: UnaryFormat[pb.EmbedRequest, pb.EmbedResponse] = replace(
    NATIVE_EMBEDDINGS,
    name=SINGLE_FORMAT,
    decode_request=partial(decode_request, SINGLE_FORMAT),
    encode_response=encode_single,
    encode_pieces=None,
    wire_path=wire_path_of_single,
)
