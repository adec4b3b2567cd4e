"""Signals of the operator: stop and reload."""

import asyncio
import os
import signal
from collections.abc import Callable

import structlog

logger = structlog.get_logger()


class Signals:
    """Handler of SIGTERM, SIGINT and SIGHUP, from its creation on, so that they do not kill a starting process.

    A second SIGTERM or SIGINT ends the process at once.
    """

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.reload: Callable[[], None] = lambda: logger.info("there is nothing here to reload")
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)

    def _hang_up(self) -> None:
        self.reload()

    def _stop(self, number: signal.Signals) -> None:
        if self.stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.stop.set()
