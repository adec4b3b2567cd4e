"""What a channel that generates text is to the service, whatever stands behind it."""

from collections.abc import AsyncGenerator
from typing import Protocol

from umg_grpc.quirks import NO_CHANNEL_QUIRKS, ChannelQuirks
from umg_grpc.v1 import pb
from umg_grpc.wire.report import Report


class TextCall(Protocol):
    """A request as it goes to one channel. Nothing was sent yet."""

    @property
    def report(self) -> Report:
        """What the channel cannot be told."""
        ...

    async def generate(self, seconds: float) -> pb.GenerateResponse:
        """The answer, within `seconds` and the channel's own deadlines. Raises UmgError."""
        ...

    def stream(self, seconds: float) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """The answer as it comes. Closing the generator stops whoever makes it. Raises UmgError."""
        ...


class TextUpstream(Protocol):
    """A channel."""

    @property
    def slow_bytes(self) -> int:
        """Size of a request from which on `prepare` takes milliseconds: it is then left to a thread."""
        ...

    def prepare(
        self, request: pb.GenerateRequest, model: str, *, stream: bool, quirks: ChannelQuirks = NO_CHANNEL_QUIRKS
    ) -> TextCall:
        """The request for the provider's `model`, within its quirks. Raises UmgError for what it would be wrong to
        leave out.
        """
        ...
