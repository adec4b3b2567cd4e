"""Availability checks of the database and of Redis every few seconds, for metrics and the readiness check."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.store.redis_client import RedisUnavailable
from umg_grpc.store.repeated_background_tasks import Background

CHECK_SECONDS = 2.0
ANSWER_SECONDS = 5.0
CLOSE_SECONDS = 1.0


class Availability:
    """Periodic check whether the database or Redis answers, for readiness and metrics, from `start` to `aclose`. It
    logs no failures, since the code that uses the database or Redis logs its own.
    """

    def __init__(self, name: str, check: Callable[[], Awaitable[None]]) -> None:
        """Create the check of `name`, for example `the database`. `check`: raises an exception without a response."""
        self.name = name
        self._check = check
        self._away_since: float | None = None
        self._checks: Background | None = None

    @property
    def is_up(self) -> bool:
        """Whether the dependency answered at the last check; true before the first check."""
        return self._away_since is None

    @property
    def problem(self) -> str:
        """Message for operators if the last check failed, else "". It has no address, as `/readyz` is public."""
        if self._away_since is None:
            return ""
        return f"{self.name}: no response for {time.monotonic() - self._away_since:.0f} s"

    def start(self) -> None:
        """Start the periodic checks of the dependency, the first of them now."""
        if self._checks is None:
            self._checks = Background(f"checking {self.name}", self._step, every=CHECK_SECONDS)
            self._checks.wake()

    async def aclose(self) -> None:
        """Stop the periodic checks of the dependency."""
        if self._checks is not None:
            await self._checks.aclose(CLOSE_SECONDS)
            self._checks = None

    async def _step(self) -> None:
        started = time.monotonic()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._check()
        except (SQLAlchemyError, RedisUnavailable, OSError):  # TimeoutError is an OSError
            self._away_since = started if self._away_since is None else self._away_since
        else:
            self._away_since = None
