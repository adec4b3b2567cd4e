"""Base class for decoders of providers' image streams, shared by all protocols with streams."""

from abc import ABC, abstractmethod

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.sse import DONE_DATA, SseEvent, split
from umg_grpc.wire.errors.provider_errors import cut_off
from umg_grpc.wire.images.providers.response_decoding import set_time

BLOCKED_CODE, FAILED_CODE = "content_policy_violation", "generation_failed"


def set_failure(failure: pb.ImageFailure, error: UmgError, index: int) -> None:
    """Fill in the failure of one image in place. `index`: position of the image among those of the call, from 0."""
    failure.image_index, failure.message = index, error.message
    failure.code = BLOCKED_CODE if error.reason == pb.ERROR_REASON_CONTENT_BLOCKED else FAILED_CODE


class EventDecoder(ABC):
    """Base of decoders of a provider's events into image events. A subclass has `decode_event`. One per stream."""

    def __init__(self, request: pb.GenerateImageRequest) -> None:
        self.request = request
        self.result = pb.ImageResult(model=request.model)
        self.images = 0  # finished images
        self.failures: list[UmgError] = []  # of images of a group
        self.ended = False  # all events that belong to the response were received
        self.ends_with_body = False  # the end of the body is the end of the stream
        self._started = False
        self._has_marker = False

    @property
    def done(self) -> bool:
        return self.ended or self._has_marker

    def feed(self, frames: bytes) -> pb.StreamGenerateImageResponse | None:
        message = pb.StreamGenerateImageResponse()
        for event in split(frames):
            if event.data is None:
                continue
            if event.data.strip() == DONE_DATA:
                self._has_marker = True
            if self.done:
                break
            self.decode_event(event, event.data, message)
        return message if message.events else None

    def close(self) -> pb.StreamGenerateImageResponse:
        if not self.images and self.failures:
            raise self.failures[0]
        if not self.images or not (self.done or self.ends_with_body):
            raise cut_off()
        self.result.usage.image_count = self.images
        message = pb.StreamGenerateImageResponse()
        message.events.add().finished.result.CopyFrom(self.result)
        return message

    @abstractmethod
    def decode_event(self, event: SseEvent, data: bytes, message: pb.StreamGenerateImageResponse) -> None:
        """Add the canonical events for one event of the provider to `message`. `data`: JSON of the event. Raise
        UmgError for an error event, and for an event that cannot be decoded.
        """

    def start(
        self, message: pb.StreamGenerateImageResponse, seconds: float | None, quality: str = "", background: str = ""
    ) -> None:
        """Add the event `started` once. `seconds`: creation time in Unix seconds; None if the provider states none."""
        if not self._started:
            self._started = True
            started = message.events.add().started
            started.model, started.quality, started.background = self.request.model, quality, background
            set_time(started.create_time, seconds)
            set_time(self.result.create_time, seconds)

    def add_image(self, message: pb.StreamGenerateImageResponse, index: int | None) -> pb.Image:
        """Add the event of a finished image; return the image, which the caller fills in place, because copies are
        expensive. `index`: its position among the call's images, from 0; None for the next position.
        """
        completed = message.events.add().completed
        completed.image_index = self._next if index is None else index
        self.images += 1
        return completed.image

    def add_failure(self, message: pb.StreamGenerateImageResponse, error: UmgError, index: int | None) -> None:
        """Record the failure of an image. It becomes an event only after `started`: before, another channel may still
        make all images. `index`: its position among the call's images, from 0; None for the next position.
        """
        position = self._next if index is None else index
        self.failures.append(error)
        if self._started:
            set_failure(message.events.add().failed, error, position)

    @property
    def _next(self) -> int:
        return self.images + len(self.failures)


def add_started(message: pb.StreamGenerateImageResponse, result: pb.ImageResult) -> None:
    """Add the event `started` to `message`, for a complete result of a provider that did not stream."""
    started = message.events.add().started
    started.model, started.quality, started.background = result.model, result.quality, result.background
    if result.HasField("create_time"):
        started.create_time.CopyFrom(result.create_time)


def add_completed(message: pb.StreamGenerateImageResponse, image: pb.Image, index: int) -> None:
    """Add the event of a finished image to `message`, for a complete result of a provider that did not stream."""
    completed = message.events.add().completed
    completed.image_index = index
    completed.image.CopyFrom(image)


def finished_message(result: pb.ImageResult) -> pb.StreamGenerateImageResponse:
    """Return the message with the last event of a stream, `finished`. It has the result without the images."""
    message = pb.StreamGenerateImageResponse()
    finished = message.events.add().finished.result
    for descriptor, _ in result.ListFields():
        if descriptor.name == "usage":
            finished.usage.CopyFrom(result.usage)
        elif descriptor.name == "create_time":
            finished.create_time.CopyFrom(result.create_time)
        elif descriptor.name != "images":
            setattr(finished, descriptor.name, getattr(result, descriptor.name))
    return message
