"""State of a call while it is served: caller, facts for the records, limits and budget, headers of the response."""

from __future__ import annotations  # most types are needed by type checkers alone, and slow to import

import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from math import inf
from typing import TYPE_CHECKING

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.agent_detection import AGENT_HEADER, AGENT_NAMES, UNKNOWN_AGENT, agent_of
from umg_grpc.v1 import pb
from umg_grpc.wire.core.gateway_headers import DROPPED_HEADER, STRICT_HEADER, TIMEOUT_HEADER, is_strict, timeout_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

    from umg_grpc.access.budget_reservations import Reservation
    from umg_grpc.access.caller_identity import Caller, KeyReference
    from umg_grpc.access.key_limits import Admission
    from umg_grpc.base.http_exchange_progress import StreamStart
    from umg_grpc.base.trace_context import TraceContext
    from umg_grpc.knowledge.price_calculation import Prices, Quantities
    from umg_grpc.service.pipeline.in_flight_usage_record import UsageInFlight
    from umg_grpc.service.resilience.load_shedding import LoadShedder
    from umg_grpc.service.telemetry.telemetry_interface import CallSpan
    from umg_grpc.store.usage_record_table import AttemptRecord
    from umg_grpc.wire.dropped_fields_report import Report
    from umg_grpc.wire.facts_beside_request import RequestNotes

FACE_HEADER = "x-umg-face"
"""Metadata in which the HTTP server names the wire format of its calls."""

DROPPED_FIELDS = "dropped_fields"
"""Field of responses, and of the first messages of streams."""


class Arrival(msgspec.Struct, eq=False):
    """Properties of a call at its arrival: method, metadata, deadline, whether it comes over a socket."""

    method: str
    """Path of the method, `/package.Service/Method`."""
    metadata: Mapping[str, str]
    """Metadata of the request (HTTP headers for a call of the HTTP server), with names in lower case."""
    trusted: bool
    """Whether the call came from the gateway's own HTTP server, in this process."""
    request_id: str
    notes: RequestNotes | None = None
    """Facts about the decoded body, if the HTTP server has decoded it already; else None."""
    known_key: object = None
    """Result of the check of the key, if the HTTP server has checked it already; else None."""
    relay: Callable[[bytes], bool] | None = None
    """Function of the HTTP server that takes a provider's frames without a message; None if all need one."""
    trace: TraceContext | None = None
    """Trace context of the caller, replaced by that of the call's own span if the call is traced; None if there is
    none.
    """


class GuardFacts(msgspec.Struct, eq=False):
    """Results of the guards that checked a call."""

    decisions: dict[str, str] = {}
    """Phase and name of each guard (`request:secrets`) -> its most severe decision."""
    notes: dict[str, str] = {}
    """Annotations of the guards, each by the name of its guard and its own."""
    has_failed: bool = False
    """Whether a guard has failed, so that the response is not cached."""

    @property
    def described(self) -> list[str]:
        """Decisions of the guards as `request:secrets=masked`, for headers and records."""
        return [f"{guard}={decision}" for guard, decision in self.decisions.items()]


class CallFacts(msgspec.Struct, eq=False):
    """Facts of a call for its log line, the metrics and its usage record; defaults if not known yet."""

    began_at: float = msgspec.field(default_factory=time.perf_counter)
    """Arrival of the call, on the clock of `time.perf_counter`."""
    ended_attempts: list[AttemptRecord] = []
    model: str = ""
    end_user: str = ""
    """Id of the end user that the caller sent; "" for none."""
    channel: str = ""
    """Name of the channel of the current attempt; "" before the first one."""
    upstream_status: int = 0
    """HTTP status of the attempt whose response the caller got, else of the last one; 0 if none had a status."""
    report: Report | None = None
    """Fields of the request that the provider of the current attempt was not sent; None before the first attempt."""
    attempts: int = 0
    is_cached: bool = False
    """Whether the response is a cached one, whose usage was counted before."""
    usage: pb.Usage | None = None
    quantities: Quantities | None = None
    """Billable quantities of a response that is not billed by the tokens of `usage`, for example images; else None."""
    first_output_seconds: float | None = None
    """Seconds from the arrival of the call to the first message of its stream; None before."""
    finish_reason: str = ""
    """Word of the provider for the end of the response, if no row of the finish reasons has it."""
    requested_model: str = ""
    """Id of the model that the caller requested, if a fallback is called in its place (`model`); else ""."""
    fallback_cause: str = ""
    """Cause of the fallback, a key of the config; "" without one."""
    fallback_route: str = ""
    """Beginning of the header `x-umg-route` that names the fallback; "" without one."""
    failed_before: tuple[str, ...] = ()
    """Channels of earlier models that failed, and fallbacks that were skipped, each with the reason."""
    guards: GuardFacts | None = None
    """Decisions of the guards; None for a call that none has checked."""
    abandoned: tuple[str, ...] = ()
    """Names of the channels whose attempts were cancelled because another attempt was faster (hedging)."""


class CallCharges(msgspec.Struct, eq=False):
    """Resources that a call holds until its end (slot, limits, budget), and its cost; defaults if not in use."""

    load_shedder: LoadShedder | None = None
    """Load shedder whose slot the call holds."""
    admissions: Sequence[Admission] = ()
    """Counts of the call against the limits of the key and of the model; empty without limits."""
    prices: Prices | None = None
    """Prices of the model; None for a call that was not admitted and therefore costs nothing."""
    reservation: Reservation | None = None
    """Maximum cost, reserved from the key's budget; None for a key without a budget."""
    output_limit: int | None = None
    """Maximum output tokens that the reservation pays for; None if it pays for the longest response."""
    usage_in_flight: UsageInFlight | None = None
    """Provisional usage record of the call; None before the attempts, and without usage records."""
    earlier_answers: tuple[tuple[pb.Usage, Prices], ...] = ()
    """Usage and prices of each answer that the caller did not get, of a failed attempt or before another request."""
    has_summary: bool = False
    """Whether one of them is a summary that the gateway requested, whose usage the answer repeats."""
    micro_credits: int = 0
    """Cost of the call in micro-credits, set at its end."""


class Call(msgspec.Struct, eq=False):
    """State of one call, from its arrival to its log line: properties, facts for the records, resources in use."""

    arrival: Arrival
    headers: dict[str, str] = {}
    """Headers of the response but the one with the dropped fields (`metadata`)."""
    facts: CallFacts = msgspec.field(default_factory=CallFacts)
    charges: CallCharges = msgspec.field(default_factory=CallCharges)
    span: CallSpan | None = None
    known_caller: Caller | None = None
    rejected_key: KeyReference | None = None
    """Expired or revoked key with which the call was made, for the log; else None."""
    stream_start: StreamStart | None = None
    """Progress of a stream before its first message; None for a call without a stream, and before its admission."""
    affinity: bytes = b""
    """Affinity key: calls with the same one prefer the same channel and API key of a provider; empty for any."""
    _agent: str | None = None
    ends_at: float = inf
    """The caller's deadline, on the monotonic clock; infinite without a deadline."""

    @property
    def caller(self) -> Caller:
        """The authenticated caller. Raises UmgError(MISSING_KEY) if the call was not authenticated."""
        if self.known_caller is None:
            raise missing_key()
        return self.known_caller

    @property
    def agent(self) -> str:
        """Name of the calling program, by the table of agents. The HTTP server states that of its own calls."""
        if (known := self._agent) is None:
            metadata = self.arrival.metadata
            named = metadata.get(AGENT_HEADER, UNKNOWN_AGENT) if FACE_HEADER in metadata else agent_of(metadata)
            known = self._agent = named if named in AGENT_NAMES else UNKNOWN_AGENT
        return known

    @property
    def strict(self) -> bool:
        """Whether the request is rejected if a field would be dropped (`x-umg-strict`). Raises UmgError."""
        return is_strict(self.arrival.metadata.get(STRICT_HEADER))

    @property
    def changes(self) -> Report | None:
        """Report of the request's fields that the provider got with other values or not at all, else None."""
        report = self.facts.report
        return report if report is not None and report.dropped else None

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Headers of the response as initial metadata, with the provider's headers and the dropped fields so far."""
        headers, report = (*self.headers.items(),), self.facts.report
        if report is None:
            return headers
        if report.response_headers:
            headers += (*report.response_headers.items(),)
        return (*headers, (DROPPED_HEADER, report.header())) if report.dropped else headers

    def limit(self) -> None:
        """Shorten the deadline to that of `x-umg-timeout`. Raise UmgError(INVALID_FIELD) if the header is malformed."""
        self.ends_at = min(self.ends_at, time.monotonic() + timeout_seconds(self.arrival.metadata.get(TIMEOUT_HEADER)))

    def seconds_left(self) -> float:
        """Return the seconds until the caller's deadline; infinite if the caller has no deadline."""
        return inf if self.ends_at == inf else self.ends_at - time.monotonic()

    def list_dropped(self, response: Message) -> None:
        """Add the dropped fields to the response to a gRPC caller; HTTP callers get them as a header."""
        if not self.arrival.trusted and (changes := self.changes) is not None:
            listed: list[str] = getattr(response, DROPPED_FIELDS)
            listed.extend(changes.entries())


def missing_key() -> UmgError:
    """Return the error for a call that was not authenticated."""
    return UmgError(pb.ERROR_REASON_MISSING_KEY, "this call has no credentials")


CURRENT_CALL: ContextVar[Call] = ContextVar("call")


current = CURRENT_CALL.get
"""Returns the current call. A streaming servicer calls it at its first step: later steps may have another context."""
