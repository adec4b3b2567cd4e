"""Servicer of embedding: returns a vector for each input of a request."""

from umg_grpc.base.inprocess_channel import Context
from umg_grpc.service.operations.unary.embedding_pipeline import EmbeddingPipeline
from umg_grpc.v1 import pb, rpc


class EmbeddingServicer(rpc.EmbeddingServiceServicer):
    """Servicer of `umg.v1.EmbeddingService`: vectors for texts."""

    def __init__(self, pipeline: EmbeddingPipeline) -> None:
        self._pipeline = pipeline

    async def Embed(self, request: pb.EmbedRequest, context: Context) -> pb.EmbedResponse:
        return await self._pipeline.embed(request)
