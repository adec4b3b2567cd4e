"""Counting provider of the proof, which also counts the calls of each key in flight and in each minute."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.proofs.ledger.provider import Provider

WINDOW_SECONDS = 45.0
"""Part of the minute of a limit in which the calls of its key are counted. The rest is for the time that a call takes
from its admission to the provider, which is seconds while a store is away.
"""
ENDING_SECONDS = 0.05
"""Time by which a call ends at its gateway before the provider has counted its end."""


@dataclass
class CountingProvider(Provider):
    """Provider without faults of its own, which counts the calls of each key. A hedged call, which it gets twice,
    counts once, until one of its responses ends.
    """

    has_faults: bool = False
    begins: defaultdict[int, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    """Number of a key -> times at which its calls arrived, by the monotonic clock."""
    ends: dict[str, float] = field(default_factory=dict)
    keys: dict[int, int] = field(default_factory=dict)
    """Number of a caller -> number of its key."""

    async def respond(self, writer: asyncio.StreamWriter, call: str, path: str, body: bytes) -> bool:
        self.begins[self.keys[int(call.split("-")[1])]].setdefault(call, time.monotonic())
        try:
            return await super().respond(writer, call, path, body)
        finally:
            self.ends.setdefault(call, time.monotonic())

    def most_in_a_minute(self, key: int) -> int:
        """Return the largest number of calls of a key in any minute, or nearly one."""
        return most_in_window(sorted(self.begins[key].values()), WINDOW_SECONDS)

    def most_at_once(self, key: int) -> int:
        """Return the largest number of calls of a key that were in flight at once."""
        spans = [(begin, self.ends.get(call, begin) - ENDING_SECONDS) for call, begin in self.begins[key].items()]
        return most_overlapping(span for span in spans if span[0] < span[1])


def most_in_window(times: Sequence[float], seconds: float) -> int:
    """Return the largest number of times, in ascending order, that are within `seconds` of each other."""
    first, most = 0, 0
    for last, moment in enumerate(times):
        while moment - times[first] > seconds:
            first += 1
        most = max(most, last - first + 1)
    return most


def most_overlapping(spans: Iterable[tuple[float, float]]) -> int:
    """Return the largest number of spans of time that have a moment in common."""
    changes = sorted(change for begin, end in spans for change in ((begin, 1), (end, -1)))
    running, most = 0, 0
    for _, change in changes:
        running += change
        most = max(most, running)
    return most
