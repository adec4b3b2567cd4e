"""Memory of the answers of one call, which is released once the answer was written to the caller."""

from contextvars import ContextVar
from typing import Protocol


class MemoryOwner(Protocol):
    """Budget that granted the memory of a call."""

    def release(self, memory: "CallMemory") -> None:
        """Take back all the memory of the call."""
        ...


class CallMemory:
    """Bytes that a call holds of a budget, from its first large answer until `release`."""

    held: int = 0
    owner: MemoryOwner | None = None
    """Budget that granted the bytes; None while there are none."""

    def release(self) -> None:
        """Give all bytes back. Called by the writer of the answer at the end of the call, however it ends."""
        if self.owner is not None:
            self.owner.release(self)


MEMORY: ContextVar[CallMemory | None] = ContextVar("memory of the call", default=None)
"""Memory of the current call, set at its start by the HTTP face or, for a call over a socket, by the interceptor; its
tasks inherit it.
"""
