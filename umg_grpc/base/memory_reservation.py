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
        """Return the call's bytes to the budget; called after the response was written, also after a failure."""
        if self.owner is not None:
            self.owner.release(self)


CALL_MEMORY: ContextVar[CallMemory | None] = ContextVar("memory of the call", default=None)
"""Memory of the current call, inherited by its tasks; set at its start by the HTTP face or the gRPC interceptor."""
