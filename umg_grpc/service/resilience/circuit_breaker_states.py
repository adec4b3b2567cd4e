"""Snapshots of circuit breakers, for the metrics and the administration."""

from enum import IntEnum
from typing import NamedTuple


class State(IntEnum):
    """State of the circuit breaker of a channel and model."""

    CLOSED = 0
    """Closed: the channel is healthy and gets all calls."""
    OPEN = 1
    """Open: the channel gets no calls, except a few at a time without another channel (`MAX_PROBES`)."""
    HALF_OPEN = 2
    """Half-open: the open time is over, and the result of the next call decides."""


class BreakerState(NamedTuple):
    """Snapshot of one circuit breaker, for operators and metrics."""

    channel: str
    model: str
    state: State
    rest: float
    """Seconds until the open time is over."""
    calls: int
    """Calls in flight."""
