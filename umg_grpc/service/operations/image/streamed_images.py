"""Streamed image responses: completes each event for the caller, and records the usage."""

from collections.abc import AsyncGenerator, Sequence

from umg_grpc.config import Channel
from umg_grpc.service.operations.image.image_call import AdmittedImages, account, complete
from umg_grpc.service.operations.image.image_delivery import ImageDelivery
from umg_grpc.v1 import pb


class StreamedImages:
    """State of one streamed image response: completes its events for the caller, and counts its images. If the stream
    breaks off, the images sent before are charged.
    """

    def __init__(self, admitted: AdmittedImages, channel: Channel, delivery: ImageDelivery) -> None:
        self._admitted = admitted
        self._channel = channel
        self._delivery = delivery
        self._images = 0
        self._is_finished = False

    async def feed(self, message: pb.StreamGenerateImageResponse) -> bool:
        for event in message.events:
            match event.WhichOneof("kind"):
                case "started":
                    event.started.model = self._admitted.request.model
                    if not event.started.HasField("create_time"):
                        event.started.create_time.GetCurrentTime()
                        event.started.create_time.nanos = 0
                    self._admitted.call.list_dropped(event.started)
                case "partial":
                    await self._delivery.fetch(self._admitted, self._channel, event.partial.image)
                case "completed":
                    await self._delivery.fetch(self._admitted, self._channel, event.completed.image)
                    self._count(event.completed.image)
                case "finished":
                    self._is_finished = True
                    result = event.finished.result
                    images = self._images or result.usage.image_count
                    complete(self._admitted, result, images)
                case "failed" | None:
                    pass
        return True

    async def close(self) -> Sequence[pb.StreamGenerateImageResponse]:
        if not self._is_finished and self._images:
            account(self._admitted, pb.ImageResult(), self._images)
        return ()

    async def break_off(
        self, messages: AsyncGenerator[pb.StreamGenerateImageResponse, None], error: BaseException
    ) -> None:
        await messages.aclose()

    def _count(self, image: pb.Image) -> None:
        self._images += 1
        account(self._admitted, pb.ImageResult(images=[pb.Image(width=image.width, height=image.height)]), self._images)


def is_without_image(message: pb.StreamGenerateImageResponse) -> bool:
    """Return whether a message of a stream contains neither a draft nor an image, so that it can be held back."""
    return not message.source_frames and all(event.HasField("started") for event in message.events)
