"""Figures of the service, in Prometheus' form."""

import os

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from umg_grpc.service.call import Call

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable that the library reads: the folder in which several worker processes add their figures up."""


class Metrics:
    """What the calls of this process come to. Label values come from the schema and the config, never from callers."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        if SHARED_FOLDER not in os.environ:  # several workers have no memory or start time in common
            ProcessCollector(registry=registry)
        labels = ["method", "channel", "model"]
        self._calls = Counter("umg_calls", "Calls finished.", [*labels, "outcome"], registry=registry)
        self._seconds = Histogram(
            "umg_call_seconds", "From request to the end of the answer.", labels, registry=registry, buckets=SECONDS
        )
        self._tokens = Counter("umg_tokens", "Tokens used.", ["channel", "model", "direction"], registry=registry)

    def finished(self, call: Call, outcome: str, seconds: float) -> None:
        """Counts a call. Its model is known only once it was routed."""
        method, model = call.method.rpartition("/")[2], call.model
        self._calls.labels(method, call.channel, model, outcome).inc()
        self._seconds.labels(method, call.channel, model).observe(seconds)
        if call.usage is not None:
            self._tokens.labels(call.channel, model, "input").inc(call.usage.input_tokens)
            self._tokens.labels(call.channel, model, "output").inc(call.usage.output_tokens)

    def exposition(self) -> bytes:
        """The figures as text: of all workers where there are several."""
        if SHARED_FOLDER not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)
