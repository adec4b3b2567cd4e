"""Rerank format (`POST /v1/rerank`, `/v2/rerank`): codec for callers and providers of both API versions."""

from dataclasses import replace
from functools import partial

from umg_grpc.v1 import pb
from umg_grpc.wire import cohere_errors
from umg_grpc.wire.chat.errors import encode_error
from umg_grpc.wire.core.account_object_detection import OBJECT_WORDS, ObjectRules
from umg_grpc.wire.rerank.bedrock import BEDROCK_RERANK
from umg_grpc.wire.rerank.document_text import ranked_texts
from umg_grpc.wire.rerank.errors import decode_error
from umg_grpc.wire.rerank.request import V1_SHAPE, V2_SHAPE, decode_request, encode_request, wire_path
from umg_grpc.wire.rerank.response import decode_response, encode_response, encode_response_v2
from umg_grpc.wire.unary_format_interface import UnaryFormat, UnaryProviderFormat

__all__ = ["RERANK_FORMAT", "RERANK_FORMATS", "RERANK_UPSTREAMS", "RERANK_V2", "ranked_texts"]

RERANK_FORMAT: UnaryFormat[pb.RerankRequest, pb.RerankResponse] = UnaryFormat(
    name=V1_SHAPE.name,
    protocol="rerank",
    source_headers=(),
    decode_request=partial(decode_request, V1_SHAPE.name),
    encode_response=encode_response,
    encode_error=encode_error,
    wire_path=wire_path,
    encode_request=partial(encode_request, V1_SHAPE),
    decode_response=decode_response,
    decode_error=decode_error,
    objects=ObjectRules(free=frozenset({"documents", "rank_fields"}), words=OBJECT_WORDS | {"query"}),
    provider_name="cohere",
    has_shapes=True,
)
RERANK_V2: UnaryFormat[pb.RerankRequest, pb.RerankResponse] = replace(
    RERANK_FORMAT,
    name=V2_SHAPE.name,
    decode_request=partial(decode_request, V2_SHAPE.name),
    encode_response=encode_response_v2,
    encode_error=cohere_errors.encode_error,
    encode_request=partial(encode_request, V2_SHAPE),
    error_paths=("/v2/",),
    has_shapes=False,
    base_url_end="/v2",  # the clients of the vendor distinguish its versions so
)
RERANK_FORMATS: dict[str, UnaryFormat[pb.RerankRequest, pb.RerankResponse]] = {
    RERANK_FORMAT.name: RERANK_FORMAT,
    RERANK_V2.name: RERANK_V2,
}
RERANK_UPSTREAMS: dict[str, UnaryProviderFormat[pb.RerankRequest, pb.RerankResponse]] = {
    **RERANK_FORMATS,
    BEDROCK_RERANK.name: BEDROCK_RERANK,
}
"""Name -> format in which providers are called, including formats that callers cannot use."""
