"""Reranking by a simulated provider, which has the local model do it."""

from dataclasses import dataclass

from umg_grpc.upstream.local.wordllama import LocalRerank, WordLlamaEngine
from umg_grpc.upstream.local.wordllama.embedding import SLOW_BYTES
from umg_grpc.upstream.local.wordllama.reranking import LocalRerankCall
from umg_grpc.upstream.sandbox.misbehaving import Deadlines, misbehave
from umg_grpc.v1 import pb
from umg_grpc.wire.report import Report


class SandboxRerank:
    """A channel of simulated models, which score as `wordllama-rerank` does and count as it does. `[[fail]]`,
    `[[fail:429]]` and `[[slow]]` in the query make it misbehave.
    """

    def __init__(self, engine: WordLlamaEngine, *, first_byte_seconds: float = 60, total_seconds: float = 600) -> None:
        """`first_byte_seconds`, `total_seconds`: the channel's deadlines, the first of which `[[slow]]` runs into."""
        self.slow_bytes = SLOW_BYTES
        self.deadlines = Deadlines(first_byte_seconds, total_seconds)
        self._local = LocalRerank(engine, total_seconds=total_seconds)

    def prepare(self, request: pb.RerankRequest, model: str) -> "SandboxRerankCall":
        """Raises UmgError: INVALID_FIELD for a document that cannot be ranked, CONTEXT_TOO_LONG for the query."""
        return SandboxRerankCall(self, request.query, self._local.prepare(request, model))


@dataclass(frozen=True)
class SandboxRerankCall:
    """A request that can be told."""

    upstream: SandboxRerank
    query: str
    local: LocalRerankCall

    @property
    def report(self) -> Report:
        """See `UnaryCall`."""
        return self.local.report

    async def send(self, seconds: float) -> pb.RerankResponse:
        """See `UnaryCall`. Raises UmgError: CONTEXT_TOO_LONG for the query, what the engine raises, and what the query
        asks for.
        """
        await misbehave([self.query], seconds, self.upstream.deadlines)
        return await self.local.send(seconds)
