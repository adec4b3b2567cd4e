"""Event loops of tests: one that fails the test which leaves a connection open, and one with a simulated clock.

Without the first, the garbage collector warns of the connection minutes later, and fails a test that has no part in it.
"""

import asyncio
import selectors


class ClosingLoop(asyncio.SelectorEventLoop):
    """Event loop whose `close` closes the connections that are still open, for libraries that never close theirs."""

    _transports: "dict[int, asyncio.WriteTransport]"  # private: see `StrictLoop`

    def close(self) -> None:
        if not self.is_closed():
            for transport in [*self._transports.values()]:
                transport.abort()
            self.run_until_complete(asyncio.sleep(0))
        super().close()


class StrictLoop(asyncio.SelectorEventLoop):
    """Event loop whose `close` raises `AssertionError` when a transport of it has an open socket."""

    _transports: "dict[int, asyncio.Transport]"  # private, by file descriptor; asyncio has no public list of them

    def close(self) -> None:
        if self.is_closed():
            return
        is_open = [each for each in self._transports.values() if each.get_extra_info("socket").fileno() >= 0]
        peers = [f"{each.get_protocol()!r}, peer {each.get_extra_info('peername')}" for each in is_open]
        super().close()
        assert not is_open, "\n".join(["the test leaves connections open:", *peers])


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
