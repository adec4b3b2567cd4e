"""State of the call that is being served, shared by all its steps: caller, facts, limits, headers of the answer."""

from __future__ import annotations  # most types are needed by type checkers alone, and slow to import

import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from math import inf
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.gateway_headers import STRICT, TIMEOUT, is_strict, timeout_seconds

if TYPE_CHECKING:
    from umg_grpc.access.budget_reservations import Reservation
    from umg_grpc.access.caller import Caller, KeyReference
    from umg_grpc.access.key_limits import Admission
    from umg_grpc.prices import Prices, Quantities
    from umg_grpc.service.pipeline.usage_recording import UsageInFlight
    from umg_grpc.service.resilience.load_shedding import LoadShedder
    from umg_grpc.service.telemetry.telemetry_interface import CallSpan
    from umg_grpc.store.usage_record_table import AttemptRecord
    from umg_grpc.trace_context import TraceContext
    from umg_grpc.wire.dropped_fields_report import Report
    from umg_grpc.wire.request_notes import RequestNotes

Answer: TypeAlias = (
    pb.GenerateResponse
    | pb.GenerationStarted
    | pb.EmbedResponse
    | pb.RerankResponse
    | pb.GenerateImageResponse
    | pb.ImageStarted
)


class Arrival(msgspec.Struct, eq=False):
    """Properties of a call that are known when it arrives: method, metadata, deadline, whether it comes over a
    socket.
    """

    method: str
    """Path of the method, `/package.Service/Method`."""
    metadata: Mapping[str, str]
    """Metadata of the request; names in lower case."""
    trusted: bool
    """Whether the call came from our own facade, without a socket."""
    request_id: str
    notes: RequestNotes | None = None
    """Notes of the request, from a caller in this process that decoded its source."""
    known_key: object = None
    """Result of the key check of a caller in this process."""
    trace: TraceContext | None = None
    """Trace context of the caller; that of the call's span if the call is traced."""


class CallFacts(msgspec.Struct, eq=False):
    """Facts of a call for its log line, the metrics and its usage record. A fact that is not known yet has its
    default.
    """

    began_at: float = msgspec.field(default_factory=time.perf_counter)
    """Arrival of the call, on the clock of `time.perf_counter`."""
    ended_attempts: list[AttemptRecord] = []
    model: str = ""
    channel: str = ""
    """Channel of the selected attempt."""
    upstream_status: int = 0
    """HTTP status of the attempt whose answer the caller got, else of the last one; 0 if none had a status."""
    report: Report | None = None
    """Fields that the provider of the selected attempt was not sent."""
    attempts: int = 0
    is_cached: bool = False
    """Whether the answer is a cached response: its usage was counted before."""
    usage: pb.Usage | None = None
    quantities: Quantities | None = None
    """Billable quantities of an answer in other units than the tokens of `usage`: images."""
    first_output_seconds: float | None = None
    """Seconds from the call to the first message of its stream."""
    abandoned: tuple[str, ...] = ()
    """Channels of hedged attempts that did not win."""


class CallCharges(msgspec.Struct, eq=False):
    """Limits and budget that a call uses, and its cost. An unused limit has its default."""

    load_shedder: LoadShedder | None = None
    """Load shedder whose slot the call holds."""
    admissions: Sequence[Admission] = ()
    """Admissions within the limits of the key and the model, where they have any."""
    prices: Prices | None = None
    """Prices of the model; None for a call that was not admitted, and costs nothing."""
    reservation: Reservation | None = None
    """Reservation of the maximum cost, for a key with a budget."""
    output_limit: int | None = None
    """Tokens of an answer that the reservation pays for; None for the longest answer."""
    usage_in_flight: UsageInFlight | None = None
    """Record of the call while it is in flight; None before the attempts, and without usage records."""
    micro_credits: int = 0
    """Cost of the usage, set at the end of the call."""


class Call(msgspec.Struct, eq=False):
    """State of one call, from its arrival to its log line."""

    arrival: Arrival
    headers: dict[str, str] = {}
    """Initial metadata to send."""
    facts: CallFacts = msgspec.field(default_factory=CallFacts)
    charges: CallCharges = msgspec.field(default_factory=CallCharges)
    span: CallSpan | None = None
    """Span of the call; None without telemetry."""
    known_caller: Caller | None = None
    rejected_key: KeyReference | None = None
    """Key that is expired or revoked, for the log."""
    ends_at: float = inf
    """The caller's deadline, on the monotonic clock."""

    @property
    def caller(self) -> Caller:
        """The caller. Raises UmgError(MISSING_KEY) in a call that no interceptor authenticated."""
        if self.known_caller is None:
            raise missing_key()
        return self.known_caller

    @property
    def strict(self) -> bool:
        """Whether a request is rejected if it would lose a field (strict mode). Raises UmgError(INVALID_FIELD)."""
        return is_strict(self.arrival.metadata.get(STRICT))

    def limit(self) -> None:
        """Shorten the caller's deadline to the time in the metadata `x-umg-timeout`, if that ends earlier. Raise
        UmgError(INVALID_FIELD).
        """
        self.ends_at = min(self.ends_at, time.monotonic() + timeout_seconds(self.arrival.metadata.get(TIMEOUT)))

    def seconds_left(self) -> float:
        """Return the seconds until the caller's deadline; infinite if the caller has no deadline."""
        return inf if self.ends_at == inf else self.ends_at - time.monotonic()

    def list_dropped(self, answer: Answer) -> None:
        """Add the dropped fields to the field `dropped_fields` of the answer to a gRPC caller. HTTP callers get them in
        a header.
        """
        if (report := self.facts.report) is not None and report.dropped:
            answer.dropped_fields.extend(report.entries())


def missing_key() -> UmgError:
    """Return the error of a call that no interceptor authenticated."""
    return UmgError(pb.ERROR_REASON_MISSING_KEY, "this call has no credentials")


CURRENT: ContextVar[Call] = ContextVar("call")


current = CURRENT.get
"""Function that returns the call being served. A streaming servicer calls it at its first step: later steps may run in
another context.
"""
