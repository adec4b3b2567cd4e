"""The state of the call that is being served."""

import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, TypeAlias

from umg_grpc.access.budgets import Reservation
from umg_grpc.access.caller import Caller, KeyReference
from umg_grpc.access.key_limits import Admission
from umg_grpc.errors import UmgError
from umg_grpc.prices import Prices
from umg_grpc.service.resilience.overload import LoadShedder
from umg_grpc.service.telemetry.interface import CallSpan
from umg_grpc.store.usage_records import AttemptRecord
from umg_grpc.trace_context import TraceContext
from umg_grpc.v1 import pb
from umg_grpc.wire.core.headers import STRICT, TIMEOUT, is_strict, timeout_seconds
from umg_grpc.wire.report import Report
from umg_grpc.wire.request_notes import RequestNotes

if TYPE_CHECKING:
    from umg_grpc.service.pipeline.usage import UsageInFlight

Answer: TypeAlias = pb.GenerateResponse | pb.GenerationStarted | pb.EmbedResponse | pb.RerankResponse


@dataclass(slots=True, eq=False)
class Call:
    """State of one call, from its arrival to its log line."""

    method: str
    metadata: Mapping[str, str]  # of the request; names in lower case
    trusted: bool  # whether it came from our own facade, without a socket
    request_id: str
    notes: RequestNotes | None = None  # of the request, from a caller in this process that decoded its source
    known_key: object = None  # result of the key check of a caller in this process
    trace: TraceContext | None = None  # of the caller; of `span` if the call is traced
    span: CallSpan | None = None  # None without telemetry
    headers: dict[str, str] = field(default_factory=dict)  # initial metadata to send
    report: Report | None = None  # fields that the provider of the selected attempt was not sent
    known_caller: Caller | None = None
    rejected_key: KeyReference | None = None  # expired or revoked, for the log
    ends_at: float = inf  # the caller's deadline, on the monotonic clock
    # for the log, the metrics and the usage record
    model: str = ""
    channel: str = ""
    attempts: int = 0
    began_at: float = field(default_factory=time.perf_counter)
    ended_attempts: list[AttemptRecord] = field(default_factory=list)
    abandoned: list[str] = field(default_factory=list)  # channels of hedged attempts that did not win
    is_cached: bool = False  # whether the answer is a cached response: its usage was counted before
    usage: pb.Usage | None = None
    micro_credits: int = 0  # cost of the usage, set at the end of the call
    first_output_seconds: float | None = None  # from the call to the first message of its stream
    load_shedder: LoadShedder | None = None  # load shedder whose slot the call holds
    admissions: Sequence[Admission] = ()  # within the limits of the key and the model, where they have any
    reservation: Reservation | None = None  # of the maximum cost, for a key with a budget
    output_limit: int | None = None  # tokens of an answer that the reservation pays for; None for the longest answer
    usage_in_flight: "UsageInFlight | None" = None  # None before the attempts, and without usage records
    prices: Prices | None = None  # of the model; None for a call that was not admitted, and costs nothing

    def list_dropped(self, answer: Answer) -> None:
        """List the dropped fields in the answer for a gRPC caller. HTTP callers get them in a header."""
        if not self.trusted and self.report is not None and self.report.dropped:
            answer.dropped_fields.extend(self.report.entries())

    @property
    def caller(self) -> Caller:
        """The caller. Raises UmgError(MISSING_KEY) in a call that no interceptor authenticated."""
        if self.known_caller is None:
            raise UmgError(pb.ERROR_REASON_MISSING_KEY, "this call has no credentials")
        return self.known_caller

    def limit(self, seconds: float | None) -> None:
        """Set the caller's deadline: `seconds` of the gRPC deadline, or the metadata `x-umg-timeout` if that is
        shorter. Raise UmgError(INVALID_FIELD).
        """
        if (timeout := self.metadata.get(TIMEOUT)) is not None:
            seconds = min(timeout_seconds(timeout), inf if seconds is None else seconds)
        if seconds is not None and seconds != inf:
            self.ends_at = time.monotonic() + seconds

    def seconds_left(self) -> float:
        """Return the seconds until the caller's deadline; infinite without one."""
        return inf if self.ends_at == inf else self.ends_at - time.monotonic()

    @property
    def upstream_status(self) -> int:
        """HTTP status of the attempt whose answer the caller got, else of the last one; 0 if none had a status."""
        if not (records := self.ended_attempts):
            return 0
        if records[-1].reason:  # of a hedge that lost, or a failure
            return next((record.status for record in records if not record.reason), records[-1].status)
        return records[-1].status

    def release(self, *, cancelled: bool) -> None:
        """Release the slot of the load shedder, and end the call's use of the limits of its key and model. A call that
        was cancelled before its usage was known is counted with its prompt, a failed one with nothing.
        """
        if self.load_shedder is not None:
            self.load_shedder.leave()
        for admission in self.admissions:
            usage, prompt = self.usage, admission.input_tokens if cancelled else 0
            admission.release(prompt if usage is None else usage.input_tokens + usage.output_tokens)

    @property
    def strict(self) -> bool:
        """Whether a request is rejected if it would lose a field (strict mode). Raises UmgError(INVALID_FIELD)."""
        return is_strict(self.metadata.get(STRICT))


CURRENT: ContextVar[Call] = ContextVar("call")


def current() -> Call:
    """Return the call being served. A streaming servicer calls this at its first step: later steps may run in another
    context.
    """
    return CURRENT.get()
