"""Embedding of texts."""

from umg_grpc.knowledge.prices import INPUT, REQUEST
from umg_grpc.operations.operation_row import AttemptTelemetry, UnaryOperation
from umg_grpc.v1 import pb
from umg_grpc.wire.provider_protocols import EMBEDDING_PROTOCOLS

EMBEDDING = UnaryOperation(
    value=pb.MODEL_OPERATION_EMBED,
    scope="embed",
    verb="embed texts",
    service="EmbeddingService",
    methods=("Embed",),
    protocols=EMBEDDING_PROTOCOLS,
    units=frozenset({REQUEST, INPUT}),
    telemetry=AttemptTelemetry("embeddings", "gen_ai.client.embeddings.duration"),
    request=pb.EmbedRequest,
    response=pb.EmbedResponse,
    probe=pb.EmbedRequest(inputs=[pb.EmbeddingInput(text="Hi")]),
    most_quantities=lambda _, size: {REQUEST: 1, INPUT: size},
    example=None,
    paths={"/v1/embeddings": "embeddings"},  # those of the native API are in its table of actions
    tag="Embeddings and reranking",
    summary="Embed texts",
    body_types="umg_grpc.wire.embeddings.documented_bodies:BODY_TYPES",
    codecs="umg_grpc.wire.embedding_formats:EMBEDDING_FORMATS",
)
