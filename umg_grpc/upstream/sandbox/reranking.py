"""Channel of the simulated provider for reranking, which uses the local model."""

from dataclasses import dataclass

from umg_grpc.upstream.local.wordllama import LocalRerank, WordLlamaEngine
from umg_grpc.upstream.local.wordllama.embedding import SLOW_BYTES
from umg_grpc.upstream.local.wordllama.reranking import LocalRerankCall
from umg_grpc.upstream.sandbox.faults import Deadlines, raise_in_unary_call
from umg_grpc.v1 import pb
from umg_grpc.wire.report import Report
from umg_grpc.wire.request_notes import NO_NOTES, RequestNotes


class SandboxRerank:
    """Channel of simulated models, with the scores and token counts of `wordllama-rerank`. `[[fail]]`, `[[fail:429]]`
    and `[[slow]]` in the query select a fault.
    """

    def __init__(self, engine: WordLlamaEngine, *, first_byte_seconds: float = 60, total_seconds: float = 600) -> None:
        """Create a channel. `first_byte_seconds`, `total_seconds`: the channel's deadlines; `[[slow]]` exceeds the
        first.
        """
        self.deadlines = Deadlines(first_byte_seconds, total_seconds)
        self._local = LocalRerank(engine, total_seconds=total_seconds)

    def is_slow(self, request: pb.RerankRequest, size: int) -> bool:
        """Return whether `prepare` takes milliseconds and is to be called in a thread, see `UnaryUpstream`."""
        return size >= SLOW_BYTES

    def prepare(self, request: pb.RerankRequest, model: str, notes: RequestNotes = NO_NOTES) -> "SandboxRerankCall":
        """Encode the request. Raise UmgError: INVALID_FIELD for a document that cannot be ranked, CONTEXT_TOO_LONG for
        the query.
        """
        return SandboxRerankCall(self, request.query, self._local.prepare(request, model, notes))


@dataclass(frozen=True)
class SandboxRerankCall:
    """Request ready to be sent to the engine."""

    upstream: SandboxRerank
    query: str
    local: LocalRerankCall

    @property
    def report(self) -> Report:
        """Parts of the request that the channel does not support."""
        return self.local.report

    async def send(self, seconds: float) -> pb.RerankResponse:
        """Return the response, see `PreparedCall`. Raise UmgError: CONTEXT_TOO_LONG for the query, the errors of the
        engine, and a fault that the query selects.
        """
        await raise_in_unary_call([self.query], seconds, self.upstream.deadlines)
        return await self.local.send(seconds)
