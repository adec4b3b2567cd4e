"""Circuit breakers: if a channel fails for a model, it gets no calls for the open time, then one test call."""

import random
import time
from collections.abc import Callable, Collection

import structlog

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.provider_failure import FailureKind
from umg_grpc.config import Breaker
from umg_grpc.service.resilience.circuit_breaker_snapshots import BreakerState, CircuitState
from umg_grpc.v1 import pb

logger = structlog.get_logger()

MAX_PROBES = 8
"""Maximum number of test calls in flight at a channel whose circuit breaker is not closed."""
MIN_CALLS = 20
"""Number of calls in the time window below which the share of failures does not open the breaker."""
DOWN_SECONDS, LONGEST_DOWN_SECONDS = 60.0, 900.0
"""First and longest open time, in seconds, after failures that only the operator can repair (`Failure.DOWN`)."""
OVERLOADED_SECONDS, LONGEST_OVERLOADED_SECONDS = 1.0, 60.0
"""Open time, in seconds, of an overloaded channel without `Retry-After`, and the longest one with that header."""
OPEN_TIME_JITTER = 0.2
"""Maximum random fraction by which an open time is longer, so that several gateways do not test at the same moment."""
MAX_DOUBLINGS = 32
"""Maximum number of doublings of the open time, within the range of a float."""
WINDOW_PARTS = 10
"""Number of parts of the sliding time window of counted results, which moves by one part at a time."""
MAX_BREAKERS = 4096
"""Most circuit breakers (pairs of channel and model): callers choose the names of models that match a pattern."""

QUOTA_REASONS = frozenset({pb.ERROR_REASON_UPSTREAM_UNPAID, pb.ERROR_REASON_UPSTREAM_QUOTA_EXHAUSTED})
INCONCLUSIVE_FAILURES = frozenset({None, Failure.OTHER_KEY})
"""Failures that show neither that the channel works nor that it does not."""
CANCELLED_CALL = UmgError(pb.ERROR_REASON_UNSPECIFIED, "the call was cancelled")
"""Result that is recorded for a cancelled call: an error that is no failure of the channel."""
ANSWERED_FAILURES = frozenset({Failure.CALLER, Failure.CONTEXT, Failure.TOO_LARGE, Failure.MODEL})
"""Failures caused by the request or the model, which count as successes of the channel: it works, since it answers."""


def has_no_quota(error: UmgError) -> bool:
    """Return whether the error shows that the provider's account has no credit or quota left. Providers report the end
    of a daily or monthly quota as a rate limit, but waiting does not help.
    """
    if error.facts is not None and error.facts.kind is FailureKind.UNPAID:
        return True
    is_limit = error.reason == pb.ERROR_REASON_UPSTREAM_RATE_LIMITED
    return error.reason in QUOTA_REASONS or (is_limit and error.failure is Failure.DOWN)


class _Circuit:
    """Circuit breaker of one channel and model: closed while `until`, the end of the open time, is 0."""

    __slots__ = (
        "calls",
        "consecutive_failures",
        "faults",
        "generation",
        "in_flight",
        "is_unpaid",
        "part",
        "part_end",
        "probe_first",
        "probes",
        "times_opened",
        "until",
    )

    def __init__(self, generation: int) -> None:
        self.generation = generation
        """Number from 1 that changes when the breaker closes or opens: results of calls begun earlier are ignored."""
        self.in_flight = 0
        self.until = 0.0
        self.probe_first = False  # whether the breaker becomes half-open after the open time, and admits one call first
        self.probes = 0  # calls in flight that began while the breaker was not closed
        self.is_unpaid = False  # whether it opened because the provider's account has no credit or quota
        self.times_opened = 0  # times the breaker opened since the last success
        self.consecutive_failures = 0
        self.part = 0  # number of the window's current part, and its end
        self.part_end = 0.0
        self.calls = [0] * WINDOW_PARTS
        self.faults = [0] * WINDOW_PARTS


class CircuitBreakers:
    """Circuit breakers of all pairs of a channel and a provider's model id. `begin` returns a generation, which is
    passed to `end` or `cancelled`, so that the results of calls that began before the breaker opened are ignored. Not
    thread-safe; a successful call costs less than a microsecond.
    """

    def __init__(
        self, breaker: Breaker, now: Callable[[], float] = time.monotonic, chance: Callable[[], float] = random.random
    ) -> None:
        self._now = now
        self._chance = chance
        self._circuits: dict[tuple[str, str], _Circuit] = {}
        self.take(breaker)
        self._generations = 0

    def take(self, breaker: Breaker) -> None:
        """Use the settings `breaker` from now on. The breakers keep their states."""
        self._breaker = breaker
        self._part_seconds = breaker.window / WINDOW_PARTS
        for circuit in self._circuits.values():
            circuit.part_end = 0.0

    def is_healthy(self, channel: str, model: str) -> bool:
        """Return whether a call may select the channel: its breaker is closed, or a test call may begin now."""
        circuit = self._circuits.get((channel, model))
        if circuit is None or not circuit.until:
            return True
        return self._now() >= circuit.until and (circuit.probes == 0 or not circuit.probe_first)

    def seconds_to_probe(self, channel: str, model: str) -> float:
        """Return the seconds until the breaker admits a test call; 0 if the breaker is not open."""
        circuit = self._circuits.get((channel, model))
        return 0.0 if circuit is None or not circuit.until else max(0.0, circuit.until - self._now())

    def is_unpaid(self, channel: str, model: str) -> bool:
        """Return whether the breaker is open because the provider's account has no credit or quota left."""
        circuit = self._circuits.get((channel, model))
        return circuit is not None and circuit.until > 0 and circuit.is_unpaid

    def begin(self, channel: str, model: str, *, is_last: bool = True) -> int:
        """Record the start of a call. Return 0 if the breaker rejects the call, else a generation, with which `end` or
        `cancelled` must be called. `is_last`: no other channel is left, so that an open breaker may be passed.
        """
        circuit = self._circuits.get((channel, model)) or self._new_circuit(channel, model)
        if circuit.until:
            is_over = self._now() >= circuit.until
            is_healthy = is_over and (circuit.probes == 0 or not circuit.probe_first)
            if not is_healthy and (not is_last or circuit.probes >= MAX_PROBES):
                return 0
            if circuit.probe_first or not is_over:
                circuit.probes += 1
            else:
                self._new_generation(circuit)
                circuit.until = 0.0
        circuit.in_flight += 1
        return circuit.generation

    def end(self, channel: str, model: str, error: UmgError | None, generation: int) -> None:
        """Record the result of a call (`error`: None for a success). `generation`: number that `begin` returned."""
        circuit = self._circuits.get((channel, model))
        if circuit is None:
            return
        if circuit.in_flight:  # otherwise the call began before `forget` dropped the breaker
            circuit.in_flight -= 1
        if generation != circuit.generation:
            return
        if error is None or (failure := error.failure) in ANSWERED_FAILURES:
            if circuit.until:
                self._close(circuit)
                logger.info("circuit breaker closed", channel=channel, upstream_model=model)
            else:
                circuit.consecutive_failures = 0
                if (now := self._now()) >= circuit.part_end:
                    self._move_window(circuit, now)
                circuit.calls[circuit.part % WINDOW_PARTS] += 1
        elif failure in INCONCLUSIVE_FAILURES or (
            failure is Failure.NOT_SENT and error.reason == pb.ERROR_REASON_UNAVAILABLE
        ):
            self._end_probe(circuit)  # nothing was sent: our concurrency limit was reached, or the deadline passed
        elif failure is Failure.OVERLOADED:
            self._record_overload(circuit, error.retry_after)
        elif failure is Failure.DOWN:
            self._record_down(circuit, channel, model, error)
        else:
            self._record_failure(circuit, channel, model, error)

    def cancelled(self, channel: str, model: str, generation: int) -> None:
        """Record that a call was cancelled, which shows nothing about the channel. `generation`: from `begin`."""
        self.end(channel, model, CANCELLED_CALL, generation)

    def succeeded(self, channel: str, model: str) -> None:
        """Record a success of a channel outside of calls, which closes the breaker of the model ("" for none). The open
        time of the channel's other breakers ends: the next call of each is a test call.
        """
        now = self._now()
        for (name, _), circuit in self._circuits.items():
            if name == channel and circuit.until > now:
                circuit.until = now
        if model and (generation := self.begin(channel, model)):
            self.end(channel, model, None, generation)

    def forget(self, known: Collection[tuple[str, str]]) -> None:
        """Drop the breakers of all pairs of channel and model that are not in `known`. A pair whose model contains `*`
        keeps the breakers of all models of its channel.
        """
        whole = {channel for channel, model in known if "*" in model}
        self._circuits = {key: circuit for key, circuit in self._circuits.items() if key in known or key[0] in whole}

    def snapshot(self) -> list[BreakerState]:
        """Return a snapshot of every breaker, in no particular order."""
        now = self._now()
        return [
            BreakerState(channel, model, _state(circuit, now), max(0.0, circuit.until - now), circuit.in_flight)
            for (channel, model), circuit in self._circuits.items()
        ]

    def _record_failure(self, circuit: _Circuit, channel: str, model: str, error: UmgError) -> None:
        breaker = self._breaker
        if circuit.until:
            self._end_probe(circuit)
            failing = circuit.probe_first and self._now() >= circuit.until
        else:
            circuit.consecutive_failures += 1
            if (now := self._now()) >= circuit.part_end:
                self._move_window(circuit, now)
            circuit.calls[circuit.part % WINDOW_PARTS] += 1
            circuit.faults[circuit.part % WINDOW_PARTS] += 1
            calls = sum(circuit.calls)
            many = calls >= MIN_CALLS and sum(circuit.faults) >= breaker.share * calls
            failing = many or circuit.consecutive_failures >= breaker.failures
        if failing:
            seconds = self._open(circuit, breaker.rest, breaker.max_rest)
            _log_open(channel, model, seconds, error)

    def _record_down(self, circuit: _Circuit, channel: str, model: str, error: UmgError) -> None:
        if circuit.until:
            self._end_probe(circuit)
            if circuit.probe_first and self._now() < circuit.until:
                return
        seconds = self._open(circuit, DOWN_SECONDS, LONGEST_DOWN_SECONDS)
        circuit.is_unpaid = has_no_quota(error)
        _log_open(channel, model, seconds, error)

    def _record_overload(self, circuit: _Circuit, retry_after: float | None) -> None:
        """Open the breaker after an overload of the provider. If it was closed before, it closes at the end of the open
        time without a test call, since an overload is no fault of the channel.
        """
        seconds = min(retry_after or OVERLOADED_SECONDS, LONGEST_OVERLOADED_SECONDS)
        if circuit.until:
            self._end_probe(circuit)
        else:
            self._new_generation(circuit)
        circuit.until = max(circuit.until, self._now() + seconds)

    def _open(self, circuit: _Circuit, first: float, longest: float) -> float:
        """Open the breaker. Return the seconds: `first`, doubled by each opening since a success, at most `longest`."""
        seconds = min(first * 2.0 ** min(circuit.times_opened, MAX_DOUBLINGS), longest) * (
            1 + OPEN_TIME_JITTER * self._chance()
        )
        self._new_generation(circuit)
        circuit.until, circuit.is_unpaid = self._now() + seconds, False
        circuit.probe_first = True
        circuit.times_opened += 1
        return round(seconds, 1)

    def _new_generation(self, circuit: _Circuit) -> None:
        self._generations += 1
        circuit.generation = self._generations
        circuit.probes = 0

    def _close(self, circuit: _Circuit) -> None:
        self._new_generation(circuit)
        circuit.until, circuit.probe_first, circuit.times_opened, circuit.consecutive_failures = 0.0, False, 0, 0
        circuit.calls, circuit.faults = [0] * WINDOW_PARTS, [0] * WINDOW_PARTS

    def _end_probe(self, circuit: _Circuit) -> None:
        if circuit.probes:
            circuit.probes -= 1

    def _move_window(self, circuit: _Circuit, now: float) -> None:
        part = int(now / self._part_seconds)
        for passed in range(max(circuit.part, part - WINDOW_PARTS) + 1, part + 1):
            circuit.calls[passed % WINDOW_PARTS] = circuit.faults[passed % WINDOW_PARTS] = 0
        circuit.part, circuit.part_end = part, (part + 1) * self._part_seconds

    def _new_circuit(self, channel: str, model: str) -> _Circuit:
        circuits = self._circuits
        if len(circuits) >= MAX_BREAKERS:
            idle = [key for key, circuit in circuits.items() if not circuit.until and not circuit.in_flight]
            for key in idle or list(circuits):
                del circuits[key]
        self._generations += 1
        circuit = circuits[channel, model] = _Circuit(self._generations)
        return circuit


def _log_open(channel: str, model: str, seconds: float, error: UmgError) -> None:
    """Write the log line of a circuit breaker that opened for `seconds`."""
    logger.warning(
        "circuit breaker opened",
        channel=channel,
        upstream_model=model,
        seconds=seconds,
        failure=error.failure.value if error.failure else None,
        kind=error.facts.kind.value if error.facts else None,
    )


def _state(circuit: _Circuit, now: float) -> CircuitState:
    if not circuit.until or (now >= circuit.until and not circuit.probe_first):
        return CircuitState.CLOSED
    return CircuitState.OPEN if now < circuit.until else CircuitState.HALF_OPEN
