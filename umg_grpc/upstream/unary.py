"""What a channel is to the service for an operation with one request and one answer (embedding, reranking), whatever
stands behind it.
"""

from typing import Protocol, TypeVar

from umg_grpc.wire.report import Report

Request_contra = TypeVar("Request_contra", contravariant=True)
Response_co = TypeVar("Response_co", covariant=True)


class UnaryCall(Protocol[Response_co]):
    """A request as it goes to one channel. Nothing was sent yet."""

    @property
    def report(self) -> Report:
        """What the channel cannot be told."""
        ...

    async def send(self, seconds: float) -> Response_co:
        """The answer, within `seconds` and the channel's own deadlines. Raises UmgError."""
        ...


class UnaryUpstream(Protocol[Request_contra, Response_co]):
    """A channel."""

    @property
    def slow_bytes(self) -> int:
        """Size of a request from which on `prepare` takes milliseconds: it is then left to a thread."""
        ...

    def prepare(self, request: Request_contra, model: str) -> UnaryCall[Response_co]:
        """The request for the provider's `model`. Raises UmgError for what it would be wrong to leave out."""
        ...
