"""Event loop whose time passes at once: waits take no real time, and are exact."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Selector that never waits for a timer: it advances the time to it."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout:
            self.now += timeout
        return ready


class Clockwork(asyncio.SelectorEventLoop):
    """Event loop with a time of its own."""

    def __init__(self) -> None:
        self._moving = _Selector()
        super().__init__(self._moving)

    def time(self) -> float:
        return self._moving.now


def run(work: Coroutine[None, None, T]) -> T:
    """Run a coroutine without real waits. Return its result."""
    with asyncio.Runner(loop_factory=Clockwork) as runner:
        return runner.run(work)
