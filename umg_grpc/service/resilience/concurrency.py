"""So many at once, some more in a queue, and the rest told at once to come again."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from umg_grpc.errors import Failure, UmgError, come_again

REMEMBERED = 8
"""The mean length is known of so many calls at least, else of as many as there are slots."""
MARGIN = 2.0
"""So many times the wait that is to be expected has to fit into what one may wait: slots come free unevenly."""


class Slots:
    """Bounds what is under way. Who waits longest is next; nobody waits who would not be taken in time."""

    def __init__(
        self, most: int, queue: int, wait: float, what: str, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`queue`: most that wait, each at most `wait` seconds. `what` is full, for the message: `the gateway`."""
        self._free = most
        self._queue = queue
        self._wait = wait
        self._what = what
        self._now = now
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self.most = most
        self.bounds = (most, queue, wait)
        # how long slots are taken: seconds of all together until `_seen`, in which so many were given back
        self._taken_seconds = 0.0
        self._given_back = 0
        self._seen = now()

    @property
    def has_room(self) -> bool:
        """Whether one would be taken at once."""
        return self._free > 0

    @property
    def taken(self) -> int:
        """How many are under way."""
        return self.most - self._free

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def refuses(self, seconds: float = float("inf")) -> bool:
        """Whether one that may wait so many seconds would be refused at once."""
        if self._free > 0:
            return False
        within = min(self._wait, seconds)
        return len(self._waiting) >= self._queue or within <= 0 or MARGIN * self.expected_wait > within

    async def take(self, seconds: float = float("inf")) -> None:
        """A slot, within `seconds`; to be given back. Raises UmgError(UNAVAILABLE), of which nothing was sent."""
        if self._free > 0:
            self._pass_time()
            self._free -= 1
            return
        if self.refuses(seconds):
            raise self._full()
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[bool] = loop.create_future()
        self._waiting.append(turn)
        timer = loop.call_later(min(self._wait, seconds), _give_up, turn)
        try:
            granted = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.result():
                self.give_back()
            self._forget(turn)
            raise
        finally:
            timer.cancel()
        if not granted:
            self._forget(turn)
            raise self._full()

    def give_back(self) -> None:
        """The slot goes to whoever waits longest."""
        self._pass_time()
        self._given_back += 1
        if self._given_back >= 2 * max(REMEMBERED, self.most):
            self._given_back //= 2
            self._taken_seconds /= 2
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(True)
                return
        self._free += 1

    def _forget(self, turn: asyncio.Future[bool]) -> None:
        with suppress(ValueError):  # a slot that came free meanwhile passed it by
            self._waiting.remove(turn)

    def _pass_time(self) -> None:
        now = self._now()
        self._taken_seconds += self.taken * (now - self._seen)
        self._seen = now

    @property
    def expected_wait(self) -> float:
        """Seconds until one more that waits would be taken; where nothing is given back any more it grows."""
        self._pass_time()
        length = self._taken_seconds / max(1, self._given_back)
        return length / self.most * (len(self._waiting) + 1)

    def _full(self) -> UmgError:
        return come_again(f"{self._what} has as many calls under way as it takes").of(Failure.NOT_SENT)


def _give_up(turn: asyncio.Future[bool]) -> None:
    if not turn.done():
        turn.set_result(False)
