"""Simulated operations with one request and one response: the table from which a channel takes them."""

from collections.abc import Iterator, Mapping
from typing import Any

from umg_grpc.operations import UnaryOperation
from umg_grpc.operations.embed import EMBEDDING
from umg_grpc.operations.rerank import RERANKING
from umg_grpc.upstream.local.wordllama import WordLlamaEngine
from umg_grpc.upstream.upstream_interfaces import UnaryUpstream
from umg_sandbox.embedding_channel import SandboxEmbedding
from umg_sandbox.rerank_channel import SandboxRerank


def simulated_operations(
    engine: WordLlamaEngine, lengths: Mapping[str, int], first_byte_seconds: float, total_seconds: float
) -> Iterator[tuple[UnaryOperation[Any, Any], UnaryUpstream[Any, Any]]]:
    """Yield each operation that the simulated provider has, with its upstream. `lengths`: model -> vector length that
    the operator has set as the default. `first_byte_seconds`, `total_seconds`: time limits of a call.
    """
    first, total = first_byte_seconds, total_seconds
    yield EMBEDDING, SandboxEmbedding(engine, lengths=lengths, first_byte_seconds=first, total_seconds=total)
    yield RERANKING, SandboxRerank(engine, first_byte_seconds=first, total_seconds=total)
