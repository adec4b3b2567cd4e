"""Figures of the service, in Prometheus' form."""

import asyncio
import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from umg_grpc.service.call import Call
from umg_grpc.service.health import Standing

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable that the library reads: the folder in which several worker processes add their figures up."""
FRESH_SECONDS = 1.0
"""How old the figures of another worker are at most."""
MOST_MODELS = 1000
OTHER_MODELS = "other"
"""Stands for the models beyond these: where a channel serves a pattern, callers choose the names."""

Values: TypeAlias = Mapping[tuple[str, ...], float]
"""By the values of the labels."""


@dataclass(slots=True)
class Row:
    """The figures of calls that are alike, since the library was last told."""

    calls: int = 0
    seconds: float = 0.0
    by_length: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    """How many were no longer than each of `SECONDS`, and longer than the one before; last those longer than all."""
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True)
class Level:
    """A figure that rises and falls."""

    name: str
    what: str
    labels: tuple[str, ...] = ()
    of_workers: Literal["livesum", "livemax"] = "livesum"
    """What the figures of several workers come to; those of a worker that ended do not count."""


CHANNEL_STATE = Level(
    "umg_channel_state", "0 well, 1 resting, 2 about to be tried again.", ("channel", "model"), "livemax"
)
CHANNEL_REST = Level("umg_channel_rest_seconds", "Seconds left of its rest.", ("channel", "model"), "livemax")
CHANNEL_CALLS = Level("umg_channel_calls", "Attempts under way.", ("channel",))
CHANNEL_QUEUE = Level("umg_channel_queue", "Calls that wait for a place at the channel.", ("channel",))
CHANNEL_KEYS_RESTING = Level("umg_channel_keys_resting", "Keys that are left alone for now.", ("channel",), "livemax")
GATE_CALLS = Level("umg_gate_calls", "Calls under way.")
GATE_QUEUE = Level("umg_gate_queue", "Calls that wait to be let in.")
TASKS = Level("umg_tasks", "Tasks alive in the event loop.")


class Metrics:
    """What the calls of this process come to, and what it is at. Label values come from the schema and the config; of
    models whose names are the callers', only so many have figures of their own.

    Calls are counted in plain numbers, and the library is told when somebody wants to know, or other workers may: to it
    a figure is a lock, and where several workers share theirs a write to a file.
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._shared = SHARED_FOLDER in os.environ
        if not self._shared:  # several workers have no memory or start time in common
            ProcessCollector(registry=registry)
        labels = ["method", "channel", "model"]
        self._calls = Counter("umg_calls", "Calls finished.", [*labels, "outcome"], registry=registry)
        self._seconds = Durations(
            "umg_call_seconds", "From request to the end of the answer.", labels, registry=registry, buckets=SECONDS
        )
        self._tokens = Counter("umg_tokens", "Tokens used.", ["channel", "model", "direction"], registry=registry)
        self._attempts = self._counter("umg_attempts", "Attempts finished.", "channel", "model", "outcome")
        self._refused = self._counter("umg_refused", "Calls refused for overload.", "reason")
        self._hedges = self._counter("umg_hedges", "Second channels asked beside a slow one.", "model", "won")
        self._cache = self._counter("umg_cache", "Looks for a kept answer.", "outcome")
        self._rows = defaultdict[tuple[str, str, str, str], Row](Row)
        self._counts = defaultdict[tuple[Counter, tuple[str, ...]], int](int)
        self._models = dict[str, None]()
        self._gauges = dict[Level, _Gauge]()
        self._timer: asyncio.TimerHandle | None = None
        self.watch(TASKS, _tasks)

    def finished(self, call: Call, outcome: str, seconds: float) -> None:
        """Counts a call. Its model is known only once it was routed."""
        key = (call.method, call.channel, self._known(call.model), outcome)
        row = self._rows[key]
        row.calls += 1
        row.seconds += seconds
        row.by_length[bisect_left(SECONDS, seconds)] += 1
        if (usage := call.usage) is not None:
            row.input_tokens += usage.input_tokens
            row.output_tokens += usage.output_tokens
            for channel in call.abandoned:  # which read the prompt too
                self._counts[self._tokens, (channel, self._known(call.model), "input")] += usage.input_tokens

    def attempt(self, channel: str, model: str, outcome: str) -> None:
        """Counts an attempt. `model`: as its upstream names it; `outcome`: `ok`, `left`, or what its failure is."""
        self._counts[self._attempts, (channel, self._known(model), outcome)] += 1

    def refused(self, reason: str) -> None:
        """Counts a call that was refused for overload."""
        self._counts[self._refused, (reason,)] += 1

    def hedged(self, model: str, *, won: bool) -> None:
        """Counts a second channel; `won`: whether it was the first to speak."""
        self._counts[self._hedges, (self._known(model), str(won).lower())] += 1

    def looked_up(self, outcome: str) -> None:
        """Counts a look for a kept answer: `hit`, `miss`, or how else it ended."""
        self._counts[self._cache, (outcome,)] += 1

    def watch(self, level: Level, read: Callable[[], Values]) -> None:
        """From now on `read` says what a level is, when somebody wants to know."""
        known = self._gauges.get(level)
        self._gauges[level] = known or _Gauge(level, self._registry, shared=self._shared)
        self._gauges[level].read = read

    def watch_channels(self, standings: Callable[[], Iterable[Standing]]) -> None:
        """From now on `standings` says how the channels do."""
        self.watch(CHANNEL_STATE, lambda: self._worst({s[:2]: s.state for s in standings()}))
        self.watch(CHANNEL_REST, lambda: self._worst({s[:2]: s.rest for s in standings()}))
        self.watch(CHANNEL_CALLS, lambda: _calls(standings()))

    def start(self) -> None:
        """Keeps the figures fresh for other workers, which answer for this one too, until `close`."""
        if self._shared:
            self._timer = asyncio.get_running_loop().call_later(FRESH_SECONDS, self.start)
            self._refresh()

    def close(self) -> None:
        """Keeps nothing fresh any more; what was counted is told."""
        if self._timer is not None:
            self._timer.cancel()
            self._tell()

    def exposition(self) -> bytes:
        """The figures as text: of all workers where there are several."""
        self._refresh()
        if not self._shared:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)

    def _refresh(self) -> None:
        self._tell()
        for gauge in self._gauges.values():
            gauge.refresh()

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(name, what, labels, registry=self._registry)

    def _tell(self) -> None:
        """Tells the library what was counted since it was last told."""
        rows, self._rows = self._rows, defaultdict(Row)
        counts, self._counts = self._counts, defaultdict(int)
        for (path, channel, model, outcome), row in rows.items():
            method = path.rpartition("/")[2]
            self._calls.labels(method, channel, model, outcome).inc(row.calls)
            self._seconds.labels(method, channel, model).add(row.by_length, row.seconds)
            counts[self._tokens, (channel, model, "input")] += row.input_tokens
            counts[self._tokens, (channel, model, "output")] += row.output_tokens
        for (counter, labels), amount in counts.items():
            counter.labels(*labels).inc(amount)

    def _known(self, model: str) -> str:
        if model not in self._models:
            if len(self._models) >= MOST_MODELS:
                return OTHER_MODELS
            self._models[model] = None
        return model

    def _worst(self, values: Mapping[tuple[str, str], float]) -> Values:
        """The values under the models' labels; of models that share one the highest."""
        worst: dict[tuple[str, ...], float] = {}
        for (channel, model), value in values.items():
            key = channel, self._known(model)
            worst[key] = max(value, worst.get(key, 0.0))
        return worst


class Durations(Histogram):
    """A histogram that takes many at once."""

    def add(self, by_length: Sequence[int], seconds: float) -> None:
        """`by_length`: how many fall into each bucket and into none before it; `seconds`: of all together."""
        self._sum.inc(seconds)
        for bucket, count in zip(self._buckets, by_length, strict=True):
            if count:
                bucket.inc(count)


class _Gauge:
    """A level as the library keeps it."""

    def __init__(self, level: Level, registry: CollectorRegistry, *, shared: bool) -> None:
        self._gauge = Gauge(level.name, level.what, level.labels, registry=registry, multiprocess_mode=level.of_workers)
        self._shared = shared
        self._shown: set[tuple[str, ...]] = set()
        self.read: Callable[[], Values] = dict

    def refresh(self) -> None:
        """Shows what it is now. What is gone is 0 where several workers share their figures: there the library cannot
        take anything away.
        """
        values = self.read()
        for labels in self._shown - values.keys():
            if self._shared:
                self._gauge.labels(*labels).set(0)
            else:
                self._gauge.remove(*labels)
        for labels, value in values.items():
            (self._gauge.labels(*labels) if labels else self._gauge).set(value)
        self._shown = set(values)


def _calls(standings: Iterable[Standing]) -> Values:
    calls: dict[tuple[str, ...], float] = {}
    for standing in standings:
        key = (standing.channel,)
        calls[key] = calls.get(key, 0) + standing.calls
    return calls


def _tasks() -> Values:
    try:
        return {(): len(asyncio.all_tasks())}
    except RuntimeError:  # no loop runs
        return {(): 0}
