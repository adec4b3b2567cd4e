"""Servicer of reranking: returns the documents of a request ranked by their relevance."""

from umg_grpc.base.inprocess_channel import Context
from umg_grpc.service.operations.unary.rerank_pipeline import RerankPipeline
from umg_grpc.v1 import pb, rpc


class RerankServicer(rpc.RerankServiceServicer):
    """Servicer of `umg.v1.RerankService`: documents ranked by their relevance to a query."""

    def __init__(self, pipeline: RerankPipeline) -> None:
        self._pipeline = pipeline

    async def Rerank(self, request: pb.RerankRequest, context: Context) -> pb.RerankResponse:
        return await self._pipeline.rerank(request)
