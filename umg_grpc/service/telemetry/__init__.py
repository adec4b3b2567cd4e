"""Export of traces and metrics to an OpenTelemetry collector: calls, and their attempts at channels, are spans."""
