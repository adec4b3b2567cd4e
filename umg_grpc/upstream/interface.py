"""Interface between the service and a channel, for every operation and every kind of provider."""

from collections.abc import AsyncGenerator
from typing import Protocol, TypeVar

from umg_grpc.quirks import NO_CHANNEL_QUIRKS, ChannelQuirks
from umg_grpc.v1 import pb
from umg_grpc.wire.report import Report
from umg_grpc.wire.request_notes import NO_NOTES, RequestNotes

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
