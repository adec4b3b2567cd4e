"""Embedding of texts."""

import re

from umg_grpc.knowledge.price_calculation import INPUT_TOKEN, REQUEST_UNIT
from umg_grpc.operations.operation_row import AttemptTelemetry, UnaryOperation
from umg_grpc.v1 import pb
from umg_grpc.wire.core.provider_key_headers import NATIVE_KEY_HEADER
from umg_grpc.wire.provider_model_lists import GEMINI_LIST, OPENAI_LIST
from umg_grpc.wire.provider_protocols import INVOKE_PATH, MODEL_PATH, ProviderProtocol

EMBED_OPERATION = UnaryOperation(
    value=pb.MODEL_OPERATION_EMBED,
    scope="embed",
    verb="embed texts",
    results="embeddings",
    service="EmbeddingService",
    methods=("Embed",),
    protocols={
        "embeddings": ProviderProtocol(
            other_names=("embed",), call_path=re.compile(r"/embeddings$"), model_list=OPENAI_LIST, has_input_limit=True
        ),
        "native_embeddings": ProviderProtocol(
            key_header=NATIVE_KEY_HEADER, call_path=MODEL_PATH, model_list=GEMINI_LIST, has_input_limit=True
        ),
        "vertex_embeddings": ProviderProtocol(call_path=MODEL_PATH, has_input_limit=True, has_callers=False),
        "bedrock_embeddings": ProviderProtocol(call_path=INVOKE_PATH, has_input_limit=True, has_callers=False),
    },
    listed_as=("embed", "embedding", "embeddings", "embedContent", "TextEmbedding", "EMBEDDING_MODEL"),
    id_part="embed",
    model_field="embedding",
    units=frozenset({REQUEST_UNIT, INPUT_TOKEN}),
    telemetry=AttemptTelemetry("embeddings", "gen_ai.client.embeddings.duration"),
    request=pb.EmbedRequest,
    response=pb.EmbedResponse,
    probe=pb.EmbedRequest(inputs=[pb.EmbeddingInput(text="Hi")]),
    most_quantities=lambda _, size: {REQUEST_UNIT: 1, INPUT_TOKEN: size},
    example=None,
    paths={  # those of the native API are in its table of actions
        "/v1/embeddings": "embeddings",
        "/api/embed": "ollama_embed",
        "/api/embeddings": "ollama_embeddings",
        "/v2/embed": "cohere_embed",
    },
    deployment_paths=("/v1/embeddings",),
    tag="Embeddings and reranking",
    summary="Embed texts",
    body_types="umg_grpc.wire.embeddings.openapi_bodies:BODY_TYPES",
    codecs="umg_grpc.wire.embedding_formats:EMBEDDING_FACES",
    upstreams="umg_grpc.wire.embedding_formats:EMBEDDING_UPSTREAMS",
)
