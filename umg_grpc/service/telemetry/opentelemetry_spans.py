"""Spans and metrics of calls, recorded with the optional packages of OpenTelemetry."""

import time
from collections.abc import Mapping
from importlib.metadata import version

from opentelemetry.context import Context
from opentelemetry.metrics import Histogram, MeterProvider
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TracerProvider,
    TraceState,
    set_span_in_context,
)

from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import HTTP_STATUSES
from umg_grpc.base.trace_context import OUTGOING_TRACE, TraceContext
from umg_grpc.operations import CALLED_OPERATIONS, OPERATIONS_BY_VALUE, ModelOperation
from umg_grpc.operations.canonical_message_unions import CanonicalRequest, CanonicalResponse
from umg_grpc.routing import GENERATE_VALUE, Target
from umg_grpc.service.telemetry import span_attributes
from umg_grpc.service.telemetry.content_capture import ContentCapture, aggregator_of
from umg_grpc.service.telemetry.span_attributes import Attributes
from umg_grpc.service.telemetry.telemetry_interface import Attribute
from umg_grpc.v1 import pb
from umg_grpc.wire.core.stream_aggregator import ResponseAggregator

TELEMETRY_SCOPE = "unified-model-gateway"
DURATION_BUCKETS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Upper bounds of the buckets of histograms of durations, in seconds, as the conventions recommend."""
FIRST_CHUNK = "gen_ai.client.inference.time_to_first_chunk"
TOKEN_KINDS = (
    "input_tokens",
    "output_tokens",
    "cache_read.input_tokens",
    "cache_write.input_tokens",
    "reasoning.output_tokens",
)
"""Kinds of counted tokens: counters below `gen_ai.client.inference.usage`, span attributes below `gen_ai.usage`."""
SERVER_FAULTS = frozenset({"INTERNAL", "UNKNOWN", "UNAVAILABLE", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "DATA_LOSS"})
"""Names of the gRPC statuses with which the span of a call is marked as an error, by the conventions for servers."""


class OtelTelemetry:
    """Telemetry by OpenTelemetry: spans of calls, and metrics. OpenTelemetry's providers export both in threads."""

    def __init__(self, tracers: TracerProvider, meters: MeterProvider, content: ContentCapture | None = None) -> None:
        """Create the telemetry and its metrics. `content`: encoder of prompts and responses; None leaves them out."""
        self.content = content
        release = version("unified-model-gateway")
        self.tracer = tracers.get_tracer(TELEMETRY_SCOPE, release)
        meter = meters.get_meter(TELEMETRY_SCOPE, release)

        def seconds(name: str, text: str) -> Histogram:
            return meter.create_histogram(name, "s", text, explicit_bucket_boundaries_advisory=DURATION_BUCKETS)

        names = {
            value: row.telemetry.durations for value, row in OPERATIONS_BY_VALUE.items() if row.telemetry is not None
        }
        histograms = {name: seconds(name, "Duration of attempts.") for name in dict.fromkeys(names.values())}
        self.durations = {value: histograms[name] for value, name in names.items()}
        self.first_chunk = seconds(FIRST_CHUNK, "Time from the request to the first message of its stream.")
        self.tokens = {
            f"gen_ai.usage.{name}": meter.create_counter(f"gen_ai.client.inference.usage.{name}", "{token}", "Tokens.")
            for name in TOKEN_KINDS
        }

    def begin(self, method: str, caller: TraceContext | None) -> "OtelCallSpan":
        return OtelCallSpan(self, method, Context() if caller is None else _remote(caller))


class OtelCallSpan:
    """Span of one call."""

    def __init__(self, telemetry: OtelTelemetry, method: str, parent: Context) -> None:
        self._telemetry = telemetry
        name = method.removeprefix("/")
        described = {"rpc.system.name": "grpc", "rpc.method": name}
        self._span = telemetry.tracer.start_span(name, parent, SpanKind.SERVER, described)
        self._context = set_span_in_context(self._span, Context())
        self.trace = _trace_context(self._span)
        self._method = method
        self._parameters: Attributes = {}
        self._request: CanonicalRequest | None = None
        self._attempts: list[OtelAttemptSpan] = []

    def describe(self, request: CanonicalRequest, *, stream: bool) -> None:
        self._request = request
        self._parameters = span_attributes.request_attributes(request, stream=stream)

    def begin_attempt(self, target: Target) -> "OtelAttemptSpan":
        operation = CALLED_OPERATIONS[self._method].value
        attempt = OtelAttemptSpan(self._telemetry, operation, target, self._parameters, self._context)
        if self._telemetry.content is not None and isinstance(self._request, pb.GenerateRequest):
            attempt.capture(self._request, self._telemetry.content)
        self._attempts.append(attempt)
        OUTGOING_TRACE.set(attempt.trace)
        return attempt

    def end(self, found: Mapping[str, Attribute | None], usage: pb.Usage | None, error: UmgError | None) -> None:
        span = self._span
        span.set_attributes({name: value for name, value in found.items() if value is not None})
        if error is not None:
            status = HTTP_STATUSES[error.reason].name
            span.set_attributes({span_attributes.ERROR_ATTRIBUTE: error.name, "rpc.response.status_code": status})
            if status in SERVER_FAULTS:
                span.set_status(Status(StatusCode.ERROR))
        else:
            span.set_attribute("rpc.response.status_code", "OK")
        for attempt in self._attempts:
            is_response = attempt.is_complete or (attempt is self._attempts[-1] and error is not None)
            attempt.close(usage if is_response else None)
        span.end()


class OtelAttemptSpan:
    """Span of one attempt. It is exported at the end of the call, when the usage of the attempt is known."""

    def __init__(
        self,
        telemetry: OtelTelemetry,
        operation: ModelOperation,
        target: Target,
        parameters: Attributes,
        parent: Context,
    ) -> None:
        self._telemetry = telemetry
        self._operation = operation
        self._shared = span_attributes.target_attributes(operation, target)
        name = f"{self._shared[span_attributes.OPERATION_ATTRIBUTE]} {target.model}"
        is_remote = span_attributes.ADDRESS_ATTRIBUTE in self._shared
        described = {**self._shared, **parameters, "umg.channel": target.channel.name}
        kind = SpanKind.CLIENT if is_remote else SpanKind.INTERNAL
        self._span = telemetry.tracer.start_span(name, parent, kind, described)
        self.trace = _trace_context(self._span)
        self._started = time.perf_counter()
        self._first_seconds: float | None = None
        self._finish_reasons: list[str] = []
        self._end_nanos: int | None = None
        self.is_complete = False
        self._content: ContentCapture | None = None
        self._request = pb.GenerateRequest()
        self._response: pb.GenerateResponse | None = None
        self._aggregator: ResponseAggregator | None = None

    def capture(self, request: pb.GenerateRequest, content: ContentCapture) -> None:
        """Record the messages of the request and of its response, if the span is sampled."""
        if self._span.is_recording():
            self._request, self._content = request, content

    def read_response(self, response: CanonicalResponse) -> None:
        if isinstance(response, pb.GenerateResponse):
            self._name(response)
            self._response = response if self._content is not None else None
            self._finish_reasons = [span_attributes.finish_reason(each.finish_reason) for each in response.candidates]

    def read_message(self, message: pb.StreamGenerateResponse) -> None:
        if self._first_seconds is None:
            self._first_seconds = time.perf_counter() - self._started
        if self._content is not None:
            self._aggregator = self._aggregator or aggregator_of(self._request, message)
            self._aggregator.feed(message)
        for event in message.events:
            if event.HasField("started"):
                self._name(event.started)
            elif event.HasField("finished"):
                self._finish_reasons.append(span_attributes.finish_reason(event.finished.finish_reason))

    def end(self, outcome: str, error: UmgError | None) -> None:
        if self._end_nanos is not None:
            return
        self._end_nanos, seconds = time.time_ns(), time.perf_counter() - self._started
        self.is_complete = outcome == "ok"
        self._span.set_attribute("umg.attempt.outcome", outcome)
        if error is not None:
            self._fail(error)
        self._telemetry.durations[self._operation].record(seconds, self._shared)
        if self._first_seconds is not None:
            self._span.set_attribute("gen_ai.response.time_to_first_chunk", self._first_seconds)
            self._telemetry.first_chunk.record(self._first_seconds, self._shared)

    def close(self, usage: pb.Usage | None) -> None:
        """Export the span. `usage`: tokens of the attempt; None if its response was not used."""
        if usage is not None:
            self._count(usage)
        if self._finish_reasons:
            self._span.set_attribute("gen_ai.response.finish_reasons", self._finish_reasons)
        if self._content is not None:
            self._span.set_attributes(self._content.attributes(self._request, self._response or self._aggregator))
        self._span.end(self._end_nanos)

    def _fail(self, error: UmgError) -> None:
        facts = error.facts
        self._shared = {
            **self._shared,
            span_attributes.ERROR_ATTRIBUTE: facts.kind.value if facts is not None else error.name,
        }
        self._span.set_attribute(span_attributes.ERROR_ATTRIBUTE, str(self._shared[span_attributes.ERROR_ATTRIBUTE]))
        if facts is not None and facts.status:
            self._span.set_attribute("http.response.status_code", facts.status)
        self._span.set_status(Status(StatusCode.ERROR))

    def _count(self, usage: pb.Usage) -> None:
        found = span_attributes.usage_attributes(usage)
        self._span.set_attributes(found)
        if self._operation == GENERATE_VALUE:
            for name, count in found.items():
                if isinstance(count, int):
                    self._telemetry.tokens[name].add(count, self._shared)

    def _name(self, head: pb.GenerateResponse | pb.GenerationStarted) -> None:
        if head.response_id:
            self._span.set_attribute("gen_ai.response.id", head.response_id)
        if head.model:
            self._span.set_attribute("gen_ai.response.model", head.model)


def _remote(caller: TraceContext) -> Context:
    flags = TraceFlags(TraceFlags.SAMPLED if caller.is_sampled else TraceFlags.DEFAULT)
    state = TraceState.from_header([caller.tracestate]) if caller.tracestate else None
    parent = SpanContext(int(caller.trace_id, 16), int(caller.span_id, 16), True, flags, state)
    return set_span_in_context(NonRecordingSpan(parent), Context())


def _trace_context(span: Span) -> TraceContext:
    known = span.get_span_context()
    trace_id, span_id = f"{known.trace_id:032x}", f"{known.span_id:016x}"
    is_sampled = bool(known.trace_flags & TraceFlags.SAMPLED)
    parent = f"00-{trace_id}-{span_id}-{'01' if is_sampled else '00'}"
    return TraceContext(parent, known.trace_state.to_header(), trace_id, span_id, is_sampled)
