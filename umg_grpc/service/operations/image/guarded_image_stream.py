"""Guards of a streamed response with images. A guard that reads whole messages holds back all images until the end."""

from collections.abc import AsyncGenerator, Sequence

import msgspec

from umg_grpc.service.guardrails.guard_driver import GuardRun
from umg_grpc.service.pipeline.stream_pipeline import StreamedResponse
from umg_grpc.v1 import pb


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
