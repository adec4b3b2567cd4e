"""Metrics of the service, for Prometheus."""

import asyncio
import os
import platform
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from umg_grpc.base.errors import UmgError
from umg_grpc.base.micro_credits import MICRO_CREDITS
from umg_grpc.base.printable_text import printable
from umg_grpc.base.provider_failure import ProviderFailure
from umg_grpc.service import metric_counters as totals
from umg_grpc.service.metric_counters import ALL_TOTALS, Total
from umg_grpc.service.metric_gauges import (
    BUILD_INFO,
    CHANNEL_CALLS,
    CHANNEL_PAUSE,
    CHANNEL_STATE,
    RELOAD_SUCCESS,
    RELOAD_TIME,
    TASKS_LEVEL,
    Level,
)
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.pipeline.channel_attempt import Attempt, EncodedRequest
from umg_grpc.service.resilience.circuit_breaker_snapshots import BreakerState

DURATION_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Name of prometheus_client's environment variable for the folder in which several worker processes share metrics;
without it the metrics are those of one process.
"""
REFRESH_SECONDS = 1.0
MAX_MODELS = 1000
OTHER_KEYS = "other"
"""Value of the label `key` for all keys after the first ones, whose number the config limits."""
OTHER_MODELS = "other"
"""Value of the label `model` for models after `MAX_MODELS`: callers choose the names of models of a pattern."""
UNKNOWN_AGENT = "unknown"
AGENT_KINDS = ("input", "read", "written")
"""Values of the label `kind` of the tokens of an agent: of its prompts, read from and written to prompt caches."""

HTTP_STATUSES = range(100, 600)
OTHER_STATUSES = "other"
"""Value of the label `status` for numbers that are no HTTP status."""

Values: TypeAlias = Mapping[tuple[str, ...], float]
"""Values of the labels of a gauge, in order -> value of the gauge."""


@dataclass(slots=True)
class Observations:
    """Durations of events with the same labels, by histogram buckets, not yet added to the Prometheus library."""

    seconds: float = 0.0
    by_duration: list[int] = field(default_factory=lambda: [0] * (len(DURATION_BUCKETS) + 1))
    """Number of durations in each histogram bucket of `DURATION_BUCKETS`; the last item counts the longer ones."""


@dataclass(slots=True)
class CallSeries(Observations):
    """Number and durations of the calls with the same labels, not yet added to the Prometheus library."""

    first_outputs: Observations = field(default_factory=Observations)
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_written_tokens: int = 0
    micro_credits: int = 0


BUILD_VALUES: Values = {(version("unified-model-gateway"), platform.python_version()): 1}


class Metrics:
    """Counters, histograms and gauges of this process. Label values come from the schema and the config; at most
    `MAX_MODELS` models, and `key_labels` keys, have their own values, all others share one (0: metrics have no label
    `key`). Calls are counted in plain integers, which are added to the Prometheus library when the metrics are read or
    shared: each update in the library takes a lock and, with several workers, a write to a file.
    """

    def __init__(self, key_labels: int = 0) -> None:
        self._registry = registry = CollectorRegistry()
        self._shared = SHARED_FOLDER in os.environ
        if not self._shared:  # several workers have no common memory or start time
            ProcessCollector(registry=registry)
        key = ("key",) if key_labels else ()
        self._totals = {row: self._counter(row, *(key if row.has_key else ())) for row in ALL_TOTALS}
        labels = ("method", "channel", "model")
        self._seconds = self._durations("umg_call_seconds", "From request to the end of the response.", *labels)
        self._first_seconds = self._durations("umg_first_output_seconds", "From request to the first output.", *labels)
        self._guard_seconds = self._durations("umg_guard_seconds", "Duration of a check by a guard.", "guard", "phase")
        self._guard_durations = defaultdict[tuple[str, str], Observations](Observations)
        self._rows = defaultdict[tuple[str, str, str, str, str, str], CallSeries](CallSeries)
        self._counts = defaultdict[tuple[Total, tuple[str, ...]], int](int)
        self._models = _Labels(MAX_MODELS, OTHER_MODELS)
        self._key_labels = key_labels
        self._keys = _Labels(key_labels, OTHER_KEYS)
        self._gauges = dict[Level, _Gauge]()
        self._timer: asyncio.TimerHandle | None = None
        self.watch(TASKS_LEVEL, _tasks)
        self.watch(BUILD_INFO, lambda: BUILD_VALUES)
        self.reloaded(success=True)

    def finished(self, call: Call, outcome: str, seconds: float) -> None:
        """Count a call that has ended, and its duration in seconds. `outcome`: `OK` or the name of its error's reason.
        The label `model` is "" for a call that was not routed.
        """
        facts, model, key = call.facts, self._models[call.facts.model], ""
        if self._key_labels and call.known_caller is not None:
            key = self._keys[call.known_caller.key_id]
        row = self._rows[call.arrival.method, facts.channel, model, outcome, key, call.agent]
        row.seconds += seconds
        row.by_duration[bisect_left(DURATION_BUCKETS, seconds)] += 1
        row.micro_credits += call.charges.micro_credits
        if facts.first_output_seconds is not None:
            row.first_outputs.seconds += facts.first_output_seconds
            row.first_outputs.by_duration[bisect_left(DURATION_BUCKETS, facts.first_output_seconds)] += 1
        if (usage := facts.usage) is not None and not facts.is_cached:
            row.input_tokens += usage.input_tokens
            row.output_tokens += usage.output_tokens
            row.cache_read_tokens += usage.cache_read_tokens
            row.cache_written_tokens += usage.cache_write_tokens + usage.long_cache_write_tokens
            for channel in facts.abandoned:  # these channels have read the prompt too
                labels = (channel, model, "input", *self._key(key))
                self._counts[totals.USED_TOKENS, labels] += usage.input_tokens

    def attempt_ended(
        self, _call: Call, attempt: Attempt[EncodedRequest], outcome: str, error: UmgError | None
    ) -> None:
        """Count an attempt that has ended, by channel and the provider's model id. If its provider failed, count the
        failure too. `outcome`: `ok`, `left` (cancelled), `refused`, or the kind of the failure.
        """
        self._counts[totals.FINISHED_ATTEMPTS, (attempt.channel, self._models[attempt.target.model], outcome)] += 1
        if error is not None and error.failure is not None and error.facts is not None:
            self.failure(attempt.channel, error.facts)

    def failure(self, channel: str, facts: ProviderFailure) -> None:
        """Count a provider's failure by channel, model, kind and HTTP status (`none` without a response)."""
        status = "none" if not facts.status else str(facts.status) if facts.status in HTTP_STATUSES else OTHER_STATUSES
        labels = (channel, self._models[facts.model], facts.kind.value, status)
        self._counts[totals.CHANNEL_FAILURES, labels] += 1

    def refused(self, reason: str) -> None:
        """Count a call that the overloaded process rejected, by `full`, `behind`, `memory` or `connections`."""
        self._counts[totals.REFUSED_CALLS, (reason,)] += 1

    def mended(self, channel: str, model: str, member: str) -> None:
        """Count a request that a provider refused for a member, and accepted with the member left out or adapted."""
        self._counts[totals.MENDED_REFUSALS, (channel, self._models[model], member)] += 1

    def hedged(self, model: str, won: bool) -> None:
        """Count a hedge: a second attempt beside a slow one. `won`: its response was faster."""
        self._counts[totals.HEDGED_CALLS, (self._models[model], str(won).lower())] += 1

    def fell_back(self, model: str, fallback: str, cause: str) -> None:
        """Count a call that continues with the model `fallback`. `cause`: of the failure of `model`, a config key."""
        self._counts[totals.FALLBACK_CALLS, (self._models[model], self._models[fallback], cause)] += 1

    def count_guard(self, guard: str, phase: str, decision: str, seconds: float) -> None:
        """Count a check by a guard, and its duration. `phase`: `request` or `response`."""
        self._counts[totals.GUARD_CHECKS, (guard, phase, decision)] += 1
        observed = self._guard_durations[guard, phase]
        observed.seconds += seconds
        observed.by_duration[bisect_left(DURATION_BUCKETS, seconds)] += 1

    def count_cache_lookup(self, outcome: str) -> None:
        """Count a look-up in the response cache. `outcome`: `hit`, `miss` or `bypass`."""
        self._counts[totals.CACHE_LOOKUPS, (outcome,)] += 1

    def count_blob_bytes(self, direction: str, size: int) -> None:
        """Count bytes of result files. `direction`: `stored` or `served`."""
        self._counts[totals.BLOB_BYTES, (direction,)] += size

    def count_credential_read(self, channel: str, outcome: str) -> None:
        """Count a read of a cloud's credentials for a channel. `outcome`: `refreshed` or `failed`."""
        self._counts[totals.CREDENTIAL_READS, (channel, outcome)] += 1

    def count_egress(self, outcome: str) -> None:
        """Count a request to a URL of a caller. `outcome`: `fetched`, `refused` by the rules, or `failed`."""
        self._counts[totals.EGRESS_REQUESTS, (outcome,)] += 1

    def count_lost_records(self, count: int, reason: str) -> None:
        """Count lost usage records. `reason`: `full` if the journal has no space, `disk` if writes to it fail."""
        self._counts[totals.LOST_RECORDS, (reason,)] += count

    def count_records_deleted_early(self, count: int) -> None:
        """Count usage records that were deleted before `usage.ttl`, since all records exceeded `usage.max_bytes`."""
        self._counts[totals.DELETED_EARLY, ()] += count

    def count_cost(self, channel: str, model: str, key_id: str, micro_credits: int) -> None:
        """Add the cost of a video task that has ended. `key_id`: key that submitted it."""
        key = self._key(self._keys[key_id])
        self._totals[totals.CALL_COST].labels(channel, self._models[model], *key).inc(micro_credits / MICRO_CREDITS)

    def count_storage(self, call: Call) -> None:
        """Add the tokens and cost of the gateway's own call that stores the beginning of a prompt at a provider."""
        facts, usage, owner = call.facts, call.facts.usage, call.known_caller
        if usage is None or owner is None:
            return
        labels, key = (facts.channel, self._models[facts.model]), self._key(self._keys[owner.key_id])
        written = usage.cache_write_tokens + usage.long_cache_write_tokens
        self._counts[totals.USED_TOKENS, (*labels, "input", *key)] += usage.input_tokens
        self._counts[totals.PROMPT_CACHE, (*labels, "written", *key)] += written
        _count_agent(self._counts, call.agent, (usage.input_tokens, usage.cache_read_tokens, written))
        self.count_cost(facts.channel, facts.model, owner.key_id, call.charges.micro_credits)

    def counter(self, name: str, help_text: str, *labels: str) -> Callable[..., None]:
        """Create a counter. Return a function that takes the values of its labels, and adds 1 or its argument `by`."""
        row = Total(name, help_text, labels)
        self._totals[row] = self._counter(row)

        def count(*values: str, by: int = 1) -> None:
            self._counts[row, values] += by

        return count

    def reloaded(self, *, success: bool) -> None:
        """Record that a config was loaded, at the start or later; `success`: whether it is used."""
        moment = time.time()
        self.watch(RELOAD_SUCCESS, lambda: {(): float(success)})
        self.watch(RELOAD_TIME, lambda: {(): moment})

    def watch(self, level: Level, read: Callable[[], Values]) -> None:
        """Register the gauge `level`. `read`: called when the metrics are read; returns label values -> value."""
        known = self._gauges.get(level)
        self._gauges[level] = known or _Gauge(level, self._registry, shared=self._shared)
        self._gauges[level].read = read
        if self._shared:  # another worker may read the gauge before its first refresh
            self._gauges[level].refresh()

    def watch_channels(
        self, snapshot: Callable[[], Iterable[BreakerState]], is_disabled: Callable[[str], bool] = lambda _: False
    ) -> None:
        """Register the gauges of circuit breakers. `snapshot`: returns their states, when the metrics are read;
        `is_disabled`: returns whether a channel is disabled, whose breaker has no state: without calls it stays open.
        """

        def enabled() -> Iterator[BreakerState]:
            return (each for each in snapshot() if not is_disabled(each.channel))

        self.watch(CHANNEL_STATE, lambda: self._max_by_label({s[:2]: s.state for s in enabled()}))
        self.watch(CHANNEL_PAUSE, lambda: self._max_by_label({s[:2]: s.rest for s in enabled()}))
        self.watch(CHANNEL_CALLS, lambda: _calls(snapshot()))

    def start(self) -> None:
        """Update the shared metrics every second until `close`, since any worker of the machine may be read."""
        if self._shared:
            self._timer = asyncio.get_running_loop().call_later(REFRESH_SECONDS, self.start)
            self._refresh()

    def close(self) -> None:
        """Stop the periodic updates, and add the counts since the last update to the Prometheus library."""
        if self._timer is not None:
            self._timer.cancel()
            self._flush()

    def exposition(self) -> bytes:
        """Return the metrics in the text format of Prometheus; with several workers, the sums over all workers."""
        self._refresh()
        if not self._shared:
            return _printable(generate_latest(self._registry))
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return _printable(generate_latest(together))

    def _refresh(self) -> None:
        self._flush()
        for gauge in self._gauges.values():
            gauge.refresh()

    def _counter(self, row: Total, *key: str) -> Counter:
        return Counter(row.name, row.help_text, (*row.labels, *key), registry=self._registry)

    def _durations(self, name: str, help_text: str, *labels: str) -> "Durations":
        return Durations(name, help_text, labels, registry=self._registry, buckets=DURATION_BUCKETS)

    def _flush(self) -> None:
        """Add the counts since the last flush to the Prometheus library."""
        rows, self._rows = self._rows, defaultdict(CallSeries)
        counts, self._counts = self._counts, defaultdict(int)
        for (path, channel, model, outcome, label, agent), row in rows.items():
            method, key = path.rpartition("/")[2], self._key(label)
            self._totals[totals.FINISHED_CALLS].labels(method, channel, model, outcome, *key).inc(sum(row.by_duration))
            self._seconds.labels(method, channel, model).add(row)
            if any(row.first_outputs.by_duration):
                self._first_seconds.labels(method, channel, model).add(row.first_outputs)
            counts[totals.USED_TOKENS, (channel, model, "input", *key)] += row.input_tokens
            counts[totals.USED_TOKENS, (channel, model, "output", *key)] += row.output_tokens
            if row.input_tokens:
                _count_agent(counts, agent, (row.input_tokens, row.cache_read_tokens, row.cache_written_tokens))
                counts[totals.PROMPT_CACHE, (channel, model, "read", *key)] += row.cache_read_tokens
                counts[totals.PROMPT_CACHE, (channel, model, "written", *key)] += row.cache_written_tokens
            self._totals[totals.CALL_COST].labels(channel, model, *key).inc(row.micro_credits / MICRO_CREDITS)
        for checked, observed in self._guard_durations.items():
            self._guard_seconds.labels(*checked).add(observed)
        self._guard_durations.clear()
        for (total, labels), amount in counts.items():
            counter = self._totals[total]
            (counter.labels(*labels) if labels else counter).inc(amount)

    def _key(self, label: str) -> tuple[str, ...]:
        return (label,) if self._key_labels else ()

    def _max_by_label(self, values: Mapping[tuple[str, str], float]) -> Values:
        highest: dict[tuple[str, ...], float] = {}
        for (channel, model), value in values.items():
            key = channel, self._models[model]
            highest[key] = max(value, highest.get(key, 0.0))
        return highest


class _Labels(dict[str, str]):
    """Label values of names: the first `limit` names are their own values, all later names share the value `other`."""

    def __init__(self, limit: int, other: str) -> None:
        super().__init__()
        self._limit = limit
        self._other = other

    def __missing__(self, name: str) -> str:
        if len(self) >= self._limit:
            return self._other
        return self.setdefault(name, name)


class Durations(Histogram):
    """Prometheus histogram to which many durations can be added in one update."""

    def add(self, observations: Observations) -> None:
        """Add the durations in `observations` in one update."""
        self._sum.inc(observations.seconds)
        for bucket, count in zip(self._buckets, observations.by_duration, strict=True):
            if count:
                bucket.inc(count)


class _Gauge:
    """Gauge of the Prometheus library, with a function that returns its current values."""

    def __init__(self, level: Level, registry: CollectorRegistry, *, shared: bool) -> None:
        self._gauge = Gauge(
            level.name, level.help_text, level.labels, registry=registry, multiprocess_mode=level.of_workers
        )
        self._shared = shared
        self._shown: set[tuple[str, ...]] = set()
        self.read: Callable[[], Values] = dict

    def refresh(self) -> None:
        """Set the gauge to its current values, and remove label values that have disappeared. With several workers they
        are set to 0, since the library cannot remove them there.
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


def _calls(snapshot: Iterable[BreakerState]) -> Values:
    calls: dict[tuple[str, ...], float] = {}
    for standing in snapshot:
        key = (standing.channel,)
        calls[key] = calls.get(key, 0) + standing.calls
    return calls


def _tasks() -> Values:
    try:
        return {(): len(asyncio.all_tasks())}
    except RuntimeError:  # no event loop is running
        return {(): 0}


def _count_agent(
    counts: defaultdict[tuple[Total, tuple[str, ...]], int], agent: str, tokens: tuple[int, int, int]
) -> None:
    """Add the tokens of an agent's prompts, by `AGENT_KINDS`."""
    if tokens[0]:
        for kind, amount in zip(AGENT_KINDS, tokens, strict=True):
            counts[totals.AGENT_TOKENS, (agent or UNKNOWN_AGENT, kind)] += amount


def _printable(exposition: bytes) -> bytes:
    text = exposition.decode()
    if text.replace("\n", "").isprintable():
        return exposition
    return "".join(each if each.isprintable() or each == "\n" else f"\\{printable(each)}" for each in text).encode()
