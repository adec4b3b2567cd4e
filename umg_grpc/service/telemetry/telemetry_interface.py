"""Interface between the pipeline and the telemetry, without the optional packages that the implementation needs."""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from umg_grpc.base.errors import UmgError
from umg_grpc.base.trace_context import TraceContext
from umg_grpc.operations.canonical_message_unions import CanonicalRequest, CanonicalResponse
from umg_grpc.routing import Target
from umg_grpc.v1 import pb

Attribute: TypeAlias = str | int | float | bool


class AttemptSpan(Protocol):
    """Span of one attempt of a call at one channel, which ends with the attempt."""

    def read_response(self, response: CanonicalResponse) -> None:
        """Record the provider's complete response, before it is changed for the caller."""
        ...

    def read_message(self, message: pb.StreamGenerateResponse) -> None:
        """Record one message of the provider's stream, before it is changed for the caller."""
        ...

    def end(self, outcome: str, error: UmgError | None) -> None:
        """End the span. `outcome`: `ok`, `left` (cancelled), `refused`, or the kind of the failure `error`."""
        ...


class CallSpan(Protocol):
    """Span of one call, the parent of the spans of its attempts."""

    @property
    def trace(self) -> TraceContext:
        """Trace context with this span as the current one."""
        ...

    def describe(self, request: CanonicalRequest, *, stream: bool) -> None:
        """Set the request, whose properties are recorded in the spans of attempts. `stream`: a stream is requested."""
        ...

    def begin_attempt(self, target: Target) -> AttemptSpan:
        """Begin the span of an attempt. The trace context sent to the provider has this span as parent."""
        ...

    def end(self, attributes: Mapping[str, Attribute | None], usage: pb.Usage | None, error: UmgError | None) -> None:
        """End the spans of the call and its attempts. `attributes`: the value None means that one does not apply.
        `usage`: tokens of the last attempt. `error`: None after a success.
        """
        ...


class Telemetry(Protocol):
    """Factory of the spans of calls."""

    def begin(self, method: str, caller: TraceContext | None) -> CallSpan:
        """Begin the span of a call. `method`: its path. `caller`: trace context of its parent; None for a new trace."""
        ...
