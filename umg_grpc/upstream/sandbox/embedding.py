"""Embedding by a simulated provider: vectors of the documented lengths, with the meaning that the local model finds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from umg_grpc.catalogue import describe
from umg_grpc.tokens import TokenCounter
from umg_grpc.tokens.decoding import EMBEDDING_TOKENIZER
from umg_grpc.upstream.local.wordllama import WordLlamaEngine
from umg_grpc.upstream.local.wordllama.embedding import (
    NO_LENGTHS,
    SLOW_BYTES,
    TEXT_FIELD,
    asked_lengths,
    embedded,
    embedded_texts,
    note_task_types,
    one_for_all,
)
from umg_grpc.upstream.local.wordllama.lengths import refuse_endless
from umg_grpc.upstream.sandbox.misbehaving import Deadlines, misbehave
from umg_grpc.v1 import pb
from umg_grpc.wire.report import Report
from umg_grpc.wire.unknown import note_source

if TYPE_CHECKING:
    from umg_grpc.upstream.local.wordllama.model import Vectors

UNKNOWN = pb.ModelEmbedding(default_dimensions=1536)
"""Of an id that only some config gives a simulated model."""
LONGEST_TOKEN = 128  # of the vocabulary that counts


class SandboxEmbedding:
    """A channel of simulated models. Near texts have near vectors, however many of their numbers are asked for; the
    vectors of two models have nothing in common. Not shown: what task types change; nothing here.

    `[[fail]]`, `[[fail:429]]` and `[[slow]]` in a text make the whole call misbehave.
    """

    def __init__(
        self,
        engine: WordLlamaEngine,
        count: Callable[[str], int] | None = None,
        *,
        lengths: Mapping[str, int] = NO_LENGTHS,
        first_byte_seconds: float = 60,
        total_seconds: float = 600,
    ) -> None:
        """`count`: tokens of a text, called in the engine's thread; by default as the vendors of such models do.
        `lengths`: of vectors for which none is asked, by model, where the operator says. `first_byte_seconds`,
        `total_seconds`: the channel's deadlines, the first of which `[[slow]]` runs into.
        """
        self.slow_bytes = SLOW_BYTES
        self.engine = engine
        self._lengths = lengths
        self.count = count or TokenCounter(tokenizer=EMBEDDING_TOKENIZER).count_whole
        self.deadlines = Deadlines(first_byte_seconds, total_seconds)

    def prepare(self, request: pb.EmbedRequest, model: str) -> "SandboxEmbeddingCall":
        """Raises UmgError: UNSUPPORTED_FIELD for tokens, INVALID_FIELD for a length, CONTEXT_TOO_LONG."""
        texts = embedded_texts(request)
        refuse_endless(texts, model, LONGEST_TOKEN, TEXT_FIELD)
        report = Report()
        note_source(request.source, report)
        known = describe(model)
        described = known.embedding if known is not None and known.HasField("embedding") else UNKNOWN
        if not described.task_types:
            note_task_types(request, report)
        own = self._lengths.get(model, described.default_dimensions)
        lengths = asked_lengths(request, own, max(own, described.default_dimensions))
        return SandboxEmbeddingCall(self, model, texts, lengths, report)


@dataclass(frozen=True)
class SandboxEmbeddingCall:
    """A request that can be told."""

    upstream: SandboxEmbedding
    model: str
    texts: Sequence[str]
    lengths: Sequence[int]
    report: Report

    async def send(self, seconds: float) -> pb.EmbedResponse:
        """See `UnaryCall`. Raises UmgError: CONTEXT_TOO_LONG, what the engine raises, and what the texts ask for."""
        upstream = self.upstream
        await misbehave(self.texts, seconds, upstream.deadlines)
        embedding = one_for_all(self.model, self.lengths, _carry, upstream.count)
        return await embedded(upstream.engine, self.texts, embedding, seconds, upstream.deadlines.total)


def _carry(vectors: "Vectors", model: str, length: int) -> "Vectors":
    from umg_grpc.upstream.sandbox.isometry import carry  # here: see there

    return carry(vectors, model, length)
