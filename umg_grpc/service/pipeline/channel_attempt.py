"""One attempt of a call: a channel, with the request encoded for the channel."""

from collections.abc import Callable, Collection
from typing import Generic, Protocol, TypeVar

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.base.http_exchange_progress import AttemptProgress
from umg_grpc.routing import Target
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.resilience.concurrency_limiter import ConcurrencyLimiter
from umg_grpc.service.telemetry.telemetry_interface import AttemptSpan
from umg_grpc.wire.core.gateway_headers import STRICT_HEADER
from umg_grpc.wire.dropped_fields_report import Report

ATTEMPT_SUCCEEDED, CALLER_LEFT, REQUEST_REFUSED = "ok", "left", "refused"
"""Outcomes of attempts: success, cancelled, a request that the channel cannot serve. Others are kinds of failures."""


class EncodedRequest(Protocol):
    """Request of a caller, encoded in one channel's format. `report`: fields that this format cannot express."""

    @property
    def report(self) -> Report: ...


CallT_co = TypeVar("CallT_co", bound=EncodedRequest, covariant=True)


class Attempt(msgspec.Struct, Generic[CallT_co], eq=False):
    """Attempt of a call at one channel, with the request encoded for the channel."""

    channel: str
    target: Target
    call: CallT_co
    generation: int = 0
    """Number that the channel's circuit breaker returned at the attempt's start, and needs to record the result."""
    limiter: ConcurrencyLimiter | None = None
    """Concurrency limiter of which the attempt holds a slot; None for a channel without a limit."""
    span: AttemptSpan | None = None
    began_at: float = 0.0
    """Start of the attempt, on the clock of `time.perf_counter`."""
    progress: AttemptProgress = None  # type: ignore[assignment]  # set at the start of the attempt, and again by a retry
    """Facts about the provider's response: HTTP status, request id."""
    is_abandoned: bool = False
    """Whether the attempt was cancelled because the attempt beside it was faster (hedging)."""
    is_followed: bool = False
    """Whether its response is not for the caller: the same channel is sent another request of the call."""

    @property
    def lost_fields(self) -> int:
        """Number of fields that the channel's format cannot express, without losses in single turns."""
        return self.call.report.lost_for_choice


AttemptT = TypeVar("AttemptT", bound=Attempt)  # type: ignore[type-arg]  # of any kind of call


class RequestEncoder(Protocol[AttemptT]):
    """Encoder of the request of one call for each channel at which the call is tried."""

    async def encode(self, target: Target) -> AttemptT:
        """Encode the request. Raise UmgError if the channel cannot get it or, in strict mode, if a field is dropped."""
        ...

    def can_repair(self, attempt: AttemptT, error: UmgError) -> bool:
        """Return whether the failed attempt may succeed at the same channel with another encoding of the request."""
        ...

    def can_mend(self, attempt: AttemptT, error: UmgError) -> bool:
        """Return whether another encoding can leave out or adapt the part that was refused; this costs a retry."""
        ...

    def note_success(self, attempt: AttemptT) -> None:
        """Take note that the attempt succeeded, and that its encoding was therefore accepted."""
        ...


class UnmendedRequests:
    """Part of an encoder that has only one encoding of a request, so that no failure is followed by another one."""

    def can_repair(self, attempt: object, error: Exception) -> bool:
        return False

    def can_mend(self, attempt: object, error: Exception) -> bool:
        return False

    def note_success(self, attempt: object) -> None:
        return None


OUTPUT_LIMIT = "max_output_tokens"


def finish_report(
    call: Call, report: Report, wire_path: Callable[[str], str] | None, uncarried: Collection[str] = ()
) -> None:
    """Complete the report of a request that was encoded for a channel. Add the output limit that the gateway sets
    because of the budget. Name dropped fields by their paths in the caller's body. Raise UmgError(UNTRANSLATABLE) in
    strict mode if a field was dropped. `wire_path`: translates a canonical path to one in the body; None without a
    body. `uncarried`: names in the report that are paths in the body already. Called once for each encoded request.
    """
    if call.charges.output_limit is not None:
        report.limit(OUTPUT_LIMIT, str(call.charges.output_limit))
    if report.dropped and wire_path is not None:
        report.rename(lambda name: name if name in uncarried else wire_path(name))
    if STRICT_HEADER in call.arrival.metadata and call.strict:
        report.refuse(wire_path)
