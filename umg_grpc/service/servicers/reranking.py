"""Reranking: one request from admission to its ranking."""

import asyncio
import secrets

from umg_grpc.inprocess import Context
from umg_grpc.routing import PublicModel
from umg_grpc.service.unary import Unary
from umg_grpc.tokens import TokenCounter
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.json import invalid


class RerankServicer(rpc.RerankServiceServicer):
    """`umg.v1.RerankService`."""

    def __init__(self, unary: Unary[pb.RerankRequest, pb.RerankResponse], most_documents: int) -> None:
        """`most_documents`: of one call."""
        self._unary = unary
        self._most_documents = most_documents

    async def Rerank(self, request: pb.RerankRequest, context: Context) -> pb.RerankResponse:
        """The ranking of the first channel that gives one."""
        served = await self._unary.admit(request)
        call, request, model = served
        if len(request.documents) > self._most_documents:
            problem = f"{len(request.documents)} are more than the {self._most_documents} of one call; send fewer"
            raise invalid("documents", problem)
        response = _in_order(await self._unary.answer(served, pb.RerankResponse), request)
        response.model = request.model
        response.response_id = response.response_id or f"rerank-{secrets.token_hex(16)}"
        if response.usage.total_tokens == 0:
            response.usage.total_tokens = await asyncio.to_thread(_count, request, model)
            response.usage.estimated = True
        if not call.is_kept:
            call.usage = pb.Usage(input_tokens=response.usage.total_tokens, estimated=response.usage.estimated)
        return response


def _in_order(response: pb.RerankResponse, request: pb.RerankRequest) -> pb.RerankResponse:
    """The results by falling score, those of one score in the order of the documents, no more than were asked for, and
    with the documents where these were.
    """
    ranked = sorted(response.results, key=lambda result: (-result.relevance_score, result.index))
    del response.results[:]
    response.results.extend(ranked[: request.top_n] if request.HasField("top_n") else ranked)
    if request.return_documents:
        for result in response.results:
            result.document.CopyFrom(request.documents[result.index])
    return response


def _count(request: pb.RerankRequest, model: PublicModel) -> int:
    """Tokens of the query and the documents, for providers that did not say."""
    counter = TokenCounter(model.family, model.tokenizer)
    texts = [document.text or document.object_json for document in request.documents]
    return sum(map(counter.count_text, [request.query, *texts]))
