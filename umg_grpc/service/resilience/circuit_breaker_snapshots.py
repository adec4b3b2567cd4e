"""Snapshots of circuit breakers, for the metrics and for operators."""

from enum import IntEnum
from typing import NamedTuple


class CircuitState(IntEnum):
    """State of the circuit breaker of a channel and model."""

    CLOSED = 0
    """Closed: the channel is healthy and gets all calls."""
    OPEN = 1
    """Open: the channel gets no calls except a few at a time that have no other channel."""
    HALF_OPEN = 2
    """Half-open: the open time is over, and the result of the next call decides whether the breaker closes."""


class BreakerState(NamedTuple):
    """Snapshot of the circuit breaker of one channel and model."""

    channel: str
    model: str
    state: CircuitState
    rest: float
    """Seconds until the open time is over; 0 if the breaker is not open."""
    calls: int
    """Number of calls in flight."""
