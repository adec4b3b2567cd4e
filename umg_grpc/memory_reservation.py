"""Memory that the large answers of one call occupy, released once the answer was written to the caller."""

from contextvars import ContextVar
from typing import Protocol


class MemoryOwner(Protocol):
    """Interface of the memory budget that a call holds bytes of."""

    def release(self, memory: "CallMemory") -> None:
        """Free all memory that the call holds in this budget."""
        ...


class CallMemory:
    """Number of bytes that one call holds of a memory budget, from its first large answer until `release`."""

    held: int = 0
    owner: MemoryOwner | None = None
    """Budget that granted the bytes; None while there are none."""

    def release(self) -> None:
        """Free all memory of the call. The writer of the answer calls this at the end of the call, also after a
        failure.
        """
        if self.owner is not None:
            self.owner.release(self)


MEMORY: ContextVar[CallMemory | None] = ContextVar("memory of the call", default=None)
"""Memory of the current call, set at its start by the HTTP face or, for a call over a socket, by the interceptor; its
tasks inherit it.
"""
