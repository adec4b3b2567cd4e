"""Load: calls at a rate, or as many calls as a number of callers can make, and their outcomes."""

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.proofs.soak.callers import CallResult, Outcome

MakeCall = Callable[[random.Random], Awaitable[CallResult]]
"""Function that makes one call of the load."""
SHOWN = 5


@dataclass
class Tally:
    counts: Counter[Outcome] = field(default_factory=Counter)
    by_question: dict[str, Counter[Outcome]] = field(default_factory=dict)
    seconds: dict[Outcome, list[float]] = field(default_factory=dict)
    shown: dict[Outcome, Counter[str]] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)
    ended: float = 0.0  # when the last call was answered

    def note(self, called: CallResult) -> None:
        outcome = called.outcome
        self.counts[outcome] += 1
        self.by_question.setdefault(called.question.id, Counter())[outcome] += 1
        self.seconds.setdefault(outcome, []).append(called.seconds)
        self.ended = time.perf_counter()
        if outcome is not Outcome.RIGHT:
            shown = self.shown.setdefault(outcome, Counter())
            description = f"{called.question.id}: {called.detail}"
            if description in shown or len(shown) < SHOWN:
                shown[description] += 1

    @property
    def calls(self) -> int:
        return self.counts.total()

    @property
    def seconds_taken(self) -> float:
        """Seconds from the beginning to the last answer."""
        return max(self.ended - self.began, 1e-9)

    @property
    def rate(self) -> float:
        """Right answers per second."""
        return self.counts[Outcome.RIGHT] / self.seconds_taken

    def percentile(self, outcome: Outcome, share: float) -> float:
        """Return the seconds within which this share of the calls of an outcome ended; 0 if there were none."""
        seconds = sorted(self.seconds.get(outcome, ()))
        return seconds[min(len(seconds) - 1, int(share * len(seconds)))] if seconds else 0.0

    def examples(self, outcome: Outcome) -> list[str]:
        """Return descriptions of calls of an outcome, the most frequent first."""
        return [
            f"{count} x {description}" for description, count in self.shown.get(outcome, Counter()).most_common(SHOWN)
        ]


async def closed(make_call: MakeCall, callers: int, seconds: float, seed: int = 0, at_least: int = 0) -> Tally:
    """Make calls with a number of callers, each of which calls again as soon as it has its response.

    It takes longer than the seconds if that many calls were not made in them.
    """
    tally, end = Tally(), time.perf_counter() + seconds

    async def caller(chance: random.Random) -> None:
        while time.perf_counter() < end or tally.calls < at_least:
            tally.note(await make_call(chance))

    async with asyncio.TaskGroup() as group:
        for number in range(callers):
            group.create_task(caller(random.Random(f"{seed} {number}")))
    return tally


async def steady(
    make_call: MakeCall, rate: float, seconds: float, seed: int = 0, *, at_once: float = math.inf
) -> Tally:
    """Make the calls of a rate per second for a time. Return the outcomes of all.

    `at_once`: most calls in flight. Further calls wait for one of them, so that the rate of a slow machine is lower.
    """
    tally, chance, in_flight = Tally(), random.Random(seed), set[asyncio.Task[None]]()
    loop = asyncio.get_running_loop()
    due = began = loop.time()

    async def call() -> None:
        tally.note(await make_call(chance))

    async with asyncio.TaskGroup() as group:
        while due < began + seconds:
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            while len(in_flight) >= at_once:
                await asyncio.wait(in_flight, return_when=asyncio.FIRST_COMPLETED)
            in_flight.add(task := group.create_task(call()))
            task.add_done_callback(in_flight.discard)
            due += chance.expovariate(rate)
    return tally
