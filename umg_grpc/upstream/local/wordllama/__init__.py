"""Embedding and reranking by wordllama in this process: static token vectors, 32 000 of 256 numbers each.

`WordLlamaEngine` owns the model and a thread for it; `local_operations` are the operations of a channel that use it.
The package imports little: the first call imports numpy and wordllama in the engine's thread.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from umg_grpc.operations import UnaryOperation
from umg_grpc.operations.embed import EMBEDDING
from umg_grpc.operations.rerank import RERANKING
from umg_grpc.upstream.local.wordllama.embedding import LocalEmbedding
from umg_grpc.upstream.local.wordllama.engine import WordLlamaEngine
from umg_grpc.upstream.local.wordllama.reranker import LocalRerank
from umg_grpc.upstream.upstream_interfaces import UnaryUpstream

__all__ = ["LocalEmbedding", "LocalRerank", "WordLlamaEngine", "local_operations"]


def local_operations(
    engine: WordLlamaEngine, lengths: Mapping[str, int], total_seconds: float
) -> Iterator[tuple[UnaryOperation[Any, Any], UnaryUpstream[Any, Any]]]:
    """Yield each operation of the model with its upstream. `lengths`: model -> vector length that the operator has set
    as the default. `total_seconds`: time limit of a call.
    """
    yield EMBEDDING, LocalEmbedding(engine, lengths=lengths, total_seconds=total_seconds)
    yield RERANKING, LocalRerank(engine, total_seconds=total_seconds)
