"""Clients that do not read what they asked for."""

import asyncio


class Stall:
    """Watches a client who has much to read, until `end`: one who reads nothing for a while is cut off, which ends the
    write, and with it the call. One who reads slowly is waited for.
    """

    def __init__(self, transport: asyncio.Transport, seconds: float) -> None:
        """`seconds`: the while."""
        self._transport = transport
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._unread = 0
        self._timer = self._loop.call_later(seconds, self._look)

    def end(self) -> None:
        """Watches no more."""
        self._timer.cancel()

    def _look(self) -> None:
        unread = self._transport.get_write_buffer_size()
        if unread and unread == self._unread:
            self._transport.abort()
            return
        self._unread = unread
        self._timer = self._loop.call_later(self._seconds, self._look)
