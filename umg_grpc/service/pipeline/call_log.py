"""Log of the calls: writes the log line, metrics, usage record and span of each call at its end."""

import time

import msgspec

from umg_grpc.access.key_last_use import KeyUses
from umg_grpc.access.usage_record_writer import UsageLog
from umg_grpc.base.errors import UmgError
from umg_grpc.base.gateway_log import line_logger
from umg_grpc.base.inprocess_channel import Context, InProcessContext
from umg_grpc.base.micro_credits import MICRO_CREDITS
from umg_grpc.base.request_ids import request_id_of
from umg_grpc.base.trace_context import OUTGOING_TRACE, PARENT_HEADER, STATE_HEADER, read_trace_context
from umg_grpc.service.pipeline.call_state import CURRENT_CALL, FACE_HEADER, Arrival, Call
from umg_grpc.service.pipeline.refused_call_records import record_refusal
from umg_grpc.service.pipeline.usage_recording import settle_usage
from umg_grpc.service.resilience.load_shedding import REFUSAL_CAUSES
from umg_grpc.service.service_metrics import Metrics
from umg_grpc.service.telemetry.telemetry_interface import Attribute, Telemetry
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import echo
from umg_grpc.wire.inprocess_request_attachment import Attachment

NO_KEY = (None, None)
OWN_PREFIX = "/umg.v1."  # health and reflection are other services, served without credentials


class CallLine(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Line of a call in the log. A field is None, and then left out, if it does not apply to the call."""

    method: str
    """Method without its package, for example `GenerationService/Generate`."""
    face: str | None = None
    request_id: str
    trace_id: str | None = None
    outcome: str
    cause: str | None = None
    ms: float
    first_ms: float | None = None
    key: str | None = None
    key_prefix: str | None = None
    model: str | None = None
    requested_model: str | None = None
    """Id of the model that the caller requested, if a fallback was called in its place."""
    fallback_cause: str | None = None
    """Cause of the fallback, a key of the config."""
    guards: dict[str, str] | None = None
    """Phase and name of each guard -> its decision."""
    guard_notes: dict[str, str] | None = None
    """Annotations of the guards."""
    channel: str | None = None
    attempts: int | None = None
    abandoned: tuple[str, ...] | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    estimated: bool | None = None
    finish_reason: str | None = None
    """Finish reason of the provider that this version does not know; the answer counts as complete."""
    cost: float | None = None
    kind: str | None = None
    upstream_status: int | None = None
    upstream_code: str | None = None
    upstream_message: str | None = None
    upstream_request_id: str | None = None
    upstream_model: str | None = None
    upstream_host: str | None = None
    upstream_path: str | None = None
    upstream_content_type: str | None = None
    upstream_right_base_url: str | None = None
    upstream_key: str | None = None

    def describe(self, failure: UmgError) -> None:
        """Set the fields about a call's failure, with the facts of the provider's response if the provider failed."""
        self.cause = failure.cause or None
        self.model = self.model or echo(failure.metadata.get("model", "")) or None
        if failure.facts is not None:
            for name, value in failure.facts.log_fields().items():
                setattr(self, name, value)


class CallLog:
    """Log of all calls of a process: creates a call's state at its arrival, and records its outcome at its end."""

    def __init__(
        self,
        metrics: Metrics,
        usage: UsageLog | None = None,
        telemetry: Telemetry | None = None,
        key_uses: KeyUses | None = None,
    ) -> None:
        self._key_uses = key_uses
        self._metrics = metrics
        self._usage = usage
        self._telemetry = telemetry
        self._write = line_logger("call")

    def open(self, method: str, context: Context) -> Call:
        """Create the state of a call, with a span if there is telemetry; make it the current one. `method`: path."""
        if isinstance(context, InProcessContext):
            metadata: dict[str, str] = dict(context.pairs)  # type: ignore[arg-type]  # the face sends no bytes
            request_id = metadata.get("x-request-id") or request_id_of()
            arrival = Arrival(method, metadata, trusted=True, request_id=request_id, relay=context.relay)
            if isinstance(attachment := context.attachment, Attachment):
                arrival.notes, arrival.known_key = attachment.notes, attachment.known_key
            call = Call(arrival, ends_at=context.deadline)
        else:
            pairs = context.invocation_metadata() or ()
            metadata = {key: value for key, value in pairs if isinstance(value, str)}
            request_id = request_id_of(metadata.get("x-request-id"))
            arrival = Arrival(method, metadata, trusted=False, request_id=request_id)
            call = Call(arrival, {"x-request-id": request_id})  # the HTTP face chose the request id itself
            if (seconds := context.time_remaining()) is not None:
                call.ends_at = time.monotonic() + seconds
        if PARENT_HEADER in metadata:
            arrival.trace = read_trace_context([metadata[PARENT_HEADER]], [metadata.get(STATE_HEADER, "")])
        if self._telemetry is not None:
            call.span = self._telemetry.begin(method, arrival.trace)
            arrival.trace = call.span.trace
        OUTGOING_TRACE.set(arrival.trace)
        CURRENT_CALL.set(call)
        return call

    def close(self, call: Call, failure: UmgError | None) -> None:
        """End a call: release its resources, count it, and write its usage record and log line."""
        arrival, facts, charges = call.arrival, call.facts, call.charges
        seconds = time.perf_counter() - facts.began_at
        if charges.load_shedder is not None:
            charges.load_shedder.leave()
        settle_usage(self._usage, call, seconds, failure)
        usage = facts.usage  # with that of failed attempts
        for admission in charges.admissions:
            if usage is not None:
                admission.release(usage.input_tokens + usage.output_tokens)
            else:  # a cancelled call is counted with its prompt, a failed one with nothing
                is_cancelled = failure is not None and failure.reason == pb.ERROR_REASON_CANCELLED
                admission.release(admission.input_tokens if is_cancelled else 0)
        if charges.reservation is not None:  # after the journal has the cost: a killed process must not have freed it
            charges.reservation.end(charges.micro_credits)
        key_id, key_prefix = call.rejected_key or NO_KEY
        if (caller := call.known_caller) is not None:
            key_id, key_prefix = caller.key_id, caller.key_prefix
            if self._key_uses is not None:
                self._key_uses.used[key_id] = time.time()
        outcome = "OK" if failure is None else failure.name
        self._metrics.finished(call, outcome, seconds)
        if call.span is not None:
            call.span.end(_span_attributes(call), usage if not facts.is_cached else None, failure)
        if failure is not None and not self._note_failure(call, seconds, failure):
            return
        line = CallLine(
            method=arrival.method.removeprefix(OWN_PREFIX),
            face=arrival.metadata.get(FACE_HEADER),
            request_id=arrival.request_id,
            trace_id=arrival.trace.trace_id if arrival.trace is not None else None,
            outcome=outcome,
            ms=round(seconds * 1000, 1),
            first_ms=round(facts.first_output_seconds * 1000, 1) if facts.first_output_seconds is not None else None,
            key=key_id,
            key_prefix=key_prefix,
            model=facts.model or None,
            requested_model=facts.requested_model or None,
            fallback_cause=facts.fallback_cause or None,
            channel=facts.channel or None,
            attempts=facts.attempts or None,
            abandoned=facts.abandoned or None,
            finish_reason=facts.finish_reason or None,
            cost=charges.micro_credits / MICRO_CREDITS if charges.micro_credits else None,
            upstream_status=facts.upstream_status or None,
        )
        if usage is not None:
            line.input_tokens, line.output_tokens = usage.input_tokens, usage.output_tokens
            line.estimated = usage.estimated or None
        if (guards := facts.guards) is not None:
            line.guards, line.guard_notes = guards.decisions, guards.notes or None
        if failure is not None:
            line.describe(failure)
        self._write(line)

    def _note_failure(self, call: Call, seconds: float, failure: UmgError) -> bool:
        """Record a call that failed before its admission. Return whether the failure is logged by a line of its own:
        the load shedder logs one line per second for all rejections.
        """
        if call.charges.prices is None and self._usage is not None:
            record_refusal(self._usage.refused, call, seconds, failure)
        return failure.cause not in REFUSAL_CAUSES


def _span_attributes(call: Call) -> dict[str, Attribute | None]:
    """Return the attributes of a call's span; the value None means that an attribute does not apply."""
    facts, micro_credits = call.facts, call.charges.micro_credits
    return {
        "umg.request_id": call.arrival.request_id,
        "umg.face": call.arrival.metadata.get(FACE_HEADER),
        "umg.key_id": call.known_caller.key_id if call.known_caller is not None else None,
        "umg.model": facts.model or None,
        "umg.requested_model": facts.requested_model or None,
        "umg.fallback_cause": facts.fallback_cause or None,
        "umg.guards": ", ".join(facts.guards.described) if facts.guards is not None else None,
        "umg.channel": facts.channel or None,
        "umg.attempts": facts.attempts,
        "umg.cached": facts.is_cached or None,
        "umg.cost_credits": micro_credits / MICRO_CREDITS if micro_credits else None,
    }
