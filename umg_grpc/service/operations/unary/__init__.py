"""Operations with one request and one response: the steps that they share, and the additions of each operation."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from umg_grpc.config.file_sections import Limits
from umg_grpc.operations import ModelOperation, UnaryOperation
from umg_grpc.operations.embedding_operation import EMBED_OPERATION
from umg_grpc.operations.rerank_operation import RERANK_OPERATION
from umg_grpc.service.operations.unary.embedding_pipeline import EmbeddingPipeline
from umg_grpc.service.operations.unary.rerank_pipeline import RerankPipeline
from umg_grpc.service.operations.unary.unary_pipeline import UnaryPipeline
from umg_grpc.service.pipeline.base_pipeline import PipelineContext

OWN_PIPELINES: Mapping[ModelOperation, Callable[[PipelineContext, Limits], UnaryPipeline[Any, Any]]] = MappingProxyType(
    {EMBED_OPERATION.value: EmbeddingPipeline, RERANK_OPERATION.value: RerankPipeline}
)
"""Pipelines of the operations with checks or usage of their own."""


def unary_pipeline(
    operation: UnaryOperation[Any, Any], context: PipelineContext, limits: Limits
) -> UnaryPipeline[Any, Any]:
    """Return the pipeline of an operation. `limits`: numbers of inputs that one call may have."""
    if (own := OWN_PIPELINES.get(operation.value)) is not None:
        return own(context, limits)
    return UnaryPipeline(context, operation)
