"""Queue of the calls that wait until Redis grants a share of a limit. One command is sent for all of them."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Outcome = TypeVar("Outcome")
Result = TypeVar("Result")


class _Waiter(Generic[Outcome]):
    """Call that waits in the queue: its outcome when Redis has decided, and the time at which it began to wait."""

    __slots__ = ("outcome", "since", "woken")

    def __init__(self, since: float) -> None:
        self.outcome: Outcome | None = None
        self.since = since
        self.woken = asyncio.Event()
        """Set with the outcome, or when the call has to send the next command."""


class LeaseQueue(Generic[Outcome]):
    """Queue of the calls of one API key or model that wait for Redis. The oldest call sends one command for all.
    `Outcome`: decision on a call, for example whether it is admitted.
    """

    __slots__ = ("_waiting", "is_busy")

    def __init__(self) -> None:
        self._waiting: deque[_Waiter[Outcome]] = deque()
        self.is_busy = False
        """Whether a command of the key is being sent: one is sent at a time."""

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(self, decide: Callable[[], Awaitable[None]], give_back: Callable[[Outcome], None]) -> Outcome:
        """Wait until the outcome of a call is set, and return it. `decide`: sends the command for all waiting calls,
        and sets their outcomes by `settle`; `give_back`: returns the share of a call that was cancelled after it was
        granted.
        """
        waiter = _Waiter[Outcome](asyncio.get_running_loop().time())
        self._waiting.append(waiter)
        try:
            while waiter.outcome is None:
                if self.is_busy:
                    await waiter.woken.wait()
                    waiter.woken.clear()
                else:
                    await self.send(decide)
        except BaseException:
            if waiter.outcome is None:
                self._waiting.remove(waiter)
                self._wake_next()
            else:
                give_back(waiter.outcome)
            raise
        return waiter.outcome

    async def send(self, command: Callable[[], Awaitable[Result]]) -> Result:
        """Return the result of a coroutine that sends a command to Redis, one at a time for this queue."""
        self.is_busy = True
        try:
            return await command()
        finally:
            self.is_busy = False
            self._wake_next()

    def settle(self, outcome: Outcome, count: int | None = None) -> int:
        """Set the outcome of the `count` calls that waited longest (None: all). Return the number of these calls."""
        settled = len(self._waiting) if count is None else min(count, len(self._waiting))
        for _ in range(settled):
            waiter = self._waiting.popleft()
            waiter.outcome = outcome
            waiter.woken.set()
        return settled

    def settle_late(self, outcome: Outcome, seconds: float) -> None:
        """Set the outcome of the calls that have waited for at least `seconds`; the other calls wait on."""
        before = asyncio.get_running_loop().time() - seconds
        self.settle(outcome, sum(waiter.since <= before for waiter in self._waiting))

    def _wake_next(self) -> None:
        if self._waiting and not self.is_busy:
            self._waiting[0].woken.set()
