"""Reranking of documents by the local wordllama model: by similarity to the query."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from umg_grpc.upstream.local.wordllama.engine import WordLlamaEngine
from umg_grpc.upstream.local.wordllama.text_length_limits import (
    LONGEST_TOKEN,
    SLOW_BYTES,
    check_characters,
    max_tokens,
    too_long,
)
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.rerank import ranked_texts

if TYPE_CHECKING:
    from umg_grpc.upstream.local.wordllama.model import Vectors, WordLlamaModel

CHUNK_TOKENS = 64
"""Tokens of a chunk, about three sentences: a longer text's vector on several subjects is similar to none of them."""
STEP_TOKENS = CHUNK_TOKENS // 2
QUERY_FIELD = "query"
NO_LIMIT = 2**31 - 1


class LocalRerank:
    """Reranking by the local model `wordllama-rerank`. A document is split into chunks; its score is (1 + cosine of the
    best chunk to the query) / 2, or 0 if it is empty. Documents are cut off at the model's limit, as other rerankers
    do, or at `max_tokens_per_document`.
    """

    def __init__(self, engine: WordLlamaEngine, *, total_seconds: float = 600) -> None:
        """Create the reranking of a channel. `total_seconds`: time limit of a call."""
        self._engine = engine
        self._total_seconds = total_seconds

    def is_slow(self, size: int) -> bool:
        return size >= SLOW_BYTES

    def prepare(self, request: pb.RerankRequest, model: str, notes: RequestNotes = NO_NOTES) -> "LocalRerankCall":
        check_characters([request.query], model, LONGEST_TOKEN, QUERY_FIELD)
        report = Report()
        notes.report_uncarried(report)
        if request.priority:  # 0 is the default priority
            report.drop("priority")
        max_document_tokens = min(max_tokens(model), request.max_tokens_per_document or NO_LIMIT)
        texts = [text[: max_document_tokens * LONGEST_TOKEN] for text in ranked_texts(request)]
        return LocalRerankCall(self._engine, self._total_seconds, request, model, texts, max_document_tokens, report)


@dataclass(frozen=True)
class LocalRerankCall:
    """Reranking call that is ready for the engine."""

    engine: WordLlamaEngine
    total_seconds: float
    request: pb.RerankRequest
    model: str
    texts: Sequence[str]
    max_tokens: int
    """Maximum tokens of each document."""
    report: Report

    async def send(self, seconds: float) -> pb.RerankResponse:
        """Compute the ranking. Raise UmgError: CONTEXT_TOO_LONG for the query, and errors of the engine."""
        ranking = RankingComputation(self.request, self.model, self.max_tokens)
        await self.engine.run(self.texts, ranking, ranking.scores.extend, seconds, self.total_seconds)
        return ranking.response()


class RankingComputation:
    """Computation of the scores of a call's documents, which the engine passes to it part by part."""

    def __init__(self, request: pb.RerankRequest, model: str, max_document_tokens: int) -> None:
        """Create the computation. `max_document_tokens`: number of tokens after which a document is cut off."""
        self.scores = list[float]()
        """Score of each document that was processed."""
        self._request = request
        self._model = model
        self._max_document_tokens = max_document_tokens
        self._query: Vectors | None = None
        self._tokens = 0

    def __call__(self, model: "WordLlamaModel", first: int, texts: Sequence[str]) -> list[float]:
        """Return the score in [0, 1] of each document. Raise UmgError(CONTEXT_TOO_LONG) for too long a query."""
        from umg_grpc.upstream.local.wordllama.model import unit  # imported here: already loaded in the thread

        if self._query is None:
            self._query = unit(self._embed_query(model))
        documents = [ids[: self._max_document_tokens] for ids in model.tokenize(texts)]
        self._tokens += sum(map(len, documents))
        chunked = [chunks(ids)[: self._request.max_chunks_per_document or NO_LIMIT] for ids in documents]
        vectors = unit(model.embed([chunk for pieces in chunked for chunk in pieces]))
        cosines = (vectors * self._query).sum(axis=1).tolist()  # row by row, so that equal texts have equal scores
        scores, place = list[float](), 0
        for pieces in chunked:
            scores.append(_score(cosines[place : place + len(pieces)]))
            place += len(pieces)
        return scores

    def response(self) -> pb.RerankResponse:
        """Return the response with the best document first. Documents with equal scores stay in the request's order."""
        order = sorted(range(len(self.scores)), key=lambda place: -self.scores[place])
        response = pb.RerankResponse(usage=pb.RerankUsage(total_tokens=self._tokens))
        for place in order[: self._request.top_n or None]:
            response.results.add(index=place, relevance_score=self.scores[place])
        return response

    def _embed_query(self, model: "WordLlamaModel") -> "Vectors":
        tokens = model.tokenize([self._request.query])
        self._tokens = len(tokens[0])
        if self._tokens > max_tokens(self._model):
            raise too_long(QUERY_FIELD, f"{self._tokens} tokens", self._model)
        return model.embed(tokens)


def chunks(tokens: Sequence[int]) -> list[Sequence[int]]:
    """Return a document's tokens in chunks, each of which overlaps the previous one by half; empty for no tokens."""
    if not tokens:
        return []
    return [tokens[start : start + CHUNK_TOKENS] for start in range(0, max(len(tokens) - STEP_TOKENS, 1), STEP_TOKENS)]


def _score(cosines: Sequence[float]) -> float:
    return min(max((1 + max(cosines)) / 2, 0.0), 1.0) if cosines else 0.0
