"""Clients that do not read what they asked for."""

import asyncio
from types import TracebackType


class reading:  # noqa: N801  # reads as `asyncio.timeout` does
    """Context of writing to a client, who is cut off when nothing was read for a while: it ends the write, and with it
    the call. One who reads slowly is waited for.
    """

    def __init__(self, transport: asyncio.Transport, seconds: float) -> None:
        """`seconds`: the while."""
        self._transport = transport
        self._seconds = seconds
        self._unread = 0
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        unread = self._transport.get_write_buffer_size()
        if unread and unread == self._unread:
            self._transport.abort()
            return
        self._unread = unread
        self.__enter__()
