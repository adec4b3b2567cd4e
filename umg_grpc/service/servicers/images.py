"""Servicer of image generation: returns images at once or as a stream with drafts."""

from collections.abc import AsyncGenerator

from umg_grpc.base.inprocess_channel import Context
from umg_grpc.service.operations.image.image_pipeline import ImagePipeline
from umg_grpc.service.pipeline.call_state import current
from umg_grpc.v1 import pb, rpc


class ImageServicer(rpc.ImageServiceServicer):
    """Servicer of `umg.v1.ImageService`: generated and edited images."""

    def __init__(self, pipeline: ImagePipeline) -> None:
        self._pipeline = pipeline

    async def GenerateImage(self, request: pb.GenerateImageRequest, context: Context) -> pb.GenerateImageResponse:
        return await self._pipeline.response_to(await self._pipeline.admit(current(), request, request, stream=False))

    def StreamGenerateImage(
        self, request: pb.StreamGenerateImageRequest, context: Context
    ) -> AsyncGenerator[pb.StreamGenerateImageResponse, None]:
        return self._pipeline.stream(current(), request, request.request)
