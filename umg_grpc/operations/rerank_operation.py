"""Reranking of documents by their relevance to a query."""

import re
from collections.abc import Mapping

from umg_grpc.knowledge.price_calculation import INPUT_TOKEN, REQUEST_UNIT, SEARCH_UNIT, Unit
from umg_grpc.operations.operation_row import AttemptTelemetry, UnaryOperation
from umg_grpc.v1 import pb
from umg_grpc.wire.provider_model_lists import OPENAI_LIST
from umg_grpc.wire.provider_protocols import INVOKE_PATH, ProviderProtocol

DOCUMENTS_OF_A_SEARCH = 100
"""Number of documents that a provider charges as one search unit."""
SPLIT_BYTES = 250
"""Least bytes that are charged as one more document: providers split documents above 500 tokens, query included."""


def _most_quantities(request: pb.RerankRequest, size: int) -> Mapping[Unit, int]:
    searches = -(-(len(request.documents) + size // SPLIT_BYTES) // DOCUMENTS_OF_A_SEARCH)
    tokens = size + len(request.query.encode()) * len(request.documents)  # some count the query for each document
    return {REQUEST_UNIT: 1, INPUT_TOKEN: tokens, SEARCH_UNIT: searches}


def _expected_usage(request: pb.RerankRequest) -> pb.Usage:
    return pb.Usage(web_search_requests=-(-len(request.documents) // DOCUMENTS_OF_A_SEARCH))


RERANK_OPERATION = UnaryOperation(
    value=pb.MODEL_OPERATION_RERANK,
    scope="rerank",
    verb="rerank documents",
    results="rankings",
    service="RerankService",
    methods=("Rerank",),
    protocols={
        "rerank": ProviderProtocol(
            other_names=("reranker",), call_path=re.compile(r"/rerank$"), model_list=OPENAI_LIST
        ),
        "bedrock_rerank": ProviderProtocol(call_path=INVOKE_PATH, has_callers=False),
    },
    listed_as=("rerank", "reranker", "reranking"),
    id_part="rerank",
    model_field="",
    units=frozenset({REQUEST_UNIT, INPUT_TOKEN, SEARCH_UNIT}),
    telemetry=AttemptTelemetry("rerank", "umg.client.rerank.duration"),  # the conventions have none
    request=pb.RerankRequest,
    response=pb.RerankResponse,
    probe=pb.RerankRequest(query="Hi", documents=[pb.RerankDocument(text="Hi")]),
    most_quantities=_most_quantities,
    expected_usage=_expected_usage,
    example=None,
    paths={"/v1/rerank": "rerank", "/v2/rerank": "rerank_v2"},
    tag="Embeddings and reranking",
    summary="Rank documents by a query",
    body_types="umg_grpc.wire.rerank.openapi_bodies:BODY_TYPES",
    codecs="umg_grpc.wire.rerank:RERANK_FORMATS",
    upstreams="umg_grpc.wire.rerank:RERANK_UPSTREAMS",
)
