"""Interfaces between the service and the upstreams: one for each operation, implemented for each kind of provider."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.model_quirk_definitions import NO_CHANNEL_QUIRKS, ChannelQuirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.prompt_cache_marks import PromptMark
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.native.stored_prompts import Beginning, Created, DividedPrompt
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, ProviderTask, Submission

Request_contra = TypeVar("Request_contra", contravariant=True)
Response_co = TypeVar("Response_co", covariant=True)


class PreparedCall(Protocol[Response_co]):
    """Call of a provider that is encoded for one channel and ready to be sent."""

    @property
    def report(self) -> Report:
        """Fields of the caller's request that are not sent to the provider, or are sent with another value."""
        ...

    async def send(self, seconds: float) -> Response_co:
        """Send the request, and return the complete response. `seconds`: time until the caller's deadline, which
        applies besides the channel's time limits. Raise UmgError if the call fails.
        """
        ...


class PromptStorage(Protocol):
    """Storage for the beginnings of prompts at the provider that a call is sent to (`cachedContents`)."""

    @property
    def body(self) -> bytes:
        """Body that is sent to the provider."""
        ...

    @property
    def marks(self) -> Sequence[PromptMark]:
        """Marks of the caller in the body: the places up to which a beginning may be stored."""
        ...

    def before_send(self, change: Callable[[], None]) -> None:
        """Register a function that may change the body just before it is sent: the call may not be sent at all."""
        ...

    def replace_body(self, body: bytes) -> None:
        """Replace the body that is sent by one that names a stored beginning."""
        ...

    async def store(self, prompt: DividedPrompt, beginning: Beginning, model: str, seconds: int) -> Created:
        """Store the beginning of a prompt for `seconds`. `model`: the provider's id. Raise UmgError on failure."""
        ...


class TextCall(PreparedCall[pb.GenerateResponse], Protocol):
    """Text generation call that is encoded for one channel and ready to be sent."""

    @property
    def body(self) -> bytes:
        """Body that is sent to the provider; b"" for a call without a provider."""
        ...

    @property
    def protocol(self) -> str:
        """Wire format of the body; "" for a call without a provider."""
        ...

    @property
    def storage(self) -> PromptStorage | None:
        """Storage for the beginning of the prompt; None if the request has no marks, or the provider no storage."""
        ...

    def relay_to(self, relay: Callable[[bytes], bool]) -> None:
        """Offer to `relay`, from the next message of `stream` on, the frames of each passed-through read that only
        continues the response. It returns whether it took them; a read that it did not take becomes a message.
        """
        ...

    def stream(self, seconds: float) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """Send the request, and yield the response as it is generated; closing the generator cancels the call.
        `seconds`: time until the caller's deadline. Raise UmgError, also after the first messages.
        """
        ...


class UnaryUpstream(Protocol[Request_contra, Response_co]):
    """Upstream of an operation with one request and one response, at the provider of one channel."""

    def is_slow(self, size: int) -> bool:
        """Return whether `prepare` takes milliseconds for `size` bytes, so that it should be called in a thread."""
        ...

    def prepare(self, request: Request_contra, model: str, notes: RequestNotes = NO_NOTES) -> PreparedCall[Response_co]:
        """Encode the request for the provider's `model`, and return the call, which is not sent yet. `notes`: facts
        about the caller's body. Raise UmgError for a part that the channel cannot express and that changes the meaning
        if left out.
        """
        ...


class TextUpstream(Protocol):
    """Text generation by the provider of one channel."""

    def is_slow(self, request: pb.GenerateRequest, size: int) -> bool:
        """Return whether `prepare` takes milliseconds for `size` bytes, so that it should be called in a thread."""
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
        """Encode the request for the provider's `model`, and return the call, which is not sent yet. `notes`: facts
        about the caller's body; `stream`: whether the response is streamed; `quirks`: values that the model rejects, by
        protocol. Raise UmgError for a part that the channel cannot express and that changes the meaning if left out.
        """
        ...


class ImageCall(PreparedCall[pb.GenerateImageResponse], Protocol):
    """Image generation call that is encoded for one channel and ready to be sent."""

    def stream(self, seconds: float) -> AsyncGenerator[pb.StreamGenerateImageResponse, None]:
        """Send the request, and yield each draft and each finished image; closing the generator cancels the call.
        `seconds`: time until the caller's deadline. Raise UmgError, also after the first events.
        """
        ...


class ImageUpstream(Protocol):
    """Image generation by one channel's provider. Images in a response are URLs or bytes, as the provider sends."""

    def is_slow(self, size: int) -> bool:
        """Return whether `prepare` takes milliseconds for `size` bytes, so that it should be called in a thread."""
        ...

    def prepare(self, request: pb.GenerateImageRequest, model: str, notes: RequestNotes = NO_NOTES) -> ImageCall:
        """Encode the request for the provider's `model`, and return the call, which is not sent yet. `notes`: facts
        about the caller's body. Raise UmgError for a part that the channel cannot express and that changes the meaning
        if left out.
        """
        ...


class ContentPart(Protocol):
    """Open download of the file of a video task's result, or of a range of its bytes."""

    @property
    def status(self) -> int:
        """HTTP status: 200 (the whole file), 206 (a range) or 416 (a range outside of the file)."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the response, looked up case-insensitively."""
        ...

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of the file as they arrive. Raise UmgError if the connection breaks."""
        ...


class VideoUpstream(Protocol):
    """Video tasks at the provider of one channel: submit, find, poll, cancel, download results."""

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
        """Seconds from the submission of a task until it counts as failed if it has not ended."""
        ...

    async def submit(self, submission: Submission, seconds: float) -> tuple[ProviderTask, Report]:
        """Submit a task. Return the provider's task and a report of the fields that were not sent. Raise UmgError,
        whose `failure` determines whether another channel is tried: never after `Failure.AMBIGUOUS`, when the provider
        may have accepted the task.
        """
        ...

    async def find(self, submission: Submission, seconds: float) -> ProviderTask | None:
        """Return the provider's task of a submission whose outcome is unknown. Return None if the provider does not
        have it, or cannot look up tasks by the gateway's id. Raise UmgError if the provider does not answer.
        """
        ...

    async def poll(self, tasks: Sequence[ProviderTask], seconds: float) -> Mapping[str, ProviderStatus | UmgError]:
        """Query tasks of one key. Return the provider's task id -> status or error. The error OBJECT_NOT_FOUND means
        that the provider does not have the task. The state `SUCCEEDED` without results means that no file is usable.
        Both may be temporary. Raise UmgError if no task could be queried.
        """
        ...

    async def cancel(self, task: ProviderTask, seconds: float) -> bool:
        """Cancel a task that has not started, within `seconds`. Return whether it is. Raise UmgError if unanswered."""
        ...

    def content(
        self, task: ProviderTask, result: ProviderResult, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[ContentPart]:
        """Return a context manager with the download of a result that needs the channel's key. `headers`: `range`,
        `if-range` and `if-none-match` of the caller. Raise UmgError.
        """
        ...
