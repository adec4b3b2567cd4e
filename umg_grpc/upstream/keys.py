"""The keys of a channel: whose turn it is, and which of them rest."""

from collections.abc import Callable

from umg_grpc.errors import Failure, UmgError
from umg_grpc.v1 import pb

FIRST_REST = 60.0
"""Seconds that a key rests which the provider does not take; twice as many each time that it is still so, up to"""
LONGEST_REST = 900.0
LIMITED_REST = 1.0
"""Seconds that a key rests which has used up its share, where the provider does not say for how long."""
LONGEST_LIMITED_REST = 60.0

OF_THE_CHANNEL = frozenset({"301", "302", "303", "304", "307", "308", "404", "407"})
"""Statuses with which no key is told anything: the address, the model or the proxy is wrong."""


class Keys:
    """Hands out the keys in turn, by their numbers, and leaves out those that rest: one that the provider does not
    take, or that has used up its share.
    """

    def __init__(self, count: int, now: Callable[[], float]) -> None:
        self._now = now
        self._turn = 0
        self._until = [0.0] * count  # the end of each key's rest
        self._refusals = [0] * count  # how often in a row each was not taken
        self.all_well = True  # as nearly always: then nobody looks at the clock

    @property
    def resting(self) -> int:
        """How many keys rest."""
        return 0 if self.all_well else sum(until > self._now() for until in self._until)

    def next(self) -> int:
        """The key to use. When all rest, it is the one whose rest is over first."""
        count, key = len(self._until), self._turn
        if not self.all_well:
            now = self._now()
            order = [(self._turn + step) % count for step in range(count)]
            free = (key for key in order if self._until[key] <= now)
            key = next(free, min(order, key=self._until.__getitem__))
        self._turn = (key + 1) % count
        return key

    def works(self, key: int) -> None:
        """A good answer came with the key. Where it rests, and others do not, the call had begun before its rest: that
        says nothing.
        """
        if self.all_well or (self._until[key] > self._now() and self.resting < len(self._until)):
            return
        self._until[key], self._refusals[key] = 0.0, 0
        self.all_well = not any(self._until)

    @property
    def seconds_to_free(self) -> float:
        """Until some key does not rest."""
        return max(0.0, min(self._until) - self._now())

    def failed(self, key: int, error: UmgError) -> bool:
        """Lets the key rest where the error is its own. Gives whether it is so and another key is free."""
        now = self._now()
        if (rest := self._rest(key, error, now)) is None:
            return False
        self._until[key] = max(self._until[key], now + rest)
        self.all_well = False
        return any(until <= now for other, until in enumerate(self._until) if other != key)

    def _rest(self, key: int, error: UmgError, now: float) -> float | None:
        """How long the key shall rest; None where the error says nothing of it."""
        if error.failure is Failure.OVERLOADED and error.reason == pb.ERROR_REASON_UPSTREAM_RATE_LIMITED:
            return min(error.retry_after or LIMITED_REST, LONGEST_LIMITED_REST)
        if error.failure is not Failure.DOWN or error.metadata.get("upstream_status") in OF_THE_CHANNEL:
            return None
        if not self._refusals[key] or self._until[key] <= now:  # else it was asked before this was known
            self._refusals[key] += 1
        return min(FIRST_REST * 2.0 ** (self._refusals[key] - 1), LONGEST_REST)
