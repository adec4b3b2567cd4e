"""Streamed image responses: completes each event for the caller, records the usage, and runs guards on the texts."""

from collections.abc import AsyncGenerator, Sequence

import msgspec

from umg_grpc.config import Channel
from umg_grpc.service.guardrails.guard_driver import GuardRun
from umg_grpc.service.operations.image.admitted_image_call import AdmittedImages, account, complete
from umg_grpc.service.operations.image.image_delivery import ImageDelivery
from umg_grpc.service.pipeline.stream_pipeline import StreamedResponse
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


class GuardedImageStream(msgspec.Struct, eq=False):
    """State of one streamed image response with guards, around the state without them."""

    _inner: StreamedResponse[pb.StreamGenerateImageResponse]
    _run: GuardRun
    _holds: bool
    """Whether the images are checked together, at the end of the stream."""
    _held: list[pb.StreamGenerateImageResponse] = []

    async def feed(self, message: pb.StreamGenerateImageResponse) -> bool:
        sent = self._inner.feed(message)
        if not (sent if isinstance(sent, bool) else await sent):
            return False
        if self._holds:
            self._held.append(message)
            return False
        await self._check_texts(message)
        return True

    async def close(self) -> Sequence[pb.StreamGenerateImageResponse]:
        messages = [*self._held, *await self._inner.close()]
        if self._holds:
            images = [
                event.completed.image for each in messages for event in each.events if event.HasField("completed")
            ]
            whole = pb.GenerateImageResponse(result=pb.ImageResult(images=images))
            checked = await self._run.check(whole)
            for image, given in zip(images, checked.message.result.images, strict=False):
                image.CopyFrom(given)
            if checked.changed:
                _remove_drafts(messages)
        return messages

    async def break_off(
        self, messages: AsyncGenerator[pb.StreamGenerateImageResponse, None], error: BaseException
    ) -> None:
        await self._inner.break_off(messages, error)

    async def _check_texts(self, message: pb.StreamGenerateImageResponse) -> None:
        checked = [(await self._run.check(event, is_part=True)).message for event in message.events]
        del message.events[:]
        message.events.extend(checked)


def _remove_drafts(messages: Sequence[pb.StreamGenerateImageResponse]) -> None:
    for message in messages:
        kept = [event for event in message.events if not event.HasField("partial")]
        del message.events[:]
        message.events.extend(kept)
