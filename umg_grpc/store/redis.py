"""The Redis server that replicas share, which may be away: whoever uses it goes on without it."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import structlog
from structlog.typing import FilteringBoundLogger

if TYPE_CHECKING:
    from redis.asyncio import Redis as Client

ANSWER_SECONDS = 0.25  # whoever waits for it could do without
TURN_SECONDS = 1.0
PAUSE_SECONDS = 1.0
CONNECTIONS = 16  # so many are asked at once; the others wait for their turn, or until one of these finds it away

logger: FilteringBoundLogger = structlog.get_logger(__name__)
T = TypeVar("T")


class RedisAway(Exception):  # noqa: N818  # it is no error: the caller has a way without
    """Redis did not answer, or not as it should, or has not since a moment ago."""


class Redis:
    """Asks it, for a bounded time. After a failure it is left alone for a second, and then asked by one call only until
    it answers: were it silent, all would wait for it every second.
    """

    def __init__(
        self, client: "Client", errors: tuple[type[Exception], ...], now: Callable[[], float], seconds: float
    ) -> None:
        """`errors`: what the client raises. `seconds`: for a connection and an answer together."""
        self._client = client
        self._errors = errors
        self._seconds = seconds
        self._turns = asyncio.Semaphore(CONNECTIONS)
        self._now = now
        self._away = False
        self._ask_from = 0.0

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, url: str, now: Callable[[], float] = time.monotonic, seconds: float = ANSWER_SECONDS
    ) -> "AsyncGenerator[Redis, None]":
        """As long as the block lasts. The server is not asked before it is needed, and need not be there."""
        # here: it takes 0.1 s, and few have a Redis
        from redis.asyncio import ConnectionPool, RedisError
        from redis.asyncio import Redis as Client
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        pool = ConnectionPool.from_url(
            url,
            max_connections=CONNECTIONS,
            socket_timeout=seconds,
            socket_connect_timeout=seconds,
            retry=Retry(NoBackoff(), 1),  # a connection that a restart of the server broke
            protocol=2,  # which every version and look-alike speaks
        )
        client = Client.from_pool(pool)
        try:
            yield cls(client, (RedisError, OSError), now, seconds)
        finally:
            await client.aclose()

    async def run(self, step: "Callable[[Client], Awaitable[T]]") -> T:
        """What the step gives back. Raises RedisAway."""
        self._check()
        await self._take_turn()
        try:
            return await self._asked(step)
        finally:
            self._turns.release()

    async def _take_turn(self) -> None:
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self._turns.acquire()
        except TimeoutError:
            raise RedisAway from None

    async def _asked(self, step: "Callable[[Client], Awaitable[T]]") -> T:
        self._check()  # again: those before may have found it away
        if self._away:
            self._ask_from = self._now() + PAUSE_SECONDS
        try:
            async with asyncio.timeout(self._seconds):
                given = await step(self._client)
        except self._errors as error:  # TimeoutError is an OSError
            self._note(str(error) or "no answer")
            raise RedisAway from None
        self._note("")
        return given

    def _check(self) -> None:
        if self._away and self._now() < self._ask_from:
            raise RedisAway

    def _note(self, failure: str) -> None:
        """What came of a call: "" for an answer."""
        if failure:
            self._ask_from = self._now() + PAUSE_SECONDS
            if not self._away:
                logger.warning("Redis is away; each process goes on by itself", reason=failure)
        elif self._away:
            logger.info("Redis is back")
        self._away = bool(failure)
