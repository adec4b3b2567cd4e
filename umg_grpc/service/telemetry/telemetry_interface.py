"""Interface of the telemetry as the pipeline calls it, free of the optional packages that the implementation needs."""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from umg_grpc.errors import UmgError
from umg_grpc.routing import Operation, Target
from umg_grpc.trace_context import TraceContext
from umg_grpc.v1 import pb

Request: TypeAlias = pb.GenerateRequest | pb.EmbedRequest | pb.RerankRequest | pb.GenerateImageRequest
Response: TypeAlias = pb.GenerateResponse | pb.EmbedResponse | pb.RerankResponse | pb.GenerateImageResponse
Attribute: TypeAlias = str | int | float | bool


class AttemptSpan(Protocol):
    """Span of one attempt of a call at one channel."""

    def read_response(self, response: Response) -> None:
        """Record the provider's complete response, before it is changed for the caller."""
        ...

    def read_message(self, message: pb.StreamGenerateResponse) -> None:
        """Record one message of the provider's stream, before it is changed for the caller."""
        ...

    def end(self, outcome: str, error: UmgError | None) -> None:
        """End the span of an attempt. `outcome`: `ok`, `left` (cancelled), `refused` or the failure."""
        ...


class CallSpan(Protocol):
    """Span of one call."""

    @property
    def trace(self) -> TraceContext:
        """Trace context with this span."""
        ...

    def describe(self, operation: Operation, request: Request, *, stream: bool) -> None:
        """Set the request whose properties the spans of the call's attempts record."""
        ...

    def begin_attempt(self, target: Target) -> AttemptSpan:
        """Begin the span of an attempt. The provider is sent its trace context."""
        ...

    def end(self, attributes: Mapping[str, Attribute | None], usage: pb.Usage | None, error: UmgError | None) -> None:
        """End the span of the call and those of its attempts. Attributes that are None are left out."""
        ...


class Telemetry(Protocol):
    """Factory of the spans of calls."""

    def begin(self, method: str, caller: TraceContext | None) -> CallSpan:
        """Begin the span of a call. `caller`: trace context of the caller, the parent of the span; None begins a new
        trace.
        """
        ...
