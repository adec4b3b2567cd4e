"""Response cache: stores responses by the keys of requests, in memory and, if configured, in Redis."""

import asyncio
import hashlib
import struct
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from google.protobuf.message import DecodeError, Message

from umg_grpc.store.redis_client import Redis, RedisUnavailable, Writes
from umg_grpc.v1 import pb

MAX_BYTES = 2**20  # maximum size of a response: a larger one would evict too many others
OVERHEAD_BYTES = 512  # memory that Python needs for an entry beside the response
MAX_FAILURES = 2  # failures of other calls after which a waiting call makes its own response
WHOLE_SECONDS = 60.0  # longest total wait for another call's response: as long as most responses take
STREAM_SECONDS = 5.0  # the same for a stream, which is complete only when the client of the other call has read it
MAX_WAIT_SHARE = 0.25  # longest wait as a share of the call's deadline; the rest is for making the response itself
SKEW_SECONDS = 60.0  # allowed clock difference between replicas; entries dated further in the future are ignored
CACHE_KEY_PREFIX = "umg:answer:1:"  # the number is the version of the stored value
ENTRY_HEAD = struct.Struct(">32sdd")  # digest of the entry's key, as a check of the key; time made, time of expiry

CACHEABLE_FINISH_REASONS = frozenset(
    {pb.FINISH_REASON_STOP, pb.FINISH_REASON_STOP_SEQUENCE, pb.FINISH_REASON_LENGTH, pb.FINISH_REASON_TOOL_CALLS}
)

Response = TypeVar("Response", bound=Message)


@dataclass(frozen=True, slots=True)
class _Entry:
    """Cached response as serialized message, with the times at which it was made and expires, in Unix seconds."""

    response: bytes
    made: float
    until: float

    def is_fresh(self, ttl: float, now: float) -> bool:
        """Return whether the entry may be used at the time `now`: not expired, and at most `ttl` seconds old."""
        return self.made - SKEW_SECONDS <= now < self.until and now - self.made <= ttl


@dataclass(slots=True)
class _Pending:
    """Response that one call is making while other calls with the same key wait for it."""

    waiting: int = 0
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    response: bytes | None = None
    failed: bool = False
    shared: bool = True  # whether other calls may use the response


class ResponseCache:
    """Cache of responses by cache keys. Each returned message is a new copy, which the caller may change. No method
    fails: while Redis is unavailable, the memory of this process is used. Writes to Redis run in the background until
    `aclose`; no response waits for them.
    """

    def __init__(self, memory_bytes: int, redis: Redis | None = None, now: Callable[[], float] = time.time) -> None:
        """Create a cache with up to `memory_bytes` bytes in memory; the least recently used responses are dropped.
        `redis`: None for a cache in memory alone. `now`: returns Unix seconds, which replicas share.
        """
        self._memory_bytes = memory_bytes
        self._redis = redis
        self._writes = None if redis is None else Writes(redis, "writing cached responses")
        self._now = now
        self._entries: OrderedDict[str, _Entry] = OrderedDict()  # in order of last use
        self._size = 0
        self._pending_by_key: dict[str, _Pending] = {}

    @property
    def size(self) -> int:
        """Bytes of memory that the cached responses use."""
        return self._size

    @property
    def waiting_writes(self) -> int:
        """Number of responses that are not in Redis yet."""
        return self._writes.waiting if self._writes is not None else 0

    async def aclose(self) -> None:
        """Finish the queued writes to Redis within a bounded time."""
        if self._writes is not None:
            await self._writes.aclose()

    async def written(self) -> None:
        """Wait until all queued writes to Redis are done or dropped."""
        if self._writes is not None:
            await self._writes.done()

    async def get(self, key: str, ttl: float, kind: type[Response]) -> Response | None:
        """Return the cached response of a message type if it is at most `ttl` seconds old; otherwise None."""
        entry_key = _entry_key(key, kind)
        entry = self._from_memory(entry_key, ttl)
        if entry is None and self._redis is not None:
            entry = await self._from_redis(self._redis, entry_key, ttl)
            entry = entry or self._from_memory(entry_key, ttl)  # stored during the read from Redis
        return None if entry is None else _decode(kind, entry.response)

    def put(self, key: str, message: Response, ttl: float) -> None:
        """Store a complete response for `ttl` seconds, unless it is too large or did not finish normally."""
        if _is_cacheable(message) and message.ByteSize() <= MAX_BYTES:
            self._keep(_entry_key(key, type(message)), ttl, message.SerializeToString())

    async def get_or_make(
        self,
        key: str,
        ttl: float,
        make: Callable[[], Awaitable[Response]],
        kind: type[Response],
        *,
        keep: Callable[[], bool] = lambda: True,
        seconds: float = float("inf"),
    ) -> tuple[Response, bool]:
        """Return the response, and whether it came from the cache or from another call; if neither has it, call `make`.
        `ttl`: maximum age of a cached response, and lifetime of a new one, in seconds. `keep`: called after `make`,
        returns whether the response may be cached and shared. `seconds`: time until the call's deadline. Of several
        concurrent calls with one key only one calls `make`, and the others wait for a share of their time. Raise the
        errors of `make`.
        """
        found = await self.get_or_fill(key, ttl, kind, seconds=seconds)
        if not isinstance(found, CacheFill):
            return found, True
        with found:
            message = await make()
            if keep():
                found.keep(message)
        return message, False

    async def get_or_fill(
        self, key: str, ttl: float, kind: type[Response], *, seconds: float = float("inf")
    ) -> "Response | CacheFill[Response]":
        """Return the cached response, or a context manager in which this call makes the response. Of several concurrent
        calls one makes it and the others wait. If that call fails or is cancelled, the next one makes it. A call that
        has seen two failures, or has waited long, makes its own. `ttl`: maximum age of a cached response, and lifetime
        of a new one, in seconds. `seconds`: time until the call's deadline, of which the wait takes only a small share.
        """
        entry_key, failures = _entry_key(key, kind), 0
        longest = STREAM_SECONDS if kind is pb.StreamGenerateResponse else WHOLE_SECONDS
        end = asyncio.get_running_loop().time() + min(longest, seconds * MAX_WAIT_SHARE)
        while (found := await self.get(key, ttl, kind)) is None:
            pending = self._pending_by_key.get(entry_key)
            if pending is None:
                pending = self._pending_by_key[entry_key] = _Pending()
                return self._lead(entry_key, ttl, pending)
            if failures >= MAX_FAILURES or not await _wait_until_finished(pending, end) or not pending.shared:
                return self._lead(entry_key, ttl, _Pending())  # no call waits for this one
            if pending.response is not None and (found := _decode(kind, pending.response)) is not None:
                return found
            failures += pending.failed
        return found

    def _lead(self, entry_key: str, ttl: float, pending: _Pending) -> "CacheFill[Any]":
        return CacheFill(
            pending, lambda: self._finish(entry_key, pending), lambda response: self._keep(entry_key, ttl, response)
        )

    def _finish(self, entry_key: str, pending: _Pending) -> None:
        current = self._pending_by_key.get(entry_key)
        if current is pending or (current is not None and pending.response is not None):
            del self._pending_by_key[entry_key]
            current.response = pending.response  # if `pending` is another one, a call that did not wait finished first
            current.finished.set()
        pending.finished.set()

    # --- keeping

    def _keep(self, entry_key: str, ttl: float, response: bytes) -> None:
        now = self._now()
        entry = _Entry(response, now, now + ttl)
        self._store_in_memory(entry_key, entry)
        if self._writes is not None:
            self._writes.set(
                CACHE_KEY_PREFIX + entry_key,
                ENTRY_HEAD.pack(_digest(entry_key), entry.made, entry.until) + response,
                ttl,
            )

    def _store_in_memory(self, entry_key: str, entry: _Entry) -> None:
        self._evict(entry_key)
        self._entries[entry_key] = entry
        self._size += len(entry.response) + OVERHEAD_BYTES
        while self._size > self._memory_bytes:
            self._evict(next(iter(self._entries)))

    def _evict(self, entry_key: str) -> None:
        if (entry := self._entries.pop(entry_key, None)) is not None:
            self._size -= len(entry.response) + OVERHEAD_BYTES

    def _from_memory(self, entry_key: str, ttl: float) -> _Entry | None:
        entry = self._entries.get(entry_key)
        if entry is None or not entry.is_fresh(ttl, self._now()):
            return None
        self._entries.move_to_end(entry_key)
        return entry

    async def _from_redis(self, redis: Redis, entry_key: str, ttl: float) -> _Entry | None:
        try:
            value = await redis.run(lambda client: client.get(CACHE_KEY_PREFIX + entry_key), is_hasty=True)
        except RedisUnavailable:
            return None
        if not isinstance(value, bytes) or len(value) < ENTRY_HEAD.size:
            return None
        digest, made, until = ENTRY_HEAD.unpack_from(value)
        entry = _Entry(value[ENTRY_HEAD.size :], made, until)
        if digest != _digest(entry_key) or not entry.is_fresh(ttl, self._now()):
            return None
        self._store_in_memory(entry_key, entry)
        return entry


class CacheFill(Generic[Response]):
    """Context manager in which a call makes a response while other calls with the same key wait for it. They get the
    response that is passed to `keep`. If the block ends without one, each makes its own; if the block fails or is
    cancelled, one of the waiting calls makes the response for all.
    """

    def __init__(self, pending: _Pending, finish: Callable[[], None], keep: Callable[[bytes], None]) -> None:
        self._pending = pending
        self._finish = finish
        self._keep = keep

    def keep(self, message: Response) -> None:
        """Pass the response to the waiting calls, and cache it. An incomplete response (cut off by an error or a
        filter) is neither passed on nor cached; a large one is only passed on.
        """
        pending, small = self._pending, message.ByteSize() <= MAX_BYTES
        if not _is_cacheable(message) or not (small or pending.waiting):
            return
        pending.response = message.SerializeToString()
        self._finish()
        if small:
            self._keep(pending.response)

    def give_up(self) -> None:
        """Let each waiting call make its own response, since the response of this call cannot be shared."""
        self._pending.shared = False
        self._finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pending.finished.is_set():
            return
        self._pending.failed = isinstance(error, Exception)
        self._pending.shared = error is not None
        self._finish()


async def _wait_until_finished(pending: _Pending, end: float) -> bool:
    """Wait until the other call has finished, with or without a response."""
    pending.waiting += 1
    try:
        async with asyncio.timeout_at(end):
            await pending.finished.wait()
    except TimeoutError:
        return False
    finally:
        pending.waiting -= 1
    return True


def _entry_key(key: str, kind: type[Message]) -> str:
    return f"{kind.DESCRIPTOR.name}:{key}"


def _digest(entry_key: str) -> bytes:
    return hashlib.sha256(entry_key.encode()).digest()


def _is_cacheable(message: Message) -> bool:
    """Return whether a response is complete: it ended by itself, at its length limit or with tool calls."""
    match message:
        case pb.GenerateResponse():
            ends = [candidate.finish_reason for candidate in message.candidates]
        case pb.StreamGenerateResponse():
            ends = [event.finished.finish_reason for event in message.events if event.HasField("finished")]
        case _:  # without a reason why it ended
            return True
    return bool(ends) and CACHEABLE_FINISH_REASONS.issuperset(ends)


def _decode(kind: type[Response], response: bytes) -> Response | None:
    message = kind()
    try:
        message.ParseFromString(response)
    except DecodeError:
        return None
    return message
