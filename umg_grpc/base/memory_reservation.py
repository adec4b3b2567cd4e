"""Record of the bytes of the memory budget that the large responses of one call occupy, until the call ends."""

from contextvars import ContextVar
from typing import Protocol


class MemoryOwner(Protocol):
    """Interface of a memory budget, from the view of a call that occupies bytes of it."""

    def release(self, memory: "CallMemory") -> None:
        """Return the bytes that the call occupies to this budget."""
        ...


class CallMemory:
    """Bytes of a memory budget that one call occupies, from its first large response until `release`."""

    held: int = 0
    owner: MemoryOwner | None = None
    """Budget that granted the bytes; None while there are none."""

    def release(self) -> None:
        """Return the bytes of the call to the budget. The code that writes the response calls this at the end, also
        after a failure.
        """
        if self.owner is not None:
            self.owner.release(self)


MEMORY: ContextVar[CallMemory | None] = ContextVar("memory of the call", default=None)
"""Memory of the current call, set at its start by the HTTP face or, for a call over a socket, by the interceptor; its
tasks inherit it.
"""
