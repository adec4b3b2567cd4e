"""Embedding of texts by the local wordllama model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from umg_grpc.base.errors import UmgError
from umg_grpc.upstream.local.wordllama.engine import WordLlamaEngine
from umg_grpc.upstream.local.wordllama.text_length_limits import (
    LONGEST_TOKEN,
    SLOW_BYTES,
    VECTOR_DIMENSIONS,
    check_characters,
    max_tokens,
    too_long,
)
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import invalid
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes

if TYPE_CHECKING:
    from umg_grpc.upstream.local.wordllama.model import Vectors, WordLlamaModel

TEXT_FIELD = "inputs[{}].text"
NO_LENGTHS: Mapping[str, int] = MappingProxyType({})


class LocalEmbedding:
    """Embedding by the local model `wordllama-256`, whose vectors can be cut to 128 or 64 numbers. A title is embedded
    as the first line of its text. Task types have no effect.
    """

    def __init__(
        self, engine: WordLlamaEngine, *, lengths: Mapping[str, int] = NO_LENGTHS, total_seconds: float = 600
    ) -> None:
        """Create the embedding of a channel. `lengths`: model -> default vector length of the operator."""
        self._engine = engine
        self._lengths = lengths
        self._total_seconds = total_seconds

    def is_slow(self, size: int) -> bool:
        return size >= SLOW_BYTES

    def prepare(self, request: pb.EmbedRequest, model: str, notes: RequestNotes = NO_NOTES) -> "LocalEmbeddingCall":
        texts = embedded_texts(request)
        check_characters(texts, model, LONGEST_TOKEN, TEXT_FIELD)
        lengths = requested_lengths(request, self._lengths.get(model, VECTOR_DIMENSIONS), VECTOR_DIMENSIONS)
        report = Report()
        notes.report_uncarried(report)
        note_task_types(request, report)
        return LocalEmbeddingCall(self._engine, self._total_seconds, model, texts, lengths, report)


@dataclass(frozen=True)
class LocalEmbeddingCall:
    """Embedding call that is ready for the engine."""

    engine: WordLlamaEngine
    total_seconds: float
    model: str
    texts: Sequence[str]
    lengths: Sequence[int]
    report: Report

    async def send(self, seconds: float) -> pb.EmbedResponse:
        """Compute the vectors. Raise UmgError: CONTEXT_TOO_LONG for a text, and errors of the engine."""
        embedding = shared_embedding(self.model, self.lengths, cut)
        return await embed(self.engine, self.texts, embedding, seconds, self.total_seconds)


class EmbeddingVector(NamedTuple):
    """Embedding of one text, and the number of tokens of the text."""

    values: bytes
    """Bytes of `EmbeddingComputation.values` of the schema."""
    tokens: int


class EmbeddingComputation:
    """Computation that turns texts into vectors. Calls with one vector length for all texts share an instance."""

    def __init__(
        self,
        model: str,
        lengths: int | Sequence[int],
        transform: "Callable[[Vectors, str, int], Vectors]",
        count: Callable[[str], int] | None = None,
    ) -> None:
        """Create the computation. `lengths`: vector length of all texts, or of each. `transform`: (wordllama's vectors,
        model, length) -> the model's vectors. `count`: returns the tokens of a text; None for those of wordllama.
        """
        self._model = model
        self._max_tokens = max_tokens(model)
        self._lengths = lengths
        self._transform = transform
        self._count = count

    def __call__(self, model: "WordLlamaModel", first: int, texts: Sequence[str]) -> list[EmbeddingVector]:
        """Return each text's vector. `first`: position of the first text. Raise UmgError(CONTEXT_TOO_LONG)."""
        counts = [self._count(text) for text in texts] if self._count else None
        if counts is not None:
            self._check(counts, first)  # before wordllama tokenizes the texts
        tokens = model.tokenize(texts)
        if counts is None:
            self._check(counts := list(map(len, tokens)), first)
        vectors, lengths = model.embed(tokens), self._lengths
        if isinstance(lengths, int):
            packed = self._pack(vectors, lengths)
        else:
            packed = self._pack_each(vectors, lengths[first : first + len(texts)])
        return list(map(EmbeddingVector, packed, counts))

    def _check(self, counts: Sequence[int], first: int) -> None:
        for position, tokens in enumerate(counts, first):
            if tokens > self._max_tokens:
                raise too_long(TEXT_FIELD.format(position), f"{tokens} tokens", self._model)

    def _pack(self, vectors: "Vectors", length: int) -> list[bytes]:
        from umg_grpc.upstream.local.wordllama.model import unit  # imported here: already loaded in the thread

        return [
            vector.tobytes() for vector in unit(self._transform(vectors, self._model, length)).astype("<f4", copy=False)
        ]

    def _pack_each(self, vectors: "Vectors", lengths: Sequence[int]) -> list[bytes]:
        """Return each vector, transformed to its own length, as little-endian float32 bytes."""
        packed = [b""] * len(lengths)
        for length in set(lengths):
            places = [place for place, requested in enumerate(lengths) if requested == length]
            for place, values in zip(places, self._pack(vectors[places], length), strict=True):
                packed[place] = values
        return packed


def shared_embedding(
    model: str,
    lengths: Sequence[int],
    transform: "Callable[[Vectors, str, int], Vectors]",
    count: Callable[[str], int] | None = None,
) -> EmbeddingComputation:
    """Return the computation of a call, which calls with the same model and one length for all texts share."""
    if lengths.count(lengths[0]) == len(lengths):
        return _cached_embedding(model, lengths[0], transform, count)
    return EmbeddingComputation(model, lengths, transform, count)


_cached_embedding = lru_cache(256)(EmbeddingComputation)


async def embed(
    engine: WordLlamaEngine, texts: Sequence[str], embedding: EmbeddingComputation, seconds: float, total_seconds: float
) -> pb.EmbedResponse:
    """Compute the vectors of the texts in the engine, and return the response. `seconds`: time until the caller's
    deadline. Raise UmgError: CONTEXT_TOO_LONG for a text, and errors of the engine.
    """
    response = pb.EmbedResponse(usage=pb.EmbeddingUsage())
    await engine.run(texts, embedding, partial(_fill, response), seconds, total_seconds)
    return response


def _fill(response: pb.EmbedResponse, vectors: Sequence[EmbeddingVector]) -> None:
    tokens = 0
    for vector in vectors:
        response.embeddings.add().values = vector.values
        tokens += vector.tokens
    response.usage.input_tokens += tokens
    response.usage.total_tokens += tokens


def embedded_texts(request: pb.EmbedRequest) -> list[str]:
    """Return each input as a text below its title. Raise UmgError(UNSUPPORTED_FIELD) for inputs of token ids."""
    return [
        f"{given.title}\n{given.text}" if given.title else given.text or _text_of(given, place)
        for place, given in enumerate(request.inputs)
    ]


def requested_lengths(request: pb.EmbedRequest, own: int, maximum: int) -> list[int]:
    """Return each input's vector length, by default `own`. Raise UmgError(INVALID_FIELD) above `maximum`."""
    every = request.dimensions or own
    lengths = [given.dimensions or every for given in request.inputs]
    if (longest := max(lengths, default=0)) > maximum:
        place = lengths.index(longest)
        field = f"inputs[{place}].dimensions" if request.inputs[place].dimensions else "dimensions"
        raise invalid(field, f"{request.model} makes vectors of at most {maximum} numbers; request no more")
    return lengths


def note_task_types(request: pb.EmbedRequest, report: Report) -> None:
    """Record task types in the request as dropped in `report`, since they have no effect on the model."""
    if request.task_type:
        report.drop("task_type")
    for place, given in enumerate(request.inputs):
        if given.task_type:
            report.drop(f"inputs[{place}].task_type")


def cut(vectors: "Vectors", _: str, length: int) -> "Vectors":
    """Return the first `length` numbers of each vector."""
    return vectors[:, :length]


def _text_of(given: pb.EmbeddingInput, place: int) -> str:
    if given.HasField("tokens"):
        field = f"inputs[{place}].tokens"
        message = f"{field}: this model takes texts, and its vocabulary is not the one of these tokens; send the text"
        raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=field)
    return given.text
