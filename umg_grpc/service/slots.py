"""So many at once, some more in a queue, and the rest told at once to come again."""

import asyncio
from collections import deque

from umg_grpc.errors import Failure, UmgError
from umg_grpc.v1 import pb

AGAIN_SECONDS = 1
"""When those should come again that found no room."""


class Slots:
    """Bounds what is under way. Who waits longest is next; nobody waits who would not be taken in time."""

    def __init__(self, most: int, queue: int, wait: float, what: str) -> None:
        """`queue`: most that wait, each at most `wait` seconds. `what` is full, for the message: `the gateway`."""
        self._free = most
        self._queue = queue
        self._wait = wait
        self._what = what
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self.most = most

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

    async def take(self, seconds: float = float("inf")) -> None:
        """A slot, within `seconds`; to be given back. Raises UmgError(UNAVAILABLE), of which nothing was sent."""
        if self._free > 0:
            self._free -= 1
            return
        if len(self._waiting) >= self._queue or seconds <= 0:
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
            raise
        finally:
            timer.cancel()
            if turn in self._waiting:
                self._waiting.remove(turn)
        if not granted:
            raise self._full()

    def give_back(self) -> None:
        """The slot goes to whoever waits longest."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(True)
                return
        self._free += 1

    def _full(self) -> UmgError:
        message = f"{self._what} has as many calls under way as it takes; try again in {AGAIN_SECONDS} s"
        error = UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds=str(AGAIN_SECONDS))
        return error.of(Failure.NOT_SENT)


def _give_up(turn: asyncio.Future[bool]) -> None:
    if not turn.done():
        turn.set_result(False)
