"""Export of traces and metrics to an OpenTelemetry collector: each call and each of its attempts at a channel is a
span.
"""
