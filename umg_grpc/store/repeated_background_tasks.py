"""Background tasks: repeated work of the process that runs beside calls until its owner closes it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from umg_grpc.base.lazy_logger import LazyLogger

FIRST_PAUSE_SECONDS = 0.2  # back-off after a first failure, doubled after each further one
LONGEST_PAUSE_SECONDS = 5.0

logger = LazyLogger(__name__)


def reason_of(error: Exception) -> str:
    """Return an error's message for the log, without a database's statement and parameters, which may be private."""
    from sqlalchemy.exc import DBAPIError  # here: commands without a database import this module

    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return str(cause).strip() or type(cause).__name__


class Background:
    """Background task that calls a function at each `wake`, and every `every` seconds, until `aclose`. If the function
    raises an exception, it is called again after a back-off. The end of a database outage ends the back-off, so that
    all background work continues then. Of an outage, only the first failure and the recovery are logged; other failures
    are all logged.
    """

    def __init__(
        self,
        work: str,
        step: Callable[[], Awaitable[None]],
        *,
        every: float | None = None,
        with_steps: bool = False,
        at_end: bool = False,
    ) -> None:
        """Start the task, which calls `step`. `work`: its name in the log. `every`: seconds between calls without
        `wake`, None if there is none. `with_steps`: `every` includes the duration of a step, so that the pause is
        shorter after a long step; otherwise it is the pause. `at_end`: whether `aclose` calls `step` a last time.
        """
        self.every = every
        """Seconds until the next step without a wake; None for no such step. A step may change it."""
        self._with_steps = with_steps
        self._step_seconds = 0.0
        """Duration of the last step."""
        self._work = work
        self._step = step
        self._at_end = at_end
        self._woken = asyncio.Event()
        self._ending = asyncio.Event()
        self._failing_since: float | None = None
        self._returned: asyncio.Event | None = None
        """Event of the return of the database, after a step that failed because it is away."""
        self._task = asyncio.create_task(self._run(), name=work)

    def wake(self) -> None:
        """Call the function as soon as possible; if it runs now, again after this run."""
        self._woken.set()

    async def aclose(self, seconds: float) -> None:
        """Stop the task. Wait up to `seconds` until the current run has ended, then cancel the run, which would not
        close its database connection properly.
        """
        self._ending.set()
        self._woken.set()
        _, late = await asyncio.wait([self._task], timeout=seconds)
        if late:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while not self._ending.is_set():
            await _wait(self._woken, self._pause())
            self._woken.clear()
            if self._ending.is_set():
                break
            pause = FIRST_PAUSE_SECONDS
            while not await self._try_step() and not self._ending.is_set():
                await self._back_off(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        if self._at_end:
            await self._try_step()

    def _pause(self) -> float | None:
        if self.every is None or not self._with_steps:
            return self.every
        return max(0.0, self.every - 2 * self._step_seconds)

    async def _back_off(self, seconds: float) -> None:
        """Wait until `aclose` or the end of a database outage, but at most `seconds`."""
        events = [self._ending] if self._returned is None else [self._ending, self._returned]
        waits = [asyncio.create_task(event.wait()) for event in events]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _try_step(self) -> bool:
        from sqlalchemy.exc import SQLAlchemyError  # here: as above

        from umg_grpc.store.database_outages import DatabaseAwayError

        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            await self._step()
        except (SQLAlchemyError, OSError) as error:  # the database is unavailable: a traceback is useless
            self._returned = error.returned if isinstance(error, DatabaseAwayError) else None
            if self._failing_since is None:
                self._failing_since = time.monotonic()
                logger.warning(f"{self._work} failed; it is repeated until it succeeds", reason=reason_of(error))
            return False
        except Exception as error:  # after any error, the step has to be repeated
            self._returned = None
            logger.warning(f"{self._work} failed", reason=reason_of(error), exc_info=True)
            return False
        self._step_seconds = clock() - began
        if self._failing_since is not None:
            seconds, self._failing_since = time.monotonic() - self._failing_since, None
            logger.info(f"{self._work} succeeds again", seconds=round(seconds, 1))
        return True


async def _wait(event: asyncio.Event, seconds: float | None) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
