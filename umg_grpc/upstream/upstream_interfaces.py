"""Interfaces between the service and the upstreams: one for each operation, implemented for each kind of provider."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from umg_grpc.errors import UmgError
from umg_grpc.provider_quirks import NO_CHANNEL_QUIRKS, ChannelQuirks
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.request_notes import NO_NOTES, RequestNotes
from umg_grpc.wire.video.provider_task import ProviderResult, ProviderStatus, ProviderTask, Submission

Request_contra = TypeVar("Request_contra", contravariant=True)
Response_co = TypeVar("Response_co", covariant=True)


class PreparedCall(Protocol[Response_co]):
    """Call that is encoded for one channel and ready to be sent."""

    @property
    def report(self) -> Report:
        """Parts of the caller's request that the channel cannot express."""
        ...

    async def send(self, seconds: float) -> Response_co:
        """Send the request, and return the complete response, within `seconds` and the channel's time limits. Raise
        UmgError.
        """
        ...


class TextCall(PreparedCall[pb.GenerateResponse], Protocol):
    """Text call that is encoded for one channel and ready to be sent."""

    def stream(self, seconds: float) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """Send the request, and yield the response as it is generated. Closing the generator cancels the call. Raise
        UmgError.
        """
        ...


class UnaryUpstream(Protocol[Request_contra, Response_co]):
    """Channel operation with one request and one response, embedding or reranking."""

    def is_slow(self, request: Request_contra, size: int) -> bool:
        """Return whether `prepare` takes milliseconds for a request of `size` bytes, so that it should be called in a
        thread.
        """
        ...

    def prepare(self, request: Request_contra, model: str, notes: RequestNotes = NO_NOTES) -> PreparedCall[Response_co]:
        """Encode the request for the provider's `model`. Return the call, which is not sent yet.

        `notes`: notes of the decoder about the caller's body. Raise UmgError for a part of the request that the channel
        cannot express and that cannot be left out without changing the meaning.
        """
        ...


class TextUpstream(Protocol):
    """Channel operation that generates text."""

    def is_slow(self, request: pb.GenerateRequest, size: int) -> bool:
        """Return whether `prepare` takes milliseconds, so that it should be called in a thread, see `UnaryUpstream`."""
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
        """Encode the request for the provider's `model`, adjusted to the model's quirks, see `UnaryUpstream`."""
        ...


class ImageCall(PreparedCall[pb.GenerateImageResponse], Protocol):
    """Image call that is encoded for one channel and ready to be sent."""

    def stream(self, seconds: float) -> AsyncGenerator[pb.StreamGenerateImageResponse, None]:
        """Send the request, and yield events as the images are made. Closing the generator cancels the call. Raise
        UmgError.
        """
        ...


class ImageUpstream(Protocol):
    """Channel operation that makes images. An image of a response is a URL or bytes, whichever the provider sent."""

    def is_slow(self, request: pb.GenerateImageRequest, size: int) -> bool:
        """Return whether `prepare` takes milliseconds, so that it should be called in a thread, see `UnaryUpstream`."""
        ...

    def prepare(self, request: pb.GenerateImageRequest, model: str, notes: RequestNotes = NO_NOTES) -> ImageCall:
        """Encode the request for the provider's `model`, see `UnaryUpstream`."""
        ...


class ContentPart(Protocol):
    """Open download of a result file or of a range of it."""

    @property
    def status(self) -> int:
        """HTTP status: 200, 206 (a range) or 416."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the response, looked up case-insensitively."""
        ...

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes as they arrive. Raise UmgError if the connection breaks."""
        ...


class VideoUpstream(Protocol):
    """Channel operation for video tasks: submit, poll, cancel and download (video document)."""

    @property
    def max_batch(self) -> int:
        """Maximum number of tasks that one `poll` can query."""
        ...

    @property
    def first_poll_seconds(self) -> float:
        """Seconds from a submission to the first poll of its task."""
        ...

    @property
    def poll_seconds(self) -> float:
        """Seconds between two polls of a task."""
        ...

    @property
    def deadline_seconds(self) -> float:
        """Seconds after which an unfinished task is given up."""
        ...

    async def submit(self, submission: Submission, seconds: float) -> tuple[ProviderTask, Report]:
        """Submit a task by one request to the provider. Return the provider's task, and the parts that it cannot
        express.

        Raise UmgError, whose `failure` determines whether another channel is tried: never after `Failure.AMBIGUOUS`,
        when the provider may have accepted the task.
        """
        ...

    async def find(self, submission: Submission, seconds: float) -> ProviderTask | None:
        """Return the provider's task of a submission whose outcome is unknown.

        None if there is no task, or if the provider cannot find tasks by the gateway's id. Raise UmgError if the
        provider does not answer.
        """
        ...

    async def poll(self, tasks: Sequence[ProviderTask], seconds: float) -> Mapping[str, ProviderStatus | UmgError]:
        """Return the status, or an error, of each task by the provider's id. All tasks belong to one key.

        The error has the reason OBJECT_NOT_FOUND if the provider does not have the task, and `SUCCEEDED` has no results
        if no file is usable: both may be temporary. Raise UmgError if the request itself failed.
        """
        ...

    async def cancel(self, task: ProviderTask, seconds: float) -> bool:
        """Cancel a task that has not started. Return whether the provider cancelled it. Raise UmgError."""
        ...

    def content(
        self, task: ProviderTask, result: ProviderResult, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[ContentPart]:
        """Open a download of a result that needs the channel's key. `headers`: `range` and its conditions. Raise
        UmgError.
        """
        ...
