"""Write timeout: disconnects clients that do not read their responses."""

import asyncio


class WriteTimeout:
    """Timeout while a connection's write buffer is full, until `end`. A client that reads nothing for this time is
    disconnected, which cancels the call; a client that reads slowly is not.
    """

    def __init__(self, transport: asyncio.Transport, seconds: float) -> None:
        """Start the timeout, which disconnects the client after `seconds` in which it reads nothing."""
        self._transport = transport
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._unread = 0
        self._timer = self._loop.call_later(seconds, self._check)

    def end(self) -> None:
        """Stop the timeout."""
        self._timer.cancel()

    def _check(self) -> None:
        unread = self._transport.get_write_buffer_size()
        if unread and unread == self._unread:
            self._transport.abort()
            return
        self._unread = unread
        self._timer = self._loop.call_later(self._seconds, self._check)
