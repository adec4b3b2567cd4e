"""Servicer of reranking: returns the documents of a request ranked by their relevance."""

import asyncio
import secrets

from umg_grpc.base.inprocess_channel import Context
from umg_grpc.routing import PublicModel
from umg_grpc.service.operations.unary.unary_pipeline import UnaryPipeline
from umg_grpc.tokens import TokenCounter
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.core.json import invalid


class RerankServicer(rpc.RerankServiceServicer):
    """Servicer of `umg.v1.RerankService`: documents ranked by their relevance to a query."""

    def __init__(self, pipeline: UnaryPipeline[pb.RerankRequest, pb.RerankResponse], max_documents: int) -> None:
        """Create the servicer; a call may have at most `max_documents` documents."""
        self._pipeline = pipeline
        self._max_documents = max_documents

    async def Rerank(self, request: pb.RerankRequest, context: Context) -> pb.RerankResponse:
        """Return the documents, most relevant first, as ranked by the first channel that succeeds."""
        admitted = await self._pipeline.admit(request)
        call, request, model = admitted.call, admitted.request, admitted.model
        if len(request.documents) > self._max_documents:
            problem = f"{len(request.documents)} are more than the {self._max_documents} of one call; send fewer"
            raise invalid("documents", problem)
        response = _in_order(await self._pipeline.answer(admitted), request)
        response.model = request.model
        response.response_id = response.response_id or f"rerank-{secrets.token_hex(16)}"
        if response.usage.total_tokens == 0:
            response.usage.total_tokens = await asyncio.to_thread(_count, request, model)
            response.usage.estimated = True
        if not call.facts.is_cached:
            usage = response.usage  # providers that bill by search units state these
            call.facts.usage = pb.Usage(
                input_tokens=usage.total_tokens, web_search_requests=usage.search_units, estimated=usage.estimated
            )
        return response


def _in_order(response: pb.RerankResponse, request: pb.RerankRequest) -> pb.RerankResponse:
    """Return the response with its results by descending score, at most the requested `top_n`, and with the texts of
    the documents if the request wants them.
    """
    ranked = sorted(response.results, key=lambda result: (-result.relevance_score, result.index))
    del response.results[:]
    response.results.extend(ranked[: request.top_n] if request.HasField("top_n") else ranked)
    if request.return_documents:
        for result in response.results:
            result.document.CopyFrom(request.documents[result.index])
    return response


def _count(request: pb.RerankRequest, model: PublicModel) -> int:
    """Return the number of tokens of query and documents, counted locally, for a provider that did not report it."""
    counter = TokenCounter(model.family, model.tokenizer)
    texts = [document.text or document.object_json for document in request.documents]
    return sum(map(counter.count_text, [request.query, *texts]))
