"""Selection of a channel's API keys, in turn or by affinity. Keys that the provider rejects are skipped for a time."""

from collections.abc import Callable, Sequence

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb

FIRST_SUSPENSION_SECONDS = 60.0
"""Seconds for which a rejected key is suspended; each further rejection doubles them, up to MAX_SUSPENSION_SECONDS."""
MAX_SUSPENSION_SECONDS = 900.0
RATE_LIMIT_SUSPENSION_SECONDS = 1.0
"""Seconds for which a rate-limited key is suspended if the provider does not state the time."""
MAX_RATE_LIMIT_SUSPENSION_SECONDS = 60.0

OF_THE_CHANNEL = frozenset({"301", "302", "303", "304", "307", "308", "404", "407"})
"""HTTP statuses of failures that do not concern the key, but the address, the model or the proxy."""


class KeyRotation:
    """Rotation of a channel's API keys, which have numbers from 0. A key that the provider rejects or that has
    reached its rate limit is suspended, that is, skipped for some time.
    """

    def __init__(self, count: int, now: Callable[[], float]) -> None:
        """Create the rotation of `count` keys, none of them suspended. `now`: returns monotonic seconds."""
        self._now = now
        self._turn = 0
        self._until = [0.0] * count  # the end of each key's suspension
        self._refusals = [0] * count  # consecutive rejections of each key
        self.none_suspended = True  # no key is suspended, the usual case, which needs no look at the clock

    @property
    def suspended(self) -> int:
        """Number of suspended keys."""
        return 0 if self.none_suspended else sum(until > self._now() for until in self._until)

    def next(self) -> int:
        """Return the number of the next key that is not suspended, or of the one whose suspension ends first."""
        count, key = len(self._until), self._turn
        if count == 1:
            return 0
        if not self.none_suspended:
            now = self._now()
            order = [(self._turn + step) % count for step in range(count)]
            free = (key for key in order if self._until[key] <= now)
            key = next(free, min(order, key=self._until.__getitem__))
        self._turn = (key + 1) % count
        return key

    def nearest(self, distances: Sequence[float]) -> int:
        """Return the number of the key with the smallest distance among the keys that are not suspended. If all are
        suspended, return the one whose suspension ends first. `next` continues as if this were not called. `distances`:
        one for each key.
        """
        if self.none_suspended:
            return distances.index(min(distances))
        now = self._now()
        free = [key for key, until in enumerate(self._until) if until <= now]
        if not free:
            return self._until.index(min(self._until))
        return min(free, key=distances.__getitem__)

    def record_success(self, key: int) -> None:
        """Record that a call with a key succeeded, which ends the key's suspension. It does not end while other keys
        are usable: then the call began before the suspension.
        """
        if self.none_suspended or (self._until[key] > self._now() and self.suspended < len(self._until)):
            return
        self._until[key], self._refusals[key] = 0.0, 0
        self.none_suspended = not any(self._until)

    @property
    def seconds_to_free(self) -> float:
        """Seconds until the first suspension ends; 0 while a key is usable."""
        return max(0.0, min(self._until) - self._now())

    def record_failure(self, key: int, error: UmgError) -> bool:
        """Suspend a key if the error of a call concerns the key. Return whether it does, and another key is usable."""
        now = self._now()
        if (seconds := self._suspension_seconds(key, error, now)) is None:
            return False
        self._until[key] = max(self._until[key], now + seconds)
        self.none_suspended = False
        return any(until <= now for other, until in enumerate(self._until) if other != key)

    def _suspension_seconds(self, key: int, error: UmgError, now: float) -> float | None:
        """Return the seconds for which an error suspends the call's key; None if it does not concern the key."""
        if error.failure is Failure.OVERLOADED and error.reason == pb.ERROR_REASON_UPSTREAM_RATE_LIMITED:
            return min(error.retry_after or RATE_LIMIT_SUSPENSION_SECONDS, MAX_RATE_LIMIT_SUSPENSION_SECONDS)
        if error.failure is not Failure.DOWN or error.metadata.get("upstream_status") in OF_THE_CHANNEL:
            return None
        if error.reason == pb.ERROR_REASON_UPSTREAM_UNREACHABLE:  # a proxy refused the gateway
            return None
        if not self._refusals[key] or self._until[key] <= now:  # otherwise the call began before the key was suspended
            self._refusals[key] += 1
        return min(FIRST_SUSPENSION_SECONDS * 2.0 ** (self._refusals[key] - 1), MAX_SUSPENSION_SECONDS)
