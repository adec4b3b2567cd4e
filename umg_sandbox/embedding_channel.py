"""Simulated embeddings: vectors of the documented lengths, computed from those of the local model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from umg_grpc.knowledge.model_catalogue import describe
from umg_grpc.tokens import TokenCounter
from umg_grpc.tokens.token_decoding import EMBEDDING_TOKENIZER
from umg_grpc.upstream.local.wordllama import WordLlamaEngine
from umg_grpc.upstream.local.wordllama.embedding import (
    NO_LENGTHS,
    TEXT_FIELD,
    embed,
    embedded_texts,
    note_task_types,
    requested_lengths,
    shared_embedding,
)
from umg_grpc.upstream.local.wordllama.text_length_limits import SLOW_BYTES, check_characters
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_sandbox.simulated_faults import SimulatedDeadlines, raise_in_unary_call

if TYPE_CHECKING:
    from umg_grpc.upstream.local.wordllama.model import Vectors

UNKNOWN_MODEL = pb.ModelEmbedding(default_dimensions=1536)
"""Properties of a model that the catalogue does not list."""
LONGEST_TOKEN = 128  # characters of a token, in the vocabulary of `count`


class SandboxEmbedding:
    """Embedding by simulated models. Similar texts have similar vectors at any length. Vectors of two models are
    unrelated. Task types have no effect. The marks `[[fail]]`, `[[fail:429]]` and `[[slow]]` in a text select a fault.
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
        """Create the embedding of a channel. `lengths`: model -> default vector length of the operator. `count`:
        returns the number of tokens of a text, and is called in the engine's thread; None counts tokens as the models'
        vendors do. The mark `[[slow]]` exceeds `first_byte_seconds`.
        """
        self.engine = engine
        self._lengths = lengths
        self.count = count or TokenCounter(tokenizer=EMBEDDING_TOKENIZER).count_unsplit
        self.deadlines = SimulatedDeadlines(first_byte_seconds, total_seconds)

    def is_slow(self, size: int) -> bool:
        return size >= SLOW_BYTES

    def prepare(self, request: pb.EmbedRequest, model: str, notes: RequestNotes = NO_NOTES) -> "SandboxEmbeddingCall":
        texts = embedded_texts(request)
        check_characters(texts, model, LONGEST_TOKEN, TEXT_FIELD)
        report = Report()
        notes.report_uncarried(report)
        known = describe(model)
        described = known.embedding if known is not None and known.HasField("embedding") else UNKNOWN_MODEL
        if not described.task_types:
            note_task_types(request, report)
        own = self._lengths.get(model, described.default_dimensions)
        lengths = requested_lengths(request, own, max(own, described.default_dimensions))
        return SandboxEmbeddingCall(self, model, texts, lengths, report)


@dataclass(frozen=True)
class SandboxEmbeddingCall:
    """Simulated embedding call that is ready for the engine."""

    upstream: SandboxEmbedding
    model: str
    texts: Sequence[str]
    lengths: Sequence[int]
    report: Report

    async def send(self, seconds: float) -> pb.EmbedResponse:
        upstream = self.upstream
        await raise_in_unary_call(self.texts, seconds, upstream.deadlines)
        embedding = shared_embedding(self.model, self.lengths, _transform, upstream.count)
        return await embed(upstream.engine, self.texts, embedding, seconds, upstream.deadlines.total)


def _transform(vectors: "Vectors", model: str, length: int) -> "Vectors":
    from umg_sandbox.vector_resizing import transform  # imported here: it imports numpy

    return transform(vectors, model, length)
