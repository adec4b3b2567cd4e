"""Redis client with time limit and circuit breaker, for state that replicas share. Without Redis, each has its own."""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.store.repeated_background_tasks import Background

if TYPE_CHECKING:
    from redis.asyncio import Redis as Client
    from redis.asyncio.connection import AbstractConnection

ANSWER_SECONDS = 2.0
"""Time limit of a command. A limit that is counted without Redis for one late response admits too many calls."""
HASTY_SECONDS = 0.25
"""Time limit of a command whose caller has no need of a response."""
EPOCH_KEY = "umg:epoch"
"""Key of a random value that is written once. Another value shows that Redis has lost its data."""
REBUILD_SECONDS = 3.0
"""Time after the loss of the data in which each process sends its own counts, and limits are not counted by
Redis. Longer than `PAUSE_SECONDS` and the time between two commands of each process (`PRESENCE_SECONDS`) together.
"""
PAUSE_SECONDS = 1.0
IDLE_SECONDS = 2.0  # time without a response after which `check` sends a command of its own
WAITING_BYTES = 8 * 2**20  # maximum size of pending writes; beyond it the oldest are dropped
CLOSE_SECONDS = 1.0
MAX_CONNECTIONS = 16  # maximum number of commands in flight; others wait for a slot, or until one of these fails

logger: FilteringBoundLogger = structlog.get_logger(__name__)
Result = TypeVar("Result")


class RedisUnavailable(Exception):  # noqa: N818  # no error: the caller works without Redis
    """Error for a command to Redis that failed, came late, or was not sent because a recent one failed."""


class Redis:
    """Redis client with a time limit for each command and a circuit breaker. After a failure no command is sent for a
    second; then one command at a time is sent until Redis answers. Otherwise every call would wait for a Redis server
    that does not answer.
    """

    def __init__(
        self, client: "Client", errors: tuple[type[Exception], ...], now: Callable[[], float], seconds: float
    ) -> None:
        """Wrap a client of the redis library. `errors`: exceptions that it raises. `seconds`: for a command in all."""
        self._client = client
        self._errors = errors
        self._seconds = seconds
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._now = now
        self._away = False
        self._retry_from = 0.0
        self._answered_at = -IDLE_SECONDS
        self._hasty_from = 0.0  # time from which hasty commands are sent
        self._epoch = b""
        self._counts_from = 0.0  # time from which the counts of limits are complete
        self.on_data_lost: list[Callable[[], None]] = []
        """Functions that are called when Redis has lost its data, to write what this process knows of it."""

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, url: str, now: Callable[[], float] = time.monotonic, seconds: float = ANSWER_SECONDS
    ) -> "AsyncGenerator[Redis, None]":
        """Open a client of the Redis server at `url` for the duration of the block. `seconds`: time limit of a command.
        The client connects at once. If the first command had to connect, it could exceed the time limit, and its call
        would only be counted in this process.
        """
        # Imported here, since the import takes 0.1 s and few operators use Redis.
        from redis.asyncio import ConnectionPool, RedisError
        from redis.asyncio import Redis as Client
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        pool = ConnectionPool.from_url(
            url,
            max_connections=MAX_CONNECTIONS,
            socket_timeout=seconds,
            socket_connect_timeout=seconds,
            retry=Retry(NoBackoff(), 1),  # for connections broken by a restart of the server
            protocol=2,  # supported by every version and compatible server
        )
        client = Client.from_pool(pool)
        redis = cls(client, (RedisError, OSError), now, seconds)

        async def connected(connection: "AbstractConnection") -> None:
            await connection.on_connect()
            epoch: bytes | None = await _call(connection, "GET", EPOCH_KEY)
            if epoch is None:
                await _call(connection, "SET", EPOCH_KEY, secrets.token_hex(8), "NX")
                epoch = await _call(connection, "GET", EPOCH_KEY)
            redis.compare_epoch(epoch or b"")

        pool.connection_kwargs["redis_connect_func"] = connected
        try:
            with suppress(RedisUnavailable):
                await redis.check()
            yield redis
        finally:
            await client.aclose()

    async def check(self) -> None:
        """Check that Redis is available: send a command unless it has answered recently. Raise RedisUnavailable."""
        if self._away or self._now() - self._answered_at > IDLE_SECONDS:
            await self.run(lambda client: client.ping())

    async def count(self, step: "Callable[[Client], Awaitable[Result]]") -> Result:
        """Call `step` as `run` does. Raise RedisUnavailable also until counts that Redis lost are complete again."""
        self._check_counts()

        async def complete(client: "Client") -> Result:
            result = await step(client)
            self._check_counts()  # the command may have opened the connection that shows the loss
            return result

        return await self.run(complete)

    async def run(self, step: "Callable[[Client], Awaitable[Result]]", *, is_hasty: bool = False) -> Result:
        """Call `step`, which sends commands, with the client of the redis library, and return its result. Raise
        RedisUnavailable. `is_hasty`: whether a late response is of no use; it is then not a failure of Redis.
        """
        self._check()
        seconds = self._seconds
        if is_hasty:
            if self._now() < self._hasty_from:
                raise RedisUnavailable
            seconds = min(seconds, HASTY_SECONDS)
        end = asyncio.get_running_loop().time() + seconds
        await self._take_slot(end - seconds / 2)  # leaves half of the time for the response
        try:
            return await self._call(step, end, is_hasty=is_hasty)
        finally:
            self._slots.release()

    def compare_epoch(self, epoch: bytes) -> None:
        """Compare `EPOCH_KEY` on a new connection with `epoch`. Another value shows that Redis lost its data."""
        known, self._epoch = self._epoch, epoch
        if known in {b"", epoch}:
            return
        logger.warning("Redis has lost its data; the limits are counted from the requests that the processes know")
        self._counts_from = self._now() + REBUILD_SECONDS
        for act in self.on_data_lost:
            act()

    def _check_counts(self) -> None:
        if self._now() < self._counts_from:
            raise RedisUnavailable

    async def _take_slot(self, end: float) -> None:
        try:
            async with asyncio.timeout_at(end):
                await self._slots.acquire()
        except TimeoutError:
            raise RedisUnavailable from None

    async def _call(self, step: "Callable[[Client], Awaitable[Result]]", end: float, *, is_hasty: bool) -> Result:
        self._check()  # again, since another call may have failed during the wait for the slot
        if self._away:
            self._retry_from = self._now() + PAUSE_SECONDS
        try:
            async with asyncio.timeout_at(end):
                result = await step(self._client)
        except RedisUnavailable:  # of `count`: Redis has answered
            self._record_result("")
            raise
        except self._errors as error:  # TimeoutError is an OSError
            if is_hasty and isinstance(error, TimeoutError):
                self._hasty_from = self._now() + PAUSE_SECONDS
            else:
                self._record_result(str(error) or "no response")
            raise RedisUnavailable from None
        self._record_result("")
        return result

    def _check(self) -> None:
        if self._away and self._now() < self._retry_from:
            raise RedisUnavailable

    def _record_result(self, failure: str) -> None:
        """Record the result of a command for the circuit breaker. `failure`: error text, or "" if Redis answered."""
        if failure:
            self._retry_from = self._now() + PAUSE_SECONDS
            if not self._away:
                logger.warning("Redis is away; each process goes on by itself", reason=failure)
        elif self._away:
            logger.info("Redis is back")
        self._away = bool(failure)
        self._answered_at = self._answered_at if failure else self._now()


async def _call(connection: "AbstractConnection", *words: str) -> bytes | None:
    await connection.send_command(*words)
    response = await connection.read_response()
    return response if isinstance(response, bytes) else None


class Writes:
    """Queue of writes to Redis in the background. No call waits for a write; writes are lost while Redis is away."""

    def __init__(self, redis: Redis, work: str) -> None:
        """Create a queue of writes by the client `redis`. `work` is its name in the log."""
        self._redis = redis
        self._work = work
        self._waiting: OrderedDict[str, tuple[bytes, float]] = OrderedDict()  # value, lifetime in seconds
        self._size = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._writer: Background | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """Number of values that are queued and not written to Redis yet."""
        return len(self._waiting)

    def set(self, key: str, value: bytes, seconds: float) -> None:
        """Queue a write. It replaces a queued write of the same key. Redis deletes the value after `seconds`."""
        if self._closed:
            return
        self._remove(key)
        self._waiting[key] = (value, seconds)
        self._size += len(value)
        while self._size > WAITING_BYTES:
            self._remove(next(iter(self._waiting)))
        self._idle.clear()
        if self._writer is None:
            self._writer = Background(self._work, self._write)
        self._writer.wake()

    async def done(self) -> None:
        """Wait until no writes are queued: each one was sent, or has failed."""
        await self._idle.wait()

    async def aclose(self) -> None:
        """Finish the queued writes within a bounded time, and stop the background task."""
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
            self._remove(key)
            try:
                await self._set(key, value, max(1, int(seconds * 1000)))
            except RedisUnavailable:
                self._waiting.clear()
                self._size = 0
        self._idle.set()

    async def _set(self, key: str, value: bytes, milliseconds: int) -> None:
        await self._redis.run(lambda client: client.set(key, value, px=milliseconds))

    def _remove(self, key: str) -> None:
        if (waiting := self._waiting.pop(key, None)) is not None:
            self._size -= len(waiting[0])
