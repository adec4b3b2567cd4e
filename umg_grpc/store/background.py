"""Work that goes on beside the calls, until its owner ends it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from structlog.typing import FilteringBoundLogger

FIRST_PAUSE_SECONDS = 0.2  # after a failure; doubled each time, up to
LONGEST_PAUSE_SECONDS = 5.0

logger: FilteringBoundLogger = structlog.get_logger(__name__)


def reason_of(error: Exception) -> str:
    """What the database said, for the log: without the statement and what callers have in it."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return str(cause).strip() or type(cause).__name__


class Background:
    """Takes a step of some work at each `wake`, and `every` so many seconds, from its making to `aclose`. A step that
    fails is logged and taken again after a pause.
    """

    def __init__(
        self, work: str, step: Callable[[], Awaitable[None]], *, every: float | None = None, at_end: bool = False
    ) -> None:
        """`at_end`: whether a last step is taken when the work is ended."""
        self._work = work
        self._step = step
        self._every = every
        self._at_end = at_end
        self._woken = asyncio.Event()
        self._ending = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=work)

    def wake(self) -> None:
        """Lets the next step be taken now, or when this one is."""
        self._woken.set()

    async def aclose(self, seconds: float) -> None:
        """Lets the work end by itself, for a database connection that is cut off in the middle is not closed as it
        should be. Returns when it has; after so many seconds it is cut off.
        """
        self._ending.set()
        self._woken.set()
        _, late = await asyncio.wait([self._task], timeout=seconds)
        if late:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while not self._ending.is_set():
            await _wait_for(self._woken, self._every)
            self._woken.clear()
            if self._ending.is_set() and not self._at_end:
                return
            pause = FIRST_PAUSE_SECONDS
            while not await self._stepped() and not self._ending.is_set():
                await _wait_for(self._ending, pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _stepped(self) -> bool:
        try:
            await self._step()
        except Exception as error:  # whatever it is, the work is still to be done
            expected = isinstance(error, SQLAlchemyError | OSError)  # the database is away: no traceback says more
            logger.warning(f"{self._work} failed", reason=reason_of(error), exc_info=not expected)
            return False
        return True


async def _wait_for(event: asyncio.Event, seconds: float | None) -> None:
    """Returns when the event is set, at the latest after so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
