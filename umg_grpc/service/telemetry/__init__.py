"""Telemetry for an OpenTelemetry collector: a span for each call and each attempt, and metrics of the attempts."""
