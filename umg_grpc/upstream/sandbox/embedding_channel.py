"""Simulated embeddings: vectors of the documented lengths, computed from those of the local model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from umg_grpc.model_catalogue import describe
from umg_grpc.tokens import TokenCounter
from umg_grpc.tokens.decoding import EMBEDDING_TOKENIZER
from umg_grpc.upstream.local.wordllama import WordLlamaEngine
from umg_grpc.upstream.local.wordllama.embedding import (
    NO_LENGTHS,
    SLOW_BYTES,
    TEXT_FIELD,
    embed,
    embedded_texts,
    note_task_types,
    requested_lengths,
    shared_embedding,
)
from umg_grpc.upstream.local.wordllama.text_length_limits import check_characters
from umg_grpc.upstream.sandbox.simulated_faults import Deadlines, raise_in_unary_call
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.request_notes import NO_NOTES, RequestNotes

if TYPE_CHECKING:
    from umg_grpc.upstream.local.wordllama.model import Vectors

UNKNOWN = pb.ModelEmbedding(default_dimensions=1536)
"""Default for a model id that is only in the configuration, not in the catalogue."""
LONGEST_TOKEN = 128  # characters of a token, in the vocabulary of `count`


class SandboxEmbedding:
    """Channel operation for embeddings by simulated models.

    Similar texts have similar vectors at any requested length; vectors of two models are unrelated. Task types have no
    effect, since the documents do not state one. `[[fail]]`, `[[fail:429]]` and `[[slow]]` in a text select a fault of
    the call.
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
        """Create the simulated embedding of a channel. `lengths`: operator's default vector length by model.

        `count`: counts the tokens of a text, in the engine's thread; by default as these models' vendors.
        `first_byte_seconds`, `total_seconds`: the channel's time limits; `[[slow]]` exceeds the first.
        """
        self.engine = engine
        self._lengths = lengths
        self.count = count or TokenCounter(tokenizer=EMBEDDING_TOKENIZER).count_unsplit
        self.deadlines = Deadlines(first_byte_seconds, total_seconds)

    def is_slow(self, request: pb.EmbedRequest, size: int) -> bool:
        """Return whether `prepare` takes milliseconds, so that it should be called in a thread, see `UnaryUpstream`."""
        return size >= SLOW_BYTES

    def prepare(self, request: pb.EmbedRequest, model: str, notes: RequestNotes = NO_NOTES) -> "SandboxEmbeddingCall":
        """Check the request, and return a call for the engine.

        Raise UmgError: UNSUPPORTED_FIELD for tokens, INVALID_FIELD for a vector length, CONTEXT_TOO_LONG.
        """
        texts = embedded_texts(request)
        check_characters(texts, model, LONGEST_TOKEN, TEXT_FIELD)
        report = Report()
        notes.report_uncarried(report)
        known = describe(model)
        described = known.embedding if known is not None and known.HasField("embedding") else UNKNOWN
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
        """Compute and return the vectors, see `PreparedCall`.

        Raise UmgError: CONTEXT_TOO_LONG, the errors of the engine, and a fault that the texts select.
        """
        upstream = self.upstream
        await raise_in_unary_call(self.texts, seconds, upstream.deadlines)
        embedding = shared_embedding(self.model, self.lengths, _transform, upstream.count)
        return await embed(upstream.engine, self.texts, embedding, seconds, upstream.deadlines.total)


def _transform(vectors: "Vectors", model: str, length: int) -> "Vectors":
    from umg_grpc.upstream.sandbox.vector_lengths import transform  # imported here: it imports numpy

    return transform(vectors, model, length)
