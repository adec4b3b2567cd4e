"""Limit of the work that is done in one iteration of the event loop, so that many streams do not delay other calls."""

import asyncio
from collections import deque

ROUND_BYTES = 32 << 10
"""Maximum bytes of streams that are translated in one iteration: one or two milliseconds of work."""


class RoundBudget:
    """Limiter of the bytes that one iteration of the event loop processes. Waiting tasks continue in the order of
    arrival. Without it, two hundred streams with data to translate would delay every other call until all are done.
    """

    def __init__(self, max_bytes: int = ROUND_BYTES) -> None:
        """Create a limiter of `max_bytes` in one iteration. A larger amount is processed in an iteration alone."""
        self._max_bytes = max_bytes
        self._left = max_bytes
        self._waiting = deque[tuple[asyncio.Future[None], int]]()
        self._in_rounds = False  # whether the next iteration is scheduled

    async def take(self, size: int) -> None:
        """Wait until `size` bytes may be processed in the current iteration of the event loop, and count them."""
        if not self._in_rounds:
            self._in_rounds = True
            asyncio.get_running_loop().call_soon(self._next_round)
        if not self._waiting and (size <= self._left or self._left == self._max_bytes):
            self._left -= size
            return
        granted = asyncio.get_running_loop().create_future()
        self._waiting.append((granted, size))
        await granted

    def _next_round(self) -> None:
        waiting, left = self._waiting, self._max_bytes
        while waiting and (waiting[0][0].done() or waiting[0][1] <= left or left == self._max_bytes):
            granted, size = waiting.popleft()
            if not granted.done():  # otherwise its task was cancelled
                granted.set_result(None)
                left -= size
        self._left = left
        self._in_rounds = left < self._max_bytes
        if self._in_rounds:
            asyncio.get_running_loop().call_soon(self._next_round)
