"""Reranking by Amazon Bedrock's InvokeModel: requests to the models of Amazon and Cohere."""

from collections.abc import Mapping

import msgspec

from umg_grpc.knowledge.cloud_vector_models import vector_model
from umg_grpc.v1 import pb
from umg_grpc.wire.core.bedrock_invoke_calls import input_tokens, model_path
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.rerank.document_text import ranked_texts
from umg_grpc.wire.rerank.errors import decode_error
from umg_grpc.wire.rerank.request import OPTION_FIELDS
from umg_grpc.wire.rerank.response import decode_response
from umg_grpc.wire.text_format_interface import UpstreamRequest
from umg_grpc.wire.unary_format_interface import UnaryProviderFormat

PROTOCOL_NAME = "bedrock_rerank"
API_VERSIONS = {"cohere": 2}
"""Vendor's form of the body -> API version that the body must state."""


def encode_request(request: pb.RerankRequest, model: str, notes: RequestNotes = NO_NOTES) -> UpstreamRequest:
    """Encode a rerank request as a call of InvokeModel. Raise UmgError(INVALID_FIELD) for a document without a text."""
    report, shape = Report(), vector_model(PROTOCOL_NAME, model, request.model).shape
    notes.report_uncarried(report)
    body: JsonObject = {"query": request.query, "documents": ranked_texts(request)}
    if request.top_n:
        body["top_n"] = min(request.top_n, len(request.documents))
    if shape in API_VERSIONS:
        body["api_version"] = API_VERSIONS[shape]
    for name in OPTION_FIELDS:
        if name != "top_n" and getattr(request, name):
            report.drop(name)
    return UpstreamRequest(model_path(model, "invoke"), msgspec.json.encode(body), {}, report)


def read_headers(response: pb.RerankResponse, headers: Mapping[str, str]) -> None:
    """Set the usage of a response from its headers, if its body contains no usage."""
    if not response.usage.total_tokens and (tokens := input_tokens(headers)):
        response.usage.total_tokens = tokens


BEDROCK_RERANK: UnaryProviderFormat[pb.RerankRequest, pb.RerankResponse] = UnaryProviderFormat(
    name=PROTOCOL_NAME,
    protocol=PROTOCOL_NAME,
    encode_request=encode_request,
    decode_response=decode_response,
    decode_error=decode_error,
    read_headers=read_headers,
    provider_name="aws.bedrock",
)
