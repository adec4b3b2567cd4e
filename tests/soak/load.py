"""Calls at a rate, or as many as so many callers can make, and what came of them."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.soak.callers import Called, Outcome

Ask = Callable[[random.Random], Awaitable[Called]]
"""One call, of those that the load is made of."""
SHOWN = 5


@dataclass
class Tally:
    """What came of many calls."""

    counts: Counter[Outcome] = field(default_factory=Counter)
    by_question: dict[str, Counter[Outcome]] = field(default_factory=dict)
    seconds: dict[Outcome, list[float]] = field(default_factory=dict)
    shown: dict[Outcome, Counter[str]] = field(default_factory=dict)
    unpromising: int = 0  # refusals that do not say when to come again
    began: float = field(default_factory=time.perf_counter)
    ended: float = 0.0  # when the last call was answered

    def note(self, called: Called) -> None:
        """Counts a call."""
        outcome = called.outcome
        self.counts[outcome] += 1
        self.by_question.setdefault(called.question.id, Counter())[outcome] += 1
        self.seconds.setdefault(outcome, []).append(called.seconds)
        self.ended = time.perf_counter()
        if outcome is not Outcome.RIGHT:
            shown = self.shown.setdefault(outcome, Counter())
            what = f"{called.question.id}: {called.what}"
            if what in shown or len(shown) < SHOWN:
                shown[what] += 1

    @property
    def calls(self) -> int:
        return self.counts.total()

    @property
    def seconds_taken(self) -> float:
        """From the beginning to the last answer."""
        return max(self.ended - self.began, 1e-9)

    @property
    def rate(self) -> float:
        """Right answers a second."""
        return self.counts[Outcome.RIGHT] / self.seconds_taken

    def percentile(self, outcome: Outcome, share: float) -> float:
        """Seconds within which this share of the calls of an outcome ended; 0 where there were none."""
        seconds = sorted(self.seconds.get(outcome, ()))
        return seconds[min(len(seconds) - 1, int(share * len(seconds)))] if seconds else 0.0

    def examples(self, outcome: Outcome) -> list[str]:
        """Some of them, the most frequent first."""
        return [f"{count} x {what}" for what, count in self.shown.get(outcome, Counter()).most_common(SHOWN)]


async def closed(ask: Ask, callers: int, seconds: float, seed: int = 0) -> Tally:
    """So many callers, of whom each calls again as soon as it has its answer."""
    tally, end = Tally(), time.perf_counter() + seconds

    async def caller(chance: random.Random) -> None:
        while time.perf_counter() < end:
            tally.note(await ask(chance))

    async with asyncio.TaskGroup() as group:
        for number in range(callers):
            group.create_task(caller(random.Random(f"{seed} {number}")))
    return tally


async def steady(ask: Ask, rate: float, seconds: float, seed: int = 0) -> Tally:
    """So many calls a second, however long the answers take, and all their answers."""
    tally, chance = Tally(), random.Random(seed)
    loop = asyncio.get_running_loop()
    due = began = loop.time()

    async def call() -> None:
        tally.note(await ask(chance))

    async with asyncio.TaskGroup() as group:
        while due < began + seconds:
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            group.create_task(call())
            due += chance.expovariate(rate)
    return tally
