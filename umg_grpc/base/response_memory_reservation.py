"""Bytes of the memory budget that the large responses of one call have reserved until the call ends."""

from contextvars import ContextVar
from typing import Protocol


class MemoryOwner(Protocol):
    """Interface of a memory budget for calls that have reserved bytes of it."""

    def release(self, memory: "CallMemory") -> None:
        """Return the bytes that a call has reserved to this budget."""
        ...


class CallMemory:
    """Bytes of a memory budget that one call has reserved, from its first large response until `release`."""

    held: int = 0
    owner: MemoryOwner | None = None
    """Budget that granted the bytes; None while there are none."""

    def release(self) -> None:
        """Return the call's bytes to the budget, after its response was written or it has failed."""
        if self.owner is not None:
            self.owner.release(self)


CALL_MEMORY: ContextVar[CallMemory | None] = ContextVar("memory of the call", default=None)
"""Memory of the current call, inherited by its tasks; set at its start by the HTTP face or the gRPC interceptor."""
