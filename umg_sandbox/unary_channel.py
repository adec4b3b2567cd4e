"""Simulated operations with one request and one response: the table from which a channel takes them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from umg_grpc.operations import UNARY, UnaryOperation
from umg_grpc.operations.embed import EMBEDDING
from umg_grpc.operations.rerank import RERANKING
from umg_grpc.upstream.local.wordllama import WordLlamaEngine
from umg_grpc.upstream.upstream_interfaces import UnaryUpstream
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.request_notes import NO_NOTES, RequestNotes
from umg_sandbox.embedding_channel import SandboxEmbedding
from umg_sandbox.rerank_channel import SandboxRerank
from umg_sandbox.simulated_faults import SimulatedDeadlines, raise_in_unary_call


@dataclass(frozen=True)
class SandboxExample:
    """Operation that is not computed: each call gets the example that its row makes for the request. The marks
    `[[fail]]`, `[[fail:429]]` and `[[slow]]` in a text of the request select a fault.
    """

    example: Callable[[Any], Message]
    deadlines: SimulatedDeadlines

    def is_slow(self, size: int) -> bool:
        return False

    def prepare(self, request: Message, model: str, notes: RequestNotes = NO_NOTES) -> "SandboxExampleCall":
        return SandboxExampleCall(self, request)


@dataclass(frozen=True)
class SandboxExampleCall:
    """Call that returns the example."""

    upstream: SandboxExample
    request: Message
    report: Report = field(default_factory=Report)

    async def send(self, seconds: float) -> Message:
        await raise_in_unary_call([str(self.request)], seconds, self.upstream.deadlines)
        return self.upstream.example(self.request)


def simulated_operations(
    engine: WordLlamaEngine, lengths: Mapping[str, int], first_byte_seconds: float, total_seconds: float
) -> Iterator[tuple[UnaryOperation[Any, Any], UnaryUpstream[Any, Any]]]:
    """Yield each operation that the simulated provider has, with its upstream. `lengths`: model -> vector length that
    the operator has set as the default. `first_byte_seconds`, `total_seconds`: time limits of a call.
    """
    first, total = first_byte_seconds, total_seconds
    yield EMBEDDING, SandboxEmbedding(engine, lengths=lengths, first_byte_seconds=first, total_seconds=total)
    yield RERANKING, SandboxRerank(engine, first_byte_seconds=first, total_seconds=total)
    for row in UNARY.values():
        if row.example is not None:
            yield row, SandboxExample(row.example, SimulatedDeadlines(first, total))
