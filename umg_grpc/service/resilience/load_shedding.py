"""Load shedding: the process limits its calls in flight, and rejects calls that would wait too long for their start."""

import asyncio
from collections import Counter
from collections.abc import Callable

import structlog

from umg_grpc.config import Overload
from umg_grpc.errors import UmgError, overloaded
from umg_grpc.service.resilience.call_start_queue import StartQueue, WarmUp
from umg_grpc.service.resilience.concurrency_limiter import ConcurrencyLimiter

logger = structlog.get_logger()

OWN_METHODS = "/umg.v1."
READ_PREFIXES = ("Get", "List", "Delete", "Cancel", "Download", "Watch", "Receive")
"""Prefixes of the names of methods that call no model. Like health checks, they are served under any load."""

FULL, BEHIND = "full", "behind"
"""Reasons for a rejection: the `reason` in the metrics, and the `cause` of the error."""
REFUSALS = frozenset({FULL, BEHIND})
"""Causes of errors that are not logged one by one: `LoadShedder` writes one line a second for all."""

LOG_SECONDS = 1.0


class LoadShedder:
    """Load shedder of the process: admits calls, and rejects at once the calls beyond its limits."""

    def __init__(
        self, bounds: Overload, count: Callable[[str], None] | None = None, *, warm_up_seconds: float = 0.0
    ) -> None:
        """Create a load shedder with the limits `bounds`. `count` is called with the reason of each rejection.

        For `warm_up_seconds` from the first call on, no call is rejected because the process is behind with its work.
        """
        self._limiter = ConcurrencyLimiter(bounds.calls, bounds.queue, bounds.wait, "the gateway")
        self.leave: Callable[[], None] = self._limiter.release
        """Releases the slot of a call that ended."""
        self._start_queue = StartQueue(bounds.queue, bounds.lag, warm_up=WarmUp(warm_up_seconds, bounds.calls))
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
        """Longest wait for the start of a call in the last minute, in seconds: `processor` (time of the CPU) and
        `wall`.
        """
        return {("processor",): self._start_queue.lag, ("wall",): self._start_queue.delay}

    def close(self) -> None:
        """Log the number of rejections since the last log line, at the end of the process."""
        if self._logging is not None:
            self._log()

    def admits(self) -> bool:
        """Return whether a call that just arrived may go on, before any work is done for it; it must then soon call
        `enter`. It may not if too many calls wait already.
        """
        if self._limiter.free <= 0 and self._limiter.refuses():
            return False
        return self._start_queue.expect()

    def refusal(self) -> UmgError:
        """Count the rejection of a call for which `admits` returned False, and return its error."""
        return self._rejection(FULL if self._limiter.refuses() else BEHIND)

    def check(self) -> None:
        """Raise UmgError(UNAVAILABLE) if `admits` returns False, and count the rejection."""
        if not self.admits():
            raise self.refusal()

    async def enter(self, seconds: float = float("inf")) -> None:
        """Wait up to `seconds` for a slot for an admitted call, which `leave` must release. Raises
        UmgError(UNAVAILABLE).
        """
        if not self._start_queue.may_start():
            await self._start_queue.wait_turn()
        if self._limiter.try_take():
            return
        try:
            await self._limiter.take(seconds)
        except UmgError:
            raise self._rejection(FULL) from None

    def refused(self, reason: str) -> None:
        """Count a rejected call for the metrics and the log."""
        if self._count is not None:
            self._count(reason)
        self._rejected[reason] += 1
        if self._logging is None:
            self._logging = asyncio.get_running_loop().call_later(LOG_SECONDS, self._log)

    def _rejection(self, reason: str) -> UmgError:
        self.refused(reason)
        why = "has as many calls under way as it takes" if reason == FULL else "is behind with its work"
        error = overloaded(f"the gateway {why}")
        error.cause = reason
        return error

    def _log(self) -> None:
        if self._logging is not None:
            self._logging.cancel()
            self._logging = None
        logger.warning("calls refused", **self._rejected, under_way=self.calls, waiting=self.waiting)
        self._rejected.clear()


def uses_model(method: str) -> bool:
    """Return whether `/package.Service/Method` is subject to load shedding: a `umg.v1` method that uses a model."""
    return method.startswith(OWN_METHODS) and not method.rpartition("/")[2].startswith(READ_PREFIXES)
