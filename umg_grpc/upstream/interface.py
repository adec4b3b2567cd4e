"""Interface between the service and a channel, for every operation and every kind of provider."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from umg_grpc.errors import UmgError
from umg_grpc.quirks import NO_CHANNEL_QUIRKS, ChannelQuirks
from umg_grpc.v1 import pb
from umg_grpc.wire.report import Report
from umg_grpc.wire.request_notes import NO_NOTES, RequestNotes
from umg_grpc.wire.video.provider_task import ProviderResult, ProviderStatus, ProviderTask, Submission

Request_contra = TypeVar("Request_contra", contravariant=True)
Response_co = TypeVar("Response_co", covariant=True)


class PreparedCall(Protocol[Response_co]):
    """Request encoded for one channel and not sent yet."""

    @property
    def report(self) -> Report:
        """Parts of the request that the channel does not support."""
        ...

    async def send(self, seconds: float) -> Response_co:
        """Return the whole response, within `seconds` and the channel's own deadlines. Raise UmgError."""
        ...


class TextCall(PreparedCall[pb.GenerateResponse], Protocol):
    """Text request encoded for one channel and not sent yet."""

    def stream(self, seconds: float) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """Yield the response as it is generated. Closing the generator cancels the generation. Raise UmgError."""
        ...


class UnaryUpstream(Protocol[Request_contra, Response_co]):
    """Channel for an operation with one request and one response (embedding, reranking)."""

    def is_slow(self, request: Request_contra, size: int) -> bool:
        """Return whether `prepare` takes milliseconds for a request of `size` bytes; the service then calls it in a
        thread.
        """
        ...

    def prepare(self, request: Request_contra, model: str, notes: RequestNotes = NO_NOTES) -> PreparedCall[Response_co]:
        """Return the request encoded for the provider's `model`. Raise UmgError for a part of the request that the
        channel does not support and that cannot be left out without changing the meaning. `notes`: of its decoding.
        """
        ...


class TextUpstream(Protocol):
    """Channel that generates text."""

    def is_slow(self, request: pb.GenerateRequest, size: int) -> bool:
        """Return whether `prepare` takes milliseconds and is to be called in a thread, see `UnaryUpstream`."""
        ...

    def prepare(
        self,
        request: pb.GenerateRequest,
        model: str,
        notes: RequestNotes = NO_NOTES,
        *,
        stream: bool,
        quirks: ChannelQuirks = NO_CHANNEL_QUIRKS,
    ) -> TextCall:
        """Return the request encoded for the provider's `model`, adjusted to its quirks, see `UnaryUpstream`."""
        ...


class ImageCall(PreparedCall[pb.GenerateImageResponse], Protocol):
    """Image request encoded for one channel and not sent yet."""

    def stream(self, seconds: float) -> AsyncGenerator[pb.StreamGenerateImageResponse, None]:
        """Yield the events as the images are made. Closing the generator cancels the call. Raise UmgError."""
        ...


class ImageUpstream(Protocol):
    """Channel that makes images. An image of a response is an address or bytes, whichever the provider sent."""

    def is_slow(self, request: pb.GenerateImageRequest, size: int) -> bool:
        """Return whether `prepare` takes milliseconds and is to be called in a thread, see `UnaryUpstream`."""
        ...

    def prepare(self, request: pb.GenerateImageRequest, model: str, notes: RequestNotes = NO_NOTES) -> ImageCall:
        """Return the request encoded for the provider's `model`, see `UnaryUpstream`."""
        ...


class ContentPart(Protocol):
    """Open response with a result file or a part of it."""

    @property
    def status(self) -> int:
        """HTTP status: 200, 206 or 416."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the response, case-insensitive."""
        ...

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes as they arrive. Raise UmgError when the connection breaks."""
        ...


class VideoUpstream(Protocol):
    """Channel that makes videos (video document)."""

    @property
    def max_batch(self) -> int:
        """Maximum number of tasks of one `poll`."""
        ...

    @property
    def first_poll_seconds(self) -> float:
        """Time from a submission to the first poll."""
        ...

    @property
    def poll_seconds(self) -> float:
        """Time between two polls of a task."""
        ...

    @property
    def deadline_seconds(self) -> float:
        """Time after which a task without an end is given up."""
        ...

    async def submit(self, submission: Submission, seconds: float) -> tuple[ProviderTask, Report]:
        """Submit a task with one request to the provider. Return its task and the parts of the submission that it does
        not support. Raise UmgError, whose `failure` determines whether another channel is tried: never after
        `Failure.AMBIGUOUS`, with which the provider may have accepted the task.
        """
        ...

    async def find(self, submission: Submission, seconds: float) -> ProviderTask | None:
        """Return the task of a submission with an unknown outcome. None if the provider has none, or cannot find one by
        the gateway's id. Raise UmgError if the provider does not answer.
        """
        ...

    async def poll(self, tasks: Sequence[ProviderTask], seconds: float) -> Mapping[str, ProviderStatus | UmgError]:
        """Return the provider's id -> status or error, for tasks of one key. The error has the reason OBJECT_NOT_FOUND
        if the provider does not have the task, and `SUCCEEDED` has no results if it has no usable file: both may be
        temporary. Raise UmgError if the call failed.
        """
        ...

    async def cancel(self, task: ProviderTask, seconds: float) -> bool:
        """Cancel a task that has not started. Return whether the provider has cancelled it. Raise UmgError."""
        ...

    def content(
        self, task: ProviderTask, result: ProviderResult, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[ContentPart]:
        """Open a result that only the channel's key can read. `headers`: `range` and its conditions. Raise UmgError."""
        ...
