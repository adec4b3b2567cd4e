"""Figures of the service, in Prometheus' form."""

import os
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from umg_grpc.service.call import Call

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable that the library reads: the folder in which several worker processes add their figures up."""


class Row(NamedTuple):
    """The figures of calls that are alike."""

    calls: Counter
    seconds: Histogram
    input_tokens: Counter
    output_tokens: Counter


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
        self._rows = dict[tuple[str, str, str, str], Row]()  # to find one costs the library more than to count

    def finished(self, call: Call, outcome: str, seconds: float) -> None:
        """Counts a call. Its model is known only once it was routed."""
        key = (call.method, call.channel, call.model, outcome)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._row(*key)
        row.calls.inc()
        row.seconds.observe(seconds)
        if call.usage is not None:
            row.input_tokens.inc(call.usage.input_tokens)
            row.output_tokens.inc(call.usage.output_tokens)

    def _row(self, path: str, channel: str, model: str, outcome: str) -> Row:
        method = path.rpartition("/")[2]
        return Row(
            self._calls.labels(method, channel, model, outcome),
            self._seconds.labels(method, channel, model),
            self._tokens.labels(channel, model, "input"),
            self._tokens.labels(channel, model, "output"),
        )

    def exposition(self) -> bytes:
        """The figures as text: of all workers where there are several."""
        if SHARED_FOLDER not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)
