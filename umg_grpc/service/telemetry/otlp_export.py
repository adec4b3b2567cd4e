"""Export of spans and metrics by OTLP over gRPC, configured by the environment variables of OpenTelemetry."""

import asyncio
import threading
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import structlog

from umg_grpc.base.grpc_proxies import proxy_options
from umg_grpc.service.telemetry.content_capture import open_capture
from umg_grpc.service.telemetry.telemetry_interface import Telemetry

COMMON_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
SPANS_ENDPOINT, METRICS_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
ENDPOINT_VARIABLES = (COMMON_ENDPOINT, SPANS_ENDPOINT, METRICS_ENDPOINT)
"""Environment variables with the address of a collector; one of them enables the telemetry."""
DISABLED_VARIABLE = "OTEL_SDK_DISABLED"
TRACES_EXPORTER, METRICS_EXPORTER = "OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER"
PROTOCOL_VARIABLE = "OTEL_EXPORTER_OTLP_PROTOCOL"
SERVICE_NAME, RESOURCE_ATTRIBUTES = "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"
SHUTDOWN_SECONDS = 3.0
"""Maximum seconds that the end of the process waits for the last export."""

logger = structlog.get_logger()


def _resource_attributes(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes that the environment does not set, with a random id that distinguishes workers."""
    given = environment.get(RESOURCE_ATTRIBUTES, "")
    found: dict[str, str] = {}
    if not environment.get(SERVICE_NAME) and "service.name=" not in given:
        found["service.name"] = "unified-model-gateway"
    if "service.instance.id=" not in given:
        found["service.instance.id"] = str(uuid.uuid4())
    return found


def _settings(environment: Mapping[str, str], variable: str) -> dict[str, Any]:
    # a dict, since the declared type of the options admits only one, with a text
    return {
        "channel_options": proxy_options(environment.get(variable) or environment.get(COMMON_ENDPOINT) or "localhost")
    }


@asynccontextmanager
async def open_telemetry(environment: Mapping[str, str]) -> AsyncGenerator[Telemetry | None, None]:
    """Yield the telemetry for the time of the block; None unless the environment names a collector and the optional
    packages are installed. A collector that does not answer delays no calls: spans are exported by a thread, and
    dropped if its queue is full. Raise UmgError(INVALID_FIELD) for a redaction function that cannot be imported.
    """
    if (
        not any(environment.get(name) for name in ENDPOINT_VARIABLES)
        or environment.get(DISABLED_VARIABLE, "").lower() == "true"
    ):
        yield None
        return
    if environment.get(PROTOCOL_VARIABLE, "grpc") != "grpc":
        logger.warning(
            "no telemetry is exported: only OTLP over gRPC is supported", variable=PROTOCOL_VARIABLE, expected="grpc"
        )
        yield None
        return
    try:
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from umg_grpc.service.telemetry.opentelemetry_spans import OtelTelemetry
    except ImportError as error:
        install = "pip install 'unified-model-gateway[otel]'"
        logger.warning("no telemetry is exported: a package is not installed", missing=error.name, install=install)
        yield None
        return
    content = open_capture(environment)
    resource = Resource.create(_resource_attributes(environment))
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    if environment.get(TRACES_EXPORTER) != "none":
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(**_settings(environment, SPANS_ENDPOINT))))
    readers = list[PeriodicExportingMetricReader]()
    if environment.get(METRICS_EXPORTER) != "none":
        readers.append(PeriodicExportingMetricReader(OTLPMetricExporter(**_settings(environment, METRICS_ENDPOINT))))
    meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
    try:
        yield OtelTelemetry(tracers, meters, content)
    finally:

        def shut_down() -> None:
            tracers.shutdown()
            meters.shutdown(SHUTDOWN_SECONDS * 1000)

        thread = threading.Thread(target=shut_down, name="telemetry", daemon=True)  # its exporter may block
        thread.start()
        await asyncio.to_thread(thread.join, SHUTDOWN_SECONDS)
