"""Repetition of calls that failed and that may safely be repeated."""

import random
from dataclasses import dataclass

from grpclib.metadata import Deadline

from umg_client.errors import UmgError

READS = ("Get", "List", "Count", "Watch", "Download")
"""Beginnings of the names of methods that change nothing."""
FIRST_SECONDS = 0.2
MAX_SECONDS = 30.0
"""A longer wait is left to the caller."""


@dataclass
class Retries:
    """Repetitions of one call. `route` is its path, `left` the number of further attempts."""

    route: str
    left: int
    deadline: Deadline | None
    _seconds: float = FIRST_SECONDS

    def wait_seconds(self, error: UmgError) -> float:
        """Return the seconds to wait before the next attempt. Raise the error if no attempt may follow."""
        is_read = self.route.rpartition("/")[2].startswith(READS)
        if self.left <= 0 or not error.retryable or (error.done and not is_read):
            raise error
        jittered = self._seconds * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
        seconds = jittered if error.retry_after is None else error.retry_after
        if seconds > MAX_SECONDS or (self.deadline is not None and seconds >= self.deadline.time_remaining()):
            raise error
        self.left -= 1
        self._seconds *= 2
        return seconds
