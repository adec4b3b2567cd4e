"""OpenTelemetry collector for tests: a real OTLP receiver over gRPC on a free port, which keeps the spans and
metrics.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class ReceivedSpan:
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    is_error: bool
    attributes: dict[str, Any]
    seconds: float

    @classmethod
    def read(cls, span: Span) -> "ReceivedSpan":
        seconds = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
        ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
        kind = Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_")
        return cls(span.name, kind, *ids, span.status.code == 2, _values(span.attributes), seconds)


@dataclass
class Collector:
    url: str = ""
    spans: list[ReceivedSpan] = field(default_factory=list)
    metrics: dict[str, list[tuple[dict[str, Any], float]]] = field(default_factory=dict)
    """By name: the attributes of each series, and its last sum or its number of observations."""
    resource: dict[str, Any] = field(default_factory=dict)

    @property
    def calls(self) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.kind == "SERVER"]

    @property
    def attempts(self) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.kind != "SERVER"]


class _Traces(trace_service_pb2_grpc.TraceServiceServicer):
    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    async def Export(
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: object
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        for resource in request.resource_spans:
            self._collector.resource = _values(resource.resource.attributes)
            for scope in resource.scope_spans:
                self._collector.spans += [ReceivedSpan.read(span) for span in scope.spans]
        return trace_service_pb2.ExportTraceServiceResponse()


class _Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    async def Export(
        self, request: metrics_service_pb2.ExportMetricsServiceRequest, context: object
    ) -> metrics_service_pb2.ExportMetricsServiceResponse:
        found = [m for r in request.resource_metrics for s in r.scope_metrics for m in s.metrics]
        for metric in found:
            histogram, total = metric.histogram.data_points, metric.sum.data_points
            series = [(_values(point.attributes), float(point.count)) for point in histogram]
            series += [(_values(point.attributes), float(point.as_int)) for point in total]
            self._collector.metrics[metric.name] = series
        return metrics_service_pb2.ExportMetricsServiceResponse()


def _values(attributes: Any) -> dict[str, Any]:
    pairs: list[KeyValue] = list(attributes)
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind) if kind else None


@asynccontextmanager
async def collector() -> AsyncGenerator[Collector, None]:
    received, server = Collector(), grpc.aio.server()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(_Traces(received), server)
    metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(_Metrics(received), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    received.url = f"http://127.0.0.1:{port}"
    try:
        yield received
    finally:
        await server.stop(None)
