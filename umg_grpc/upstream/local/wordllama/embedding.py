"""Texts into vectors, as a channel."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from umg_grpc.errors import UmgError
from umg_grpc.upstream.local.wordllama.engine import WordLlamaEngine
from umg_grpc.upstream.local.wordllama.lengths import DIMENSIONS, LONGEST_TOKEN, most_tokens, refuse_endless, too_long
from umg_grpc.upstream.local.wordllama.unsaid import unsaid
from umg_grpc.v1 import pb
from umg_grpc.wire import EMBEDDING_FORMATS
from umg_grpc.wire.report import Report

if TYPE_CHECKING:
    from umg_grpc.upstream.local.wordllama.model import Vectors, WordLlamaModel

TEXT_FIELD = "inputs[{}].text"
SLOW_BYTES = 64 * 2**10
"""Of a request that is read in a millisecond."""


class LocalEmbedding:
    """A channel of `wordllama-256`. Its vectors keep their meaning when they are cut to 128 or 64 numbers; a title is
    the first line of its text; for what a vector is asked makes no difference.
    """

    def __init__(self, engine: WordLlamaEngine, *, total_seconds: float = 600) -> None:
        """`total_seconds`: the channel's deadline."""
        self.slow_bytes = SLOW_BYTES
        self._engine = engine
        self._total_seconds = total_seconds

    def prepare(self, request: pb.EmbedRequest, model: str) -> "LocalEmbeddingCall":
        """Raises UmgError: UNSUPPORTED_FIELD for tokens instead of a text, CONTEXT_TOO_LONG."""
        texts = embedded_texts(request)
        refuse_endless(texts, model, LONGEST_TOKEN, TEXT_FIELD)
        report = unsaid(request.source, EMBEDDING_FORMATS)
        note_task_types(request, report)
        return LocalEmbeddingCall(self._engine, self._total_seconds, request, model, texts, report)


@dataclass(frozen=True)
class LocalEmbeddingCall:
    """A request that can be told."""

    engine: WordLlamaEngine
    total_seconds: float
    request: pb.EmbedRequest
    model: str
    texts: Sequence[str]
    report: Report

    async def send(self, seconds: float) -> pb.EmbedResponse:
        """See `UnaryCall`. Raises UmgError: CONTEXT_TOO_LONG, and what the engine raises."""
        embedding = Embedding(self.model, asked_lengths(self.request, DIMENSIONS), cut)
        await self.engine.run(self.texts, embedding, min(seconds, self.total_seconds))
        return embedding.response


class Embedding:
    """The vectors of one call, which the engine makes portion by portion."""

    def __init__(
        self,
        model: str,
        lengths: Sequence[int],
        carry: "Callable[[Vectors, int], Vectors]",
        count: Callable[[str], int] | None = None,
    ) -> None:
        """`lengths`: of each vector. `carry`: of the model's vectors makes those of a length. `count`: tokens of a
        text, where not the model's own.
        """
        self.response = pb.EmbedResponse(usage=pb.EmbeddingUsage())
        self._model = model
        self._most = most_tokens(model)
        self._lengths = lengths
        self._carry = carry
        self._count = count

    def __call__(self, model: "WordLlamaModel", first: int, texts: Sequence[str]) -> None:
        """See `Work`. Raises UmgError(CONTEXT_TOO_LONG)."""
        counts = [self._count(text) for text in texts] if self._count else None
        if counts is not None:
            self._check(counts, first)  # before the other vocabulary is asked
        tokens = model.tokenize(texts)
        if counts is None:
            self._check(counts := list(map(len, tokens)), first)
        for values in self._packed(model.embed(tokens), self._lengths[first : first + len(texts)]):
            self.response.embeddings.add().values = values
        self.response.usage.input_tokens += sum(counts)
        self.response.usage.total_tokens += sum(counts)

    def _check(self, counts: Sequence[int], first: int) -> None:
        for position, tokens in enumerate(counts, first):
            if tokens > self._most:
                raise too_long(TEXT_FIELD.format(position), f"{tokens} tokens", self._model)

    def _packed(self, vectors: "Vectors", lengths: Sequence[int]) -> list[bytes]:
        """Each vector at its length."""
        from umg_grpc.upstream.local.wordllama.model import unit  # here: the thread has it by now

        packed = [b""] * len(lengths)
        for length in set(lengths):
            places = [place for place, asked in enumerate(lengths) if asked == length]
            for place, vector in zip(places, unit(self._carry(vectors[places], length)), strict=True):
                packed[place] = vector.astype("<f4", copy=False).tobytes()
        return packed


def embedded_texts(request: pb.EmbedRequest) -> list[str]:
    """What is embedded for each input: its text, below its title if it has one. Raises UmgError(UNSUPPORTED_FIELD)."""
    return [
        f"{given.title}\n{given.text}" if given.title else given.text or _no_tokens(given, place)
        for place, given in enumerate(request.inputs)
    ]


def asked_lengths(request: pb.EmbedRequest, own: int) -> list[int]:
    """The length of each vector; `own` where none was asked for."""
    every = request.dimensions or own
    return [given.dimensions or every for given in request.inputs]


def note_task_types(request: pb.EmbedRequest, report: Report) -> None:
    """Reports what vectors are for, for a model to which that makes no difference."""
    if request.task_type:
        report.drop("task_type")
    for place, given in enumerate(request.inputs):
        if given.task_type:
            report.drop(f"inputs[{place}].task_type")


def cut(vectors: "Vectors", length: int) -> "Vectors":
    """The first numbers of each vector."""
    return vectors[:, :length]


def _no_tokens(given: pb.EmbeddingInput, place: int) -> str:
    if given.HasField("tokens"):
        field = f"inputs[{place}].tokens"
        message = f"{field}: this model takes texts, and its vocabulary is not the one of these tokens; send the text"
        raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=field)
    return given.text
