"""Texts into vectors, as a channel."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from umg_grpc.errors import UmgError
from umg_grpc.upstream.local.wordllama.engine import WordLlamaEngine
from umg_grpc.upstream.local.wordllama.lengths import DIMENSIONS, LONGEST_TOKEN, most_tokens, refuse_endless, too_long
from umg_grpc.v1 import pb
from umg_grpc.wire.json import invalid
from umg_grpc.wire.report import Report
from umg_grpc.wire.unknown import note_source

if TYPE_CHECKING:
    from umg_grpc.upstream.local.wordllama.model import Vectors, WordLlamaModel

TEXT_FIELD = "inputs[{}].text"
NO_LENGTHS: Mapping[str, int] = MappingProxyType({})
SLOW_BYTES = 64 * 2**10
"""Of a request that is read in a millisecond."""


class LocalEmbedding:
    """A channel of `wordllama-256`. Its vectors keep their meaning when they are cut to 128 or 64 numbers; a title is
    the first line of its text; for what a vector is asked makes no difference.
    """

    def __init__(
        self, engine: WordLlamaEngine, *, lengths: Mapping[str, int] = NO_LENGTHS, total_seconds: float = 600
    ) -> None:
        """`lengths`: of vectors for which none is asked, by model, where the operator says. `total_seconds`: the
        channel's deadline.
        """
        self.slow_bytes = SLOW_BYTES
        self._engine = engine
        self._lengths = lengths
        self._total_seconds = total_seconds

    def prepare(self, request: pb.EmbedRequest, model: str) -> "LocalEmbeddingCall":
        """Raises UmgError: UNSUPPORTED_FIELD for tokens, INVALID_FIELD for a length, CONTEXT_TOO_LONG."""
        texts = embedded_texts(request)
        refuse_endless(texts, model, LONGEST_TOKEN, TEXT_FIELD)
        lengths = asked_lengths(request, self._lengths.get(model, DIMENSIONS), DIMENSIONS)
        report = Report()
        note_source(request.source, report)
        note_task_types(request, report)
        return LocalEmbeddingCall(self._engine, self._total_seconds, model, texts, lengths, report)


@dataclass(frozen=True)
class LocalEmbeddingCall:
    """A request that can be told."""

    engine: WordLlamaEngine
    total_seconds: float
    model: str
    texts: Sequence[str]
    lengths: Sequence[int]
    report: Report

    async def send(self, seconds: float) -> pb.EmbedResponse:
        """See `UnaryCall`. Raises UmgError: CONTEXT_TOO_LONG, and what the engine raises."""
        embedding = one_for_all(self.model, self.lengths, cut)
        return await embedded(self.engine, self.texts, embedding, seconds, self.total_seconds)


class Vector(NamedTuple):
    """What becomes of a text."""

    values: bytes
    """See `Embedding.values` of the schema."""
    tokens: int


class Embedding:
    """Makes texts vectors. Calls share it whose vectors all have one length."""

    def __init__(
        self,
        model: str,
        lengths: int | Sequence[int],
        carry: "Callable[[Vectors, str, int], Vectors]",
        count: Callable[[str], int] | None = None,
    ) -> None:
        """`lengths`: of all vectors, or of each. `carry`: makes the model's vectors those of another, of a length.
        `count`: tokens of a text, where not the model's own.
        """
        self._model = model
        self._most = most_tokens(model)
        self._lengths = lengths
        self._carry = carry
        self._count = count

    def __call__(self, model: "WordLlamaModel", first: int, texts: Sequence[str]) -> list[Vector]:
        """See `Work`. Raises UmgError(CONTEXT_TOO_LONG)."""
        counts = [self._count(text) for text in texts] if self._count else None
        if counts is not None:
            self._check(counts, first)  # before the other vocabulary is asked
        tokens = model.tokenize(texts)
        if counts is None:
            self._check(counts := list(map(len, tokens)), first)
        vectors, lengths = model.embed(tokens), self._lengths
        if isinstance(lengths, int):
            packed = self._packed(vectors, lengths)
        else:
            packed = self._packed_each(vectors, lengths[first : first + len(texts)])
        return list(map(Vector, packed, counts))

    def _check(self, counts: Sequence[int], first: int) -> None:
        for position, tokens in enumerate(counts, first):
            if tokens > self._most:
                raise too_long(TEXT_FIELD.format(position), f"{tokens} tokens", self._model)

    def _packed(self, vectors: "Vectors", length: int) -> list[bytes]:
        """Each vector at this length."""
        from umg_grpc.upstream.local.wordllama.model import unit  # here: the thread has it by now

        return [
            vector.tobytes() for vector in unit(self._carry(vectors, self._model, length)).astype("<f4", copy=False)
        ]

    def _packed_each(self, vectors: "Vectors", lengths: Sequence[int]) -> list[bytes]:
        """Each vector at its own length."""
        packed = [b""] * len(lengths)
        for length in set(lengths):
            places = [place for place, asked in enumerate(lengths) if asked == length]
            for place, values in zip(places, self._packed(vectors[places], length), strict=True):
                packed[place] = values
        return packed


def one_for_all(
    model: str,
    lengths: Sequence[int],
    carry: "Callable[[Vectors, str, int], Vectors]",
    count: Callable[[str], int] | None = None,
) -> Embedding:
    """An `Embedding` for a call whose vectors have these lengths: that of all such calls, where these are one."""
    if lengths.count(lengths[0]) == len(lengths):
        return _shared(model, lengths[0], carry, count)
    return Embedding(model, lengths, carry, count)


_shared = lru_cache(256)(Embedding)


async def embedded(
    engine: WordLlamaEngine, texts: Sequence[str], embedding: Embedding, seconds: float, total_seconds: float
) -> pb.EmbedResponse:
    """The answer to a call. Raises UmgError: CONTEXT_TOO_LONG, and what the engine raises."""
    response = pb.EmbedResponse(usage=pb.EmbeddingUsage())
    await engine.run(texts, embedding, partial(_fill, response), seconds, total_seconds)
    return response


def _fill(response: pb.EmbedResponse, vectors: Sequence[Vector]) -> None:
    tokens = 0
    for vector in vectors:
        response.embeddings.add().values = vector.values
        tokens += vector.tokens
    response.usage.input_tokens += tokens
    response.usage.total_tokens += tokens


def embedded_texts(request: pb.EmbedRequest) -> list[str]:
    """What is embedded for each input: its text, below its title if it has one. Raises UmgError(UNSUPPORTED_FIELD)."""
    return [
        f"{given.title}\n{given.text}" if given.title else given.text or _no_tokens(given, place)
        for place, given in enumerate(request.inputs)
    ]


def asked_lengths(request: pb.EmbedRequest, own: int, most: int) -> list[int]:
    """The length of each vector; `own` where none was asked for. Raises UmgError(INVALID_FIELD) above `most`."""
    every = request.dimensions or own
    lengths = [given.dimensions or every for given in request.inputs]
    if (longest := max(lengths, default=0)) > most:
        place = lengths.index(longest)
        field = f"inputs[{place}].dimensions" if request.inputs[place].dimensions else "dimensions"
        raise invalid(field, f"{request.model} makes vectors of at most {most} numbers; ask for no more")
    return lengths


def note_task_types(request: pb.EmbedRequest, report: Report) -> None:
    """Reports what vectors are for, for a model to which that makes no difference."""
    if request.task_type:
        report.drop("task_type")
    for place, given in enumerate(request.inputs):
        if given.task_type:
            report.drop(f"inputs[{place}].task_type")


def cut(vectors: "Vectors", _: str, length: int) -> "Vectors":
    """The first numbers of each vector."""
    return vectors[:, :length]


def _no_tokens(given: pb.EmbeddingInput, place: int) -> str:
    if given.HasField("tokens"):
        field = f"inputs[{place}].tokens"
        message = f"{field}: this model takes texts, and its vocabulary is not the one of these tokens; send the text"
        raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=field)
    return given.text
