"""Simulated rerankings, with the scores of the local model."""

from dataclasses import dataclass

from umg_grpc.upstream.local.wordllama import LocalRerank, WordLlamaEngine
from umg_grpc.upstream.local.wordllama.reranker import LocalRerankCall
from umg_grpc.upstream.local.wordllama.text_length_limits import SLOW_BYTES
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_sandbox.simulated_faults import SimulatedDeadlines, raise_in_unary_call


class SandboxRerank:
    """Reranking by simulated models, with the scores and token counts of the local model `wordllama-rerank`. The
    marks `[[fail]]`, `[[fail:429]]` and `[[slow]]` in the query select a fault.
    """

    def __init__(self, engine: WordLlamaEngine, *, first_byte_seconds: float = 60, total_seconds: float = 600) -> None:
        """Create the reranking of a channel. The mark `[[slow]]` exceeds `first_byte_seconds`."""
        self.deadlines = SimulatedDeadlines(first_byte_seconds, total_seconds)
        self._local = LocalRerank(engine, total_seconds=total_seconds)

    def is_slow(self, size: int) -> bool:
        return size >= SLOW_BYTES

    def prepare(self, request: pb.RerankRequest, model: str, notes: RequestNotes = NO_NOTES) -> "SandboxRerankCall":
        return SandboxRerankCall(self, request.query, self._local.prepare(request, model, notes))


@dataclass(frozen=True)
class SandboxRerankCall:
    """Simulated reranking call that is ready for the engine."""

    upstream: SandboxRerank
    query: str
    local: LocalRerankCall

    @property
    def report(self) -> Report:
        return self.local.report

    async def send(self, seconds: float) -> pb.RerankResponse:
        await raise_in_unary_call([self.query], seconds, self.upstream.deadlines)
        return await self.local.send(seconds)
