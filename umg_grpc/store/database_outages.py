"""Outages of the database: calls wait a short time for their end, and one task of the process detects it."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

WAIT_SECONDS = 2.0  # longest wait of a call for the return of the database
PATIENCE_SECONDS = 10.0  # age of an outage from which on no call waits: the database is not just restarting
MAX_WAITING = 4096  # calls that wait at the same time; further ones fail at once
PROBE_SECONDS = 0.05  # time between two probes while calls wait
LATE_PROBE_SECONDS = 0.25  # the same in an outage for which no call waits any more
PROBE_LIMIT_SECONDS = 2.0  # longest time of one probe: a host that is away answers nothing
UNWRITTEN_SECONDS = 10.0
"""Time after an outage in which other processes may still hold rows that they could not write during it."""
# Codes of PostgreSQL for a server that ends or starts, and for a lost connection, also to a server behind a pooler.
LOST_STATES = frozenset({"57P01", "57P02", "57P03"})
LOST_CLASS = "08"


class DatabaseAwayError(SQLAlchemyError):
    """Error for a database that was unavailable for longer than a call waits. `returned`: set when it answers again."""

    def __init__(self, reason: str, returned: asyncio.Event) -> None:
        super().__init__(reason)
        self.returned = returned


class UnconfirmedCommitError(SQLAlchemyError):
    """Error for a connection that was lost during a commit: the changes may be stored or not."""


def is_lost(error: DBAPIError) -> bool:
    """Return whether the error means that the connection, and the transaction with it, was lost."""
    state = str(getattr(error.orig, "sqlstate", None) or "")
    return error.connection_invalidated or state in LOST_STATES or state.startswith(LOST_CLASS)


class Reconnection:
    """State of a process's connections to its database: whether it is away, and the waits for its return. The first
    failure starts one task, which connects to the database until it answers, for all calls that wait.
    """

    def __init__(self, probe: Callable[[], Awaitable[None]], monotonic: Callable[[], float] = time.monotonic) -> None:
        """Create the state of an available database. `probe`: opens a connection; raises SQLAlchemyError or OSError."""
        self._probe = probe
        self._monotonic = monotonic
        self._failure = ""
        self._began_at = monotonic()
        self._away_since: float | None = None
        self._returned_at = float("-inf")
        self._back = asyncio.Event()
        self._waiting = 0
        self._probes: asyncio.Task[None] | None = None

    @property
    def is_away(self) -> bool:
        """Whether the last attempt to connect failed, or a connection was lost since the last success."""
        return self._away_since is not None

    @property
    def may_lack_rows(self) -> bool:
        """Whether rows of finished calls may be missing: the database is or was away until `UNWRITTEN_SECONDS` ago."""
        return self.is_away or self._monotonic() - self._returned_at < UNWRITTEN_SECONDS

    def may_have_been_away(self, seconds: float) -> bool:
        """Return whether the database may have been away in the last `seconds`: it was, or this process was paused."""
        return self.is_away or self._monotonic() - max(self._began_at, self._returned_at) < seconds

    @property
    def returned(self) -> asyncio.Event:
        """Event that is set at the end of each outage, and cleared at its beginning."""
        return self._back

    def mark_away(self, failure: Exception) -> None:
        """Record a failed or lost connection, and probe the database until it answers."""
        cause = failure.orig if isinstance(failure, DBAPIError) and failure.orig is not None else failure
        self._failure = str(cause).strip() or type(cause).__name__
        if self._away_since is None:
            self._away_since = self._monotonic()
            self._back.clear()
            self._probes = asyncio.create_task(self._probe_until_back(), name="probes of the database")

    async def wait(self, end: float) -> None:
        """Wait for the return of the database until the time `end` of the clock. Raise DatabaseAwayError if it does not
        answer by then; in a long outage, or if too many calls wait, raise it at once.
        """
        left = end - self._monotonic()
        since = self._away_since
        if since is None:
            return
        if left <= 0 or self._monotonic() - since >= PATIENCE_SECONDS or self._waiting >= MAX_WAITING:
            raise DatabaseAwayError(self._failure, self._back)
        self._waiting += 1
        try:
            async with asyncio.timeout(left):
                await self._back.wait()
        except TimeoutError:
            raise DatabaseAwayError(self._failure, self._back) from None
        finally:
            self._waiting -= 1

    def end_of_wait(self) -> float:
        """Return the time, on the monotonic clock, until which a call that begins now waits for the database."""
        return self._monotonic() + WAIT_SECONDS

    async def aclose(self) -> None:
        """Stop the probes. Calls that still wait fail at the end of their waiting time."""
        probes, self._probes = self._probes, None
        if probes is not None:
            probes.cancel()
            await asyncio.wait([probes])

    async def _probe_until_back(self) -> None:
        began = self._monotonic()
        while True:
            patient = self._monotonic() - began < PATIENCE_SECONDS
            await asyncio.sleep(PROBE_SECONDS if patient else LATE_PROBE_SECONDS)
            try:
                async with asyncio.timeout(PROBE_LIMIT_SECONDS):
                    await self._probe()
            except (SQLAlchemyError, OSError):  # TimeoutError is an OSError
                continue
            break
        self._returned_at, self._away_since = self._monotonic(), None
        self._back.set()
