"""Counting provider of the proof, which also counts the calls of each key in flight and in each minute."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.ledger.provider import Provider

WINDOW_SECONDS = 55.0
"""Part of the minute of a limit in which the calls of this key are counted. The rest is for the time that a call takes
from its admission to the provider.
"""


@dataclass
class CountingProvider(Provider):
    """Provider without faults of its own, which counts the calls of each key. A hedged call, which it gets twice,
    counts once, until one of its answers ends.
    """

    has_faults: bool = False
    in_flight: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    most_in_flight: Counter[int] = field(default_factory=Counter)
    arrivals: defaultdict[int, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    """Number of a key -> times of its calls, by the monotonic clock."""
    keys: dict[int, int] = field(default_factory=dict)
    """Number of a caller -> number of its key."""

    async def respond(self, writer: asyncio.StreamWriter, call: str, path: str, body: bytes) -> bool:
        key = self.keys[int(call.split("-")[1])]
        if call not in self.sent:
            self.arrivals[key][call] = time.monotonic()
            self.in_flight[key].add(call)
            self.most_in_flight[key] = max(self.most_in_flight[key], len(self.in_flight[key]))
        try:
            return await super().respond(writer, call, path, body)
        finally:
            self.in_flight[key].discard(call)

    def most_in_a_minute(self, key: int) -> int:
        """Return the largest number of calls of a key in any minute, or nearly one."""
        return most_in_window(list(self.arrivals[key].values()), WINDOW_SECONDS)


def most_in_window(times: Sequence[float], seconds: float) -> int:
    """Return the largest number of times, in ascending order, that are within `seconds` of each other."""
    first, most = 0, 0
    for last, moment in enumerate(times):
        while moment - times[first] > seconds:
            first += 1
        most = max(most, last - first + 1)
    return most
