"""The Redis server that replicas share, which may be away: whoever uses it goes on without it."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.store.background import Background

if TYPE_CHECKING:
    from redis.asyncio import Redis as Client

ANSWER_SECONDS = 0.25  # whoever waits for it could do without
PAUSE_SECONDS = 1.0
WAITING_BYTES = 8 * 2**20  # of what is to be written; of more the oldest is not
CLOSE_SECONDS = 1.0
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
        """`errors`: what the client raises. `seconds`: for a turn, a connection and an answer together."""
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
        end = asyncio.get_running_loop().time() + self._seconds
        await self._take_turn(end - self._seconds / 2)  # what is left is enough to tell a slow answer from none
        try:
            return await self._asked(step, end)
        finally:
            self._turns.release()

    async def _take_turn(self, end: float) -> None:
        try:
            async with asyncio.timeout_at(end):
                await self._turns.acquire()
        except TimeoutError:
            raise RedisAway from None

    async def _asked(self, step: "Callable[[Client], Awaitable[T]]", end: float) -> T:
        self._check()  # again: those before may have found it away
        if self._away:
            self._ask_from = self._now() + PAUSE_SECONDS
        try:
            async with asyncio.timeout_at(end):
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


class Writes:
    """Writes values to Redis beside the calls, until `aclose`. Nobody waits for them; when it is away they are lost."""

    def __init__(self, redis: Redis, work: str) -> None:
        """`work`: what the log calls it."""
        self._redis = redis
        self._work = work
        self._waiting: OrderedDict[str, tuple[bytes, float]] = OrderedDict()  # the value, and for how long it lives
        self._size = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._writer: Background | None = None
        self._closed = False

    def set(self, key: str, value: bytes, seconds: float) -> None:
        """Lets the value be written soon, in place of an older one, to live for so many seconds."""
        if self._closed:
            return
        self._take(key)
        self._waiting[key] = (value, seconds)
        self._size += len(value)
        while self._size > WAITING_BYTES:
            self._take(next(iter(self._waiting)))
        self._idle.clear()
        if self._writer is None:
            self._writer = Background(self._work, self._write)
        self._writer.wake()

    async def done(self) -> None:
        """Returns when nothing waits any more."""
        await self._idle.wait()

    async def aclose(self) -> None:
        """Writes what waits, for a bounded time."""
        self._closed = True
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.done()
        if self._writer is not None:
            await self._writer.aclose(0)

    async def _write(self) -> None:
        while self._waiting:
            key = next(iter(self._waiting))
            value, seconds = self._waiting[key]
            self._take(key)
            try:
                await self._set(key, value, max(1, int(seconds * 1000)))
            except RedisAway:
                self._waiting.clear()
                self._size = 0
        self._idle.set()

    async def _set(self, key: str, value: bytes, milliseconds: int) -> None:
        await self._redis.run(lambda client: client.set(key, value, px=milliseconds))

    def _take(self, key: str) -> None:
        if (waiting := self._waiting.pop(key, None)) is not None:
            self._size -= len(waiting[0])
