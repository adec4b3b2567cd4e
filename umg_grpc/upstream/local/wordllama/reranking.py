"""Documents by their nearness to a query, as a channel."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from umg_grpc.upstream.local.wordllama.embedding import SLOW_BYTES
from umg_grpc.upstream.local.wordllama.engine import WordLlamaEngine
from umg_grpc.upstream.local.wordllama.lengths import LONGEST_TOKEN, most_tokens, refuse_endless, too_long
from umg_grpc.v1 import pb
from umg_grpc.wire.report import Report
from umg_grpc.wire.rerank import ranked_texts
from umg_grpc.wire.unknown import note_source

if TYPE_CHECKING:
    from umg_grpc.upstream.local.wordllama.model import Vectors, WordLlamaModel

CHUNK_TOKENS = 64
"""Some three sentences: of a document that treats of more, the vector is near to nothing."""
STEP_TOKENS = CHUNK_TOKENS // 2
QUERY_FIELD = "query"
MANY = 2**31 - 1


class LocalRerank:
    """A channel of `wordllama-rerank`. A document is as relevant as the most relevant of its chunks, which is (1 + the
    cosine to the query) / 2: the order of plain cosines, while documents are short. An empty document has 0.

    Documents are cut off at the model's own limit, as rerankers do, or at `max_tokens_per_document`.
    """

    def __init__(self, engine: WordLlamaEngine, *, total_seconds: float = 600) -> None:
        """`total_seconds`: the channel's deadline."""
        self.slow_bytes = SLOW_BYTES
        self._engine = engine
        self._total_seconds = total_seconds

    def prepare(self, request: pb.RerankRequest, model: str) -> "LocalRerankCall":
        """Raises UmgError: INVALID_FIELD for a document that cannot be ranked, CONTEXT_TOO_LONG for the query."""
        refuse_endless([request.query], model, LONGEST_TOKEN, QUERY_FIELD)
        report = Report()
        note_source(request.source, report)
        if request.priority:  # 0 is everybody's
            report.drop("priority")
        most = min(most_tokens(model), request.max_tokens_per_document or MANY)
        texts = [text[: most * LONGEST_TOKEN] for text in ranked_texts(request)]
        return LocalRerankCall(self._engine, self._total_seconds, request, model, texts, most, report)


@dataclass(frozen=True)
class LocalRerankCall:
    """A request that can be told."""

    engine: WordLlamaEngine
    total_seconds: float
    request: pb.RerankRequest
    model: str
    texts: Sequence[str]
    most_tokens: int
    """Of each document."""
    report: Report

    async def send(self, seconds: float) -> pb.RerankResponse:
        """See `UnaryCall`. Raises UmgError: CONTEXT_TOO_LONG for the query, and what the engine raises."""
        ranking = Ranking(self.request, self.model, self.most_tokens)
        await self.engine.run(self.texts, ranking, ranking.scores.extend, seconds, self.total_seconds)
        return ranking.response()


class Ranking:
    """The scores of one call, which the engine makes portion by portion."""

    def __init__(self, request: pb.RerankRequest, model: str, most: int) -> None:
        """`most`: tokens of a document."""
        self.scores = list[float]()
        """By document, as far as it was told."""
        self._request = request
        self._model = model
        self._most = most
        self._query: Vectors | None = None
        self._tokens = 0

    def __call__(self, model: "WordLlamaModel", first: int, texts: Sequence[str]) -> list[float]:
        """See `Work`. Raises UmgError(CONTEXT_TOO_LONG)."""
        from umg_grpc.upstream.local.wordllama.model import unit  # here: the thread has it by now

        if self._query is None:
            self._query = unit(self._read_query(model))
        documents = [ids[: self._most] for ids in model.tokenize(texts)]
        self._tokens += sum(map(len, documents))
        cut = [chunks(ids)[: self._request.max_chunks_per_document or MANY] for ids in documents]
        vectors = unit(model.embed([chunk for pieces in cut for chunk in pieces]))
        nearness = (vectors * self._query).sum(axis=1).tolist()  # row by row: the same for the same text
        scores, place = list[float](), 0
        for pieces in cut:
            scores.append(_score(nearness[place : place + len(pieces)]))
            place += len(pieces)
        return scores

    def response(self) -> pb.RerankResponse:
        """The best first, those of one score in the order of the documents."""
        order = sorted(range(len(self.scores)), key=lambda place: -self.scores[place])
        response = pb.RerankResponse(usage=pb.RerankUsage(total_tokens=self._tokens))
        for place in order[: self._request.top_n or None]:
            response.results.add(index=place, relevance_score=self.scores[place])
        return response

    def _read_query(self, model: "WordLlamaModel") -> "Vectors":
        tokens = model.tokenize([self._request.query])
        self._tokens = len(tokens[0])
        if self._tokens > most_tokens(self._model):
            raise too_long(QUERY_FIELD, f"{self._tokens} tokens", self._model)
        return model.embed(tokens)


def chunks(tokens: Sequence[int]) -> list[Sequence[int]]:
    """Pieces of a document, each overlapping the one before by half; none of an empty one."""
    if not tokens:
        return []
    return [tokens[start : start + CHUNK_TOKENS] for start in range(0, max(len(tokens) - STEP_TOKENS, 1), STEP_TOKENS)]


def _score(nearness: Sequence[float]) -> float:
    """Of the cosines of a document's chunks."""
    return min(max((1 + max(nearness)) / 2, 0.0), 1.0) if nearness else 0.0
