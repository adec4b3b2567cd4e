"""How much the process takes on: so many calls at once, and none while it is behind with its work."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import structlog

from umg_grpc.config import Overload
from umg_grpc.errors import UmgError, come_again
from umg_grpc.inprocess import Context, Interceptor, Stream, Unary
from umg_grpc.service.call import current
from umg_grpc.service.slots import Slots

logger = structlog.get_logger()

OWN = "/umg.v1."
LOOKS_UP = ("Get", "List", "Delete", "Cancel")
"""How the methods begin that ask no model: as health, they are answered whatever the load."""

FULL, BEHIND = "full", "behind"
"""Why a call is refused: the `reason` in the metrics, and the `cause` of the error."""
REFUSALS = frozenset({FULL, BEHIND})
"""Causes of errors that get no line in the log each: the gate writes one a second for all."""

PATIENCE = 3
"""So many times the bound of its lateness the process may be late on end before its calls are counted out."""
PROMPT_SECONDS = 0.002
"""How late it may be while they are: who is refused waits so long, and who is served some times as long."""
GUARD_SECONDS, FEW = 5.0, 0.1
"""Calls are counted out until it was never later than its bound for so long, and refused no more than so many of them:
some come together by chance at a load that it can well do.
"""
SHORTEST_TICK_SECONDS = 0.002
MORE, LESS, MOST_LESS = 0.03, 0.05, 0.5
"""Share by which more calls are taken on after a tick in time, and fewer after a late one: for each `PROMPT_SECONDS` of
its lateness, and the most. They balance where a quarter of the ticks is twice as late.
"""
CREDIT_SECONDS = 0.005
"""Calls are taken on for so much time at once at most: they are all done before the next one is read."""
FIRST_RATE, LEAST_RATE, MOST_RATE = 500.0, 50.0, 10_000.0
"""Calls a second: when they begin to be counted out, at least (one between two ticks is always taken on), and at most:
no process does more, and of those who come back together after a quiet while not all are to be taken on.
"""
SPARE = 1
"""Calls that are taken on between two ticks though the rate does not allow it, if none is under way."""
LOG_SECONDS = 1.0


class Pace:
    """How many calls the process takes on between two ticks of a timer: any number while it keeps up with its work.

    Where it does not, they are counted out: so many a second, a few more after each tick that is in time and fewer
    after each that is late. Knows no clock.
    """

    def __init__(self, bound: float) -> None:
        """`bound`: seconds of lateness that are well."""
        self._bound = bound
        self._late_since: float | None = None
        self._ticked = float("-inf")
        self.is_guarded = False
        """Whether calls are counted out."""
        # while they are
        self._guarded_until = 0.0
        self._asked = self._refused = 0  # calls, since it was last decided for how long
        self._rate = FIRST_RATE
        self._left = 0.0  # calls, until the next tick
        self._spare = 0  # so many more, if none is under way

    def tick(self, now: float, late: float) -> None:
        """Takes how many seconds late the timer fired."""
        if self.is_guarded:
            self._count_out(now, late)
        elif late <= self._bound:
            self._late_since = None
        elif self._late_since is None:
            self._late_since = now
        elif now - self._late_since >= PATIENCE * self._bound:
            self.is_guarded, self._late_since, self._rate, self._left = True, None, FIRST_RATE, 0.0
            self._count_out(now, late)
        self._ticked = now

    def _count_out(self, now: float, late: float) -> None:
        if late > PROMPT_SECONDS:
            self._rate = max(LEAST_RATE, self._rate * (1 - min(LESS * late / PROMPT_SECONDS, MOST_LESS)))
        else:
            self._rate = min(MOST_RATE, self._rate * (1 + MORE))
        self._left = max(1.0, min(self._left, 1.0) + self._rate * min(now - self._ticked, CREDIT_SECONDS))
        self._spare = SPARE
        if late > self._bound:
            self._guard(now)
        elif now >= self._guarded_until:
            self.is_guarded = self._refused > FEW * self._asked
            self._guard(now)

    def _guard(self, now: float) -> None:
        self._guarded_until = now + GUARD_SECONDS
        self._asked = self._refused = 0

    def take(self, *, is_idle: bool) -> bool:
        """Whether one more call is taken on. `is_idle`: none is under way."""
        if not self.is_guarded:
            return True
        self._asked += 1
        if self._left >= 1:
            self._left -= 1
            return True
        if is_idle and self._spare > 0:
            self._spare -= 1
            return True
        self._refused += 1
        return False


class Gate:
    """Lets calls in, and tells those at once to come again for which there is no room."""

    def __init__(self, bounds: Overload, count: Callable[[str], None] | None = None) -> None:
        """`count` is told the reason of each refusal."""
        self._slots = Slots(bounds.calls, bounds.queue, bounds.wait, "the gateway")
        self._pace = Pace(bounds.lag)
        self._tick = min(0.01, max(SHORTEST_TICK_SECONDS, bounds.lag / 4))
        self._count = count
        self._refused = Counter[str]()  # since the log was last told
        self._logged_at = float("-inf")
        self._timer: asyncio.TimerHandle | None = None

    @property
    def calls(self) -> int:
        """How many are under way."""
        return self._slots.taken

    @property
    def waiting(self) -> int:
        """How many wait."""
        return self._slots.waiting

    def start(self) -> None:
        """Begins to measure how late the process is, until `close`."""
        loop = asyncio.get_running_loop()

        def look(due: float) -> None:
            now = time.monotonic()
            self._pace.tick(now, now - due)
            if self._refused and now - self._logged_at >= LOG_SECONDS:
                self._log(now)
            tick = SHORTEST_TICK_SECONDS if self._pace.is_guarded else self._tick
            self._timer = loop.call_later(tick, look, now + tick)

        look(time.monotonic())

    def close(self) -> None:
        """Measures no more."""
        if self._timer is not None:
            self._timer.cancel()

    @property
    def is_tight(self) -> bool:
        """Whether `check` may refuse."""
        return self._pace.is_guarded or not self._slots.has_room

    def check(self) -> None:
        """Takes a call on, before anything is done for it. Raises UmgError(UNAVAILABLE) where it would have to wait for
        work that the process is behind with, or where too many wait already.
        """
        if self._slots.refuses():
            raise self._refusal(FULL)
        if not self._pace.take(is_idle=self.calls == 0):
            raise self._refusal(BEHIND)

    async def enter(self, seconds: float = float("inf")) -> None:
        """Lets a call in that was checked, within `seconds`; it is to `leave`. Raises UmgError(UNAVAILABLE)."""
        try:
            await self._slots.take(seconds)
        except UmgError:
            raise self._refusal(FULL) from None

    def leave(self) -> None:
        """Ends a call that was let in."""
        self._slots.give_back()

    def refused(self, reason: str) -> None:
        """Counts a call that was refused, for the metrics and the log."""
        if self._count is not None:
            self._count(reason)
        self._refused[reason] += 1

    def _refusal(self, reason: str) -> UmgError:
        self.refused(reason)
        why = "has as many calls under way as it takes" if reason == FULL else "is behind with its work"
        error = come_again(f"the gateway {why}")
        error.cause = reason
        return error

    def _log(self, now: float) -> None:
        logger.warning("calls refused", **self._refused, under_way=self.calls, waiting=self.waiting)
        self._refused.clear()
        self._logged_at = now


class Gating(Interceptor):
    """Asks the gate for each call. For those that come without a socket our own face asked, before it read them: the
    channel to these leaves this out.
    """

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate

    def wrap_unary(self, method: str, inner: Unary) -> Unary:
        if not asks_a_model(method):
            return inner

        async def gated(request: object, context: Context) -> object:
            self._gate.check()
            await self._gate.enter(current().seconds_left())
            try:
                return await inner(request, context)
            finally:
                self._gate.leave()

        return gated

    def wrap_stream(self, method: str, inner: Stream) -> Stream:
        if not asks_a_model(method):
            return inner

        async def gated(request: object, context: Context) -> AsyncGenerator[Any, None]:
            self._gate.check()
            await self._gate.enter(current().seconds_left())
            try:
                async with aclosing(inner(request, context)) as messages:
                    async for message in messages:
                        yield message
            finally:
                self._gate.leave()

        return gated


def asks_a_model(method: str) -> bool:
    """Whether `/package.Service/Method` is one that the gate bounds: of ours, save those that look something up."""
    return method.startswith(OWN) and not method.rpartition("/")[2].startswith(LOOKS_UP)
