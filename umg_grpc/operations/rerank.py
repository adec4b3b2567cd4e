"""Reranking of documents by their relevance to a query."""

from umg_grpc.knowledge.prices import INPUT, REQUEST, SEARCH
from umg_grpc.operations.operation_row import AttemptTelemetry, UnaryOperation
from umg_grpc.v1 import pb
from umg_grpc.wire.provider_protocols import RERANK_PROTOCOLS

RERANKING = UnaryOperation(
    value=pb.MODEL_OPERATION_RERANK,
    scope="rerank",
    verb="rerank documents",
    service="RerankService",
    methods=("Rerank",),
    protocols=RERANK_PROTOCOLS,
    units=frozenset({REQUEST, INPUT, SEARCH}),
    telemetry=AttemptTelemetry("rerank", "umg.client.rerank.duration"),  # the conventions have none
    request=pb.RerankRequest,
    response=pb.RerankResponse,
    probe=pb.RerankRequest(query="Hi", documents=[pb.RerankDocument(text="Hi")]),
    paths={"/v1/rerank": "rerank", "/v2/rerank": "rerank_v2"},
    tag="Embeddings and reranking",
    summary="Rank documents by a query",
    body_types="umg_grpc.wire.openapi_schemas.body_types:BODY_TYPES",
    codecs="umg_grpc.wire:RERANK_FORMATS",
)
