"""Log lines of events that occur in many calls at the same time, for example that a database does not answer."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from umg_grpc.base.lazy_logger import LazyLogger

LINE_SECONDS = 1.0
CallLater = Callable[[float, Callable[[], None]], object]


def _call_later(seconds: float, function: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(seconds, function)


class RepeatedLines:
    """Logger of at most one line of an event in `LINE_SECONDS`, with the number of events since the line before."""

    def __init__(self, name: str, call_later: CallLater = _call_later) -> None:
        """Create the logger of a module. `call_later`: calls a function after a number of seconds."""
        self._logger = LazyLogger(name)
        self._call_later = call_later
        self._waiting: dict[str, tuple[int, Mapping[str, object]]] = {}
        """Event whose last line was just logged -> number of the events since then, and fields of the newest one."""

    def warning(self, event: str, **fields: object) -> None:
        """Log an event that an operator should notice. If the event was logged just before, only count it."""
        if (found := self._waiting.get(event)) is not None:
            self._waiting[event] = found[0] + 1, fields
            return
        self._logger.warning(event, **fields)
        self._wait(event)

    def _wait(self, event: str) -> None:
        self._waiting[event] = 0, {}
        self._call_later(LINE_SECONDS, partial(self._log_repetitions, event))

    def _log_repetitions(self, event: str) -> None:
        count, fields = self._waiting.pop(event)
        if count:
            self._logger.warning(event, **fields, repeated=count)
            self._wait(event)
