"""Limits of the memory that streamed responses take while they are in flight."""

FREE_BYTES = 256 << 10
"""Bytes of each response that are not counted. Nearly all responses are smaller."""
MAX_RETAINED_BYTES = 16 << 20
"""Maximum bytes of one response: three times the longest text that a model writes, or a few images."""
MAX_TOTAL_BYTES = 128 << 20
"""Maximum bytes of all responses together, not counting the first `FREE_BYTES` of each."""


class StreamMemory:
    """Limits of the bytes that responses in flight keep until their end: for each, and for the process (`total`)."""

    def __init__(self, per_response: int = MAX_RETAINED_BYTES, total: int = MAX_TOTAL_BYTES) -> None:
        self.per_response = per_response
        self._total = total
        self._reserved = 0

    @property
    def reserved(self) -> int:
        return self._reserved

    def reserve(self, size: int) -> bool:
        """Reserve `size` more bytes of the total. If the total would be exceeded, return False and reserve none."""
        if self._reserved + size > self._total:
            return False
        self._reserved += size
        return True

    def release(self, size: int) -> None:
        self._reserved -= size


class MemoryReservation:
    """Bytes of memory that one response has reserved in a budget, to be released at the end of the response."""

    def __init__(self, budget: StreamMemory) -> None:
        self._budget = budget
        self._held = 0

    def hold(self, size: int) -> bool:
        """Reserve memory so that the response may keep `size` bytes in total. The first `FREE_BYTES` need no
        reservation. Return False if the limit of the response or of the process is exceeded.
        """
        if size <= FREE_BYTES or size - FREE_BYTES <= self._held:
            return True
        if size > self._budget.per_response or not self._budget.reserve(size - FREE_BYTES - self._held):
            return False
        self._held = size - FREE_BYTES
        return True

    def release(self) -> None:
        if self._held:
            self._budget.release(self._held)
            self._held = 0
