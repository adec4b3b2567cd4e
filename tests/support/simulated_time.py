"""Event loop with a simulated clock."""

import asyncio
import selectors


class _SimulatedWaits(selectors.SelectSelector):
    """Selector that waits by moving a clock on, and never for a file."""

    seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "the loop would wait for ever: no task has a timer"
        self.seconds += timeout
        return []


class SimulatedTimeLoop(asyncio.SelectorEventLoop):
    """Event loop of tasks without I/O and threads, whose clock moves on only by their timers."""

    def __init__(self) -> None:
        self._waits = _SimulatedWaits()
        super().__init__(self._waits)

    def time(self) -> float:
        return self._waits.seconds
