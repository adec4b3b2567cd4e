"""Shares of limits per minute: the part of a limit that one process may use while Redis is unavailable."""

from collections.abc import Callable
from typing import NamedTuple

from umg_grpc.access.limit_errors import WINDOW_SECONDS


class Remaining(NamedTuple):
    """Part of a limit that all processes together had left at a time (on the clock of this process)."""

    at: float
    amount: int


class Share(NamedTuple):
    """Amount of a limit that this process may use alone from a time on."""

    since: float
    amount: int


def share_alone(limit: int, processes: int, remaining: Remaining | None, now: float) -> Share:
    """Return the share of a limit per minute that one of `processes` may use without Redis at the time `now`. For a
    minute after the last response of Redis it is an equal part of the amount left then, since the others may have used
    the rest; later an equal part of the limit, at least 1. So processes that lost Redis at the same time do not exceed
    the limit, unless it is smaller than their number.
    """
    if remaining is not None and now < remaining.at + WINDOW_SECONDS:
        return Share(remaining.at, remaining.amount // processes)
    return Share(now - WINDOW_SECONDS, max(1, limit // processes))


Processes = Callable[[], int]
"""Function that returns the number of gateway processes which share a Redis."""


def one_process() -> int:
    """Return 1, as the number of processes for limits that no other process shares."""
    return 1
