"""Limits of the memory that streamed responses take while they are in flight."""

FREE_BYTES = 256 << 10
"""Bytes of each response that are not counted; nearly all responses are smaller."""
MAX_RETAINED_BYTES = 16 << 20
"""Maximum of bytes of one response: three times the longest text that a model writes, or a few images."""
MAX_TOTAL_BYTES = 128 << 20
"""Maximum of bytes of all responses together, beyond the `FREE_BYTES` of each."""


class Budget:
    """Memory limit of the responses in flight: for each of them, and for all together."""

    def __init__(self, per_answer: int = MAX_RETAINED_BYTES, total: int = MAX_TOTAL_BYTES) -> None:
        self.per_answer = per_answer
        self._total = total
        self._reserved = 0

    @property
    def reserved(self) -> int:
        """Bytes that responses in flight have reserved."""
        return self._reserved

    def reserve(self, size: int) -> bool:
        """Reserve `size` more bytes. Return False, and reserve none, if the limit does not allow it."""
        if self._reserved + size > self._total:
            return False
        self._reserved += size
        return True

    def release(self, size: int) -> None:
        """Release `size` bytes that were reserved."""
        self._reserved -= size


class Reservation:
    """Memory that one response has reserved, to be released at its end."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._held = 0

    def hold(self, size: int) -> bool:
        """Reserve memory so that the response may keep `size` bytes in total. Return False if the limit does not allow
        it.
        """
        if size <= FREE_BYTES or size - FREE_BYTES <= self._held:
            return True
        if size > self._budget.per_answer or not self._budget.reserve(size - FREE_BYTES - self._held):
            return False
        self._held = size - FREE_BYTES
        return True

    def release(self) -> None:
        """Release all reserved bytes."""
        if self._held:
            self._budget.release(self._held)
            self._held = 0
