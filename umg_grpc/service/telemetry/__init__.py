"""Export of traces and metrics to an OpenTelemetry collector: a span for each call and for each attempt at a
channel.
"""
