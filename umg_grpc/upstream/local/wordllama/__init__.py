"""Embedding and reranking by wordllama in this process: static token vectors, 32 000 of 256 numbers each.
`WordLlamaEngine` owns the model and a thread, in which the first call imports numpy and wordllama; `local_operations`
are the operations of a channel that use it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from umg_grpc.operations import UnaryOperation
from umg_grpc.operations.embedding_operation import EMBED_OPERATION
from umg_grpc.operations.rerank_operation import RERANK_OPERATION
from umg_grpc.upstream.local.wordllama.embedding import LocalEmbedding
from umg_grpc.upstream.local.wordllama.engine import WordLlamaEngine
from umg_grpc.upstream.local.wordllama.reranker import LocalRerank
from umg_grpc.upstream.upstream_interfaces import UnaryUpstream

__all__ = ["LocalEmbedding", "LocalRerank", "WordLlamaEngine", "local_operations"]


def local_operations(
    engine: WordLlamaEngine, lengths: Mapping[str, int], total_seconds: float
) -> Iterator[tuple[UnaryOperation[Any, Any], UnaryUpstream[Any, Any]]]:
    """Yield each operation of the model with its upstream. `lengths`: model -> default vector length."""
    yield EMBED_OPERATION, LocalEmbedding(engine, lengths=lengths, total_seconds=total_seconds)
    yield RERANK_OPERATION, LocalRerank(engine, total_seconds=total_seconds)
