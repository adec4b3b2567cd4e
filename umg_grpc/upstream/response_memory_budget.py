"""Memory budget for the large provider responses of all calls in this process.

A channel calls `hold` after the headers of a response and before its body, so that TCP leaves unread bytes at the
provider while memory is short. The memory is released at the end of the call by `CallMemory.release`, once the caller
has read the response.
"""

import asyncio
import math
from collections import deque
from typing import NamedTuple

from umg_grpc.base.errors import overloaded
from umg_grpc.base.response_memory_reservation import CALL_MEMORY, CallMemory

FREE_BYTES = 256 << 10
"""Size in bytes up to which a body needs no memory from the budget; nearly all responses are smaller."""
BODY_WEIGHT = 4
"""Bytes of the budget for a byte of a body, which is in memory as body, decoded image, message, encoded response."""
MAX_BYTES = 192 << 20
"""Maximum bytes that all calls may hold together."""


class _Waiting(NamedTuple):
    """Provider's response that waits for memory."""

    granted: asyncio.Future[None]
    memory: CallMemory
    size: int


class ResponseBudget:
    """Limit, in bytes, of the memory of large provider responses in this process. Waiting calls get memory in the order
    of their arrival. The call that has held memory longest never waits, so that calls which hold memory and wait for
    more cannot block each other for ever.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._held = 0
        self._holders = dict[CallMemory, None]()  # in the order of their first grants
        self._waiting = deque[_Waiting]()

    @property
    def held(self) -> int:
        """Number of bytes that all calls have reserved together."""
        return self._held

    @property
    def waiting(self) -> int:
        """Number of responses that wait for memory."""
        return len(self._waiting)

    async def hold(self, body_bytes: int, seconds: float = math.inf) -> None:
        """Reserve memory for `body_bytes` further bytes of a response until the current call ends; wait for it if
        needed. If the length of the body is unknown, this is called for each part. Does nothing for a small body, and
        outside of a call. Raise UmgError(UNAVAILABLE) after `seconds` of waiting; this is no failure of the provider.
        """
        memory = CALL_MEMORY.get()
        if memory is None or body_bytes <= FREE_BYTES:
            return
        size = min(body_bytes * BODY_WEIGHT, self._max_bytes)
        if not self._waiting and self._has_room(size):
            self._grant(memory, size)
            return
        waiting = _Waiting(asyncio.get_running_loop().create_future(), memory, size)
        self._waiting.append(waiting)
        self._grant_waiting()
        try:
            async with asyncio.timeout(seconds if seconds < math.inf else None):
                await waiting.granted
        except TimeoutError:
            raise overloaded("the gateway has as many large responses under way as it takes") from None
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
                self._grant_waiting()

    def release(self, memory: CallMemory) -> None:
        """Release all memory that a call has reserved, at its end."""
        self._held -= memory.held
        memory.held, memory.owner = 0, None
        self._holders.pop(memory, None)
        self._grant_waiting()

    def _has_room(self, size: int) -> bool:
        return self._held + size <= self._max_bytes

    def _grant(self, memory: CallMemory, size: int) -> None:
        self._held += size
        memory.held += size
        memory.owner = self
        self._holders[memory] = None

    def _grant_waiting(self) -> None:
        """Reserve memory while there is room: first for the call that has held memory longest, then by arrival."""
        oldest = next(iter(self._holders), None)
        for waiting in [each for each in self._waiting if each.memory is oldest]:
            self._waiting.remove(waiting)
            self._grant_to(waiting)
        while self._waiting and self._has_room(self._waiting[0].size):
            self._grant_to(self._waiting.popleft())

    def _grant_to(self, waiting: _Waiting) -> None:
        if not waiting.granted.done():  # else its call was cancelled
            self._grant(waiting.memory, waiting.size)
            waiting.granted.set_result(None)
