"""Signal handlers of the gateway: stop (SIGTERM, SIGINT) and reload (SIGHUP)."""

import asyncio
import os
import signal
from collections.abc import Callable

import structlog

logger = structlog.get_logger()


class Signals:
    """Handler of SIGTERM, SIGINT (stop) and SIGHUP (reload), from its creation on, so that no signal kills a starting
    process. A second stop signal ends the wait in `delay`; while `delay` does not run, it kills the process at once.
    """

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self._delay: asyncio.Event | None = None  # during `delay`
        self.reload: Callable[[], object] = lambda: logger.info("there is nothing here to reload")
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)

    async def delay(self, seconds: float) -> bool:
        """Wait `seconds` after a stop signal. Return whether another stop signal ended the wait early."""
        self._delay = asyncio.Event()
        try:
            async with asyncio.timeout(seconds):
                await self._delay.wait()
        except TimeoutError:
            return False
        finally:
            self._delay = None
        return True

    def _hang_up(self) -> None:
        self.reload()

    def _stop(self, number: signal.Signals) -> None:
        if self._delay is not None:
            self._delay.set()
        elif self.stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.stop.set()
