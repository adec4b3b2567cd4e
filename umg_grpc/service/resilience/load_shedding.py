"""Load shedding: the process rejects calls that could not start soon, and calls for which it has no memory."""

import asyncio
import math
from collections import Counter
from collections.abc import Callable

import structlog

from umg_grpc.base.errors import UmgError, overloaded
from umg_grpc.config import Overload
from umg_grpc.service.resilience.call_start_queue import ALWAYS_STARTED, StartQueue, WarmUp
from umg_grpc.service.resilience.concurrency_limiter import ConcurrencyLimiter
from umg_grpc.service.resilience.memory_watch import MemoryWatch

logger = structlog.get_logger()

OWN_METHODS = "/umg.v1."
READ_PREFIXES = ("Get", "List", "Delete", "Cancel", "Download", "Watch", "Receive")
"""Prefixes of the names of methods that call no model. These methods and health checks are served under any load."""

FULL_CAUSE, BEHIND_CAUSE, MEMORY_CAUSE = "full", "behind", "memory"
"""Reasons for a rejection: too many calls are in flight, the process is behind with the start of calls, or it uses too
much memory. They are the `reason` in the metrics and the `cause` of the error.
"""
CAUSE_EXPLANATIONS = {
    FULL_CAUSE: "has as many calls under way as it takes",
    BEHIND_CAUSE: "is behind with its work",
    MEMORY_CAUSE: "has no memory for another call",
}
REFUSAL_CAUSES = frozenset(CAUSE_EXPLANATIONS)
"""Causes of rejections, which are not logged one by one: `LoadShedder` writes one line a second for all."""

LOG_SECONDS = 1.0
UNLIMITED_CALLS = 1 << 40
"""Limit of calls in flight where the config has none: a stream that waits for its provider costs memory alone."""
WARM_UP_WAITING = 4096
"""Most calls that may wait during the warm-up, where the config does not limit the calls in flight."""


class LoadShedder:
    """Limit on the calls of the process. It admits calls, and rejects calls beyond its limits at once."""

    def __init__(
        self,
        bounds: Overload,
        count: Callable[[str], None] | None = None,
        *,
        warm_up_seconds: float = 0.0,
        memory: MemoryWatch | None = None,
    ) -> None:
        """Create a load shedder. `count`: called with the reason of each rejection. `warm_up_seconds`: period from the
        first call on in which long waits reject no calls. `memory`: watch of the memory in use.
        """
        self.memory = memory or MemoryWatch(math.inf)
        self._limiter = ConcurrencyLimiter(bounds.calls or UNLIMITED_CALLS, bounds.queue, bounds.wait, "the gateway")
        self.leave: Callable[[], None] = self._limiter.release
        """Releases the slot of a call that ended."""
        warm_up = WarmUp(warm_up_seconds, bounds.calls or WARM_UP_WAITING)
        self._start_queue = StartQueue(bounds.queue, bounds.lag, warm_up=warm_up)
        self._count = count
        self._rejected = Counter[str]()  # by reason, since the last line of the log
        self._logging: asyncio.TimerHandle | None = None

    @property
    def calls(self) -> int:
        """Number of calls in flight."""
        return self._limiter.taken

    @property
    def waiting(self) -> int:
        """Number of waiting calls."""
        return self._limiter.waiting + self._start_queue.waiting

    @property
    def lags(self) -> dict[tuple[str, ...], float]:
        """Longest wait for a call's start in the last minute, in seconds, by clock: `processor` (CPU time), `wall`."""
        return {("processor",): self._start_queue.lag, ("wall",): self._start_queue.delay}

    def close(self) -> None:
        """Log the number of rejections since the last log line. Called at the end of the process."""
        if self._logging is not None:
            self._log()

    def admits(self) -> bool:
        """Return whether a call that has just arrived is admitted, before any work is done for it. An admitted call
        must soon call `enter`; a rejected one gets the error of `refusal`.
        """
        if self._limiter.free <= 0 and self._limiter.refuses():
            return False
        if self.memory.is_exceeded and self._limiter.taken >= ALWAYS_STARTED:
            return False
        return self._start_queue.expect()

    def admits_pages(self) -> bool:
        """Return whether a page of the console may be drawn: not while calls wait for a slot or for memory, nor while
        as many wait for their start as always may. Calls are rejected later than that.
        """
        return not (self._limiter.free <= 0 or self.memory.is_exceeded or self._start_queue.waiting >= ALWAYS_STARTED)

    def refusal(self) -> UmgError:
        """Count a call that `admits` rejected, and return the error for its caller."""
        if self._limiter.refuses():
            return self._rejection(FULL_CAUSE)
        is_short = self.memory.is_exceeded and self._limiter.taken >= ALWAYS_STARTED
        return self._rejection(MEMORY_CAUSE if is_short else BEHIND_CAUSE)

    def check(self) -> None:
        """Admit a call that has just arrived, or raise UmgError(UNAVAILABLE) and count the rejection."""
        if not self.admits():
            raise self.refusal()

    async def enter(self, seconds: float = float("inf")) -> None:
        """Wait for the start of an admitted call, up to `seconds`, and take a slot, which `leave` must release. Raise
        UmgError(UNAVAILABLE) if the call gets none in time.
        """
        if not self._start_queue.may_start():
            await self._start_queue.wait_turn()
        if self._limiter.try_take():
            return
        try:
            await self._limiter.take(seconds)
        except UmgError:
            raise self._rejection(FULL_CAUSE) from None

    def refused(self, reason: str) -> None:
        """Count a rejected call for metrics and log: `FULL_CAUSE`, `BEHIND_CAUSE`, `MEMORY_CAUSE` or `connections`."""
        if self._count is not None:
            self._count(reason)
        self._rejected[reason] += 1
        if self._logging is None:
            self._logging = asyncio.get_running_loop().call_later(LOG_SECONDS, self._log)

    def _rejection(self, reason: str) -> UmgError:
        self.refused(reason)
        error = overloaded(f"the gateway {CAUSE_EXPLANATIONS[reason]}")
        error.cause = reason
        return error

    def _log(self) -> None:
        if self._logging is not None:
            self._logging.cancel()
            self._logging = None
        logger.warning("calls refused", **self._rejected, under_way=self.calls, waiting=self.waiting)
        self._rejected.clear()


def uses_model(method: str) -> bool:
    """Return whether load shedding applies to a method (`/package.Service/Method`), since it calls a model."""
    return method.startswith(OWN_METHODS) and not method.rpartition("/")[2].startswith(READ_PREFIXES)
