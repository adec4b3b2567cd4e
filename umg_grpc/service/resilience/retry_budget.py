"""Retry budget: limits the retries at a channel to a share of its calls."""

import time

MAX_TOKENS = 50.0
"""Maximum number of retries that a budget can save up."""
SECONDS_PER_TOKEN = 10.0
"""Seconds in which a budget gains one retry even without calls, for channels that are rarely called."""
MEND_CREDIT = 20.0
"""Retries that changed requests may take in advance: a model that refuses several members is known only after as many
calls, which later calls do not repeat.
"""


class RetryBudget:
    """Budget for the retries at one channel: each call adds `share` of a retry, so that retries add little load."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._tokens = 1.0 if share else 0.0
        self._updated = time.monotonic()
        self.calls = 0
        """Number of calls to the channel since the last `spend`: each adds a fraction of a retry to the budget."""

    def spend(self, credit: float = 0.0) -> bool:
        """Take one retry. Return False if none is left. `credit`: retries in advance, before calls have earned them."""
        if not self._share:
            return False
        now = time.monotonic()
        gained = self.calls * self._share + (now - self._updated) / SECONDS_PER_TOKEN
        self._tokens = min(MAX_TOKENS, self._tokens + gained)
        self._updated, self.calls = now, 0
        if self._tokens + credit < 1:
            return False
        self._tokens -= 1
        return True
