"""Answers that are given again to the same question, from memory and, where there is one, from Redis."""

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

from umg_grpc.store.redis import Redis, RedisAway, Writes
from umg_grpc.v1 import pb

MAX_BYTES = 2**20  # of an answer: larger ones would push out too many others
OVERHEAD_BYTES = 512  # what Python takes for an entry beside the answer
MOST_FAILURES = 2  # that a call waits for before it goes on its own
WHOLE_SECONDS = 60.0  # that a call waits in all: as long as most answers take
STREAM_SECONDS = 5.0  # the same for a stream, which is whole when the client of the call that makes it has read it
SHARE = 0.25  # of the time that its caller gives it: the rest is for making the answer itself
SKEW_SECONDS = 60.0  # by which the clocks of replicas may differ; what is from further ahead is of a wrong one
PREFIX = "umg:answer:1:"  # the number changes when what is kept does
HEAD = struct.Struct(">32sdd")  # a digest of the place, so that no mix-up becomes a wrong answer; made, until

GOOD_ENDS = frozenset(
    {
        pb.FINISH_REASON_STOP,
        pb.FINISH_REASON_STOP_SEQUENCE,
        pb.FINISH_REASON_LENGTH,
        pb.FINISH_REASON_TOOL_CALLS,
    }
)

Response = TypeVar("Response", pb.GenerateResponse, pb.StreamGenerateResponse, pb.EmbedResponse, pb.RerankResponse)


@dataclass(frozen=True, slots=True)
class _Entry:
    answer: bytes
    made: float
    until: float

    def is_good(self, ttl: float, now: float) -> bool:
        """For whoever kept it, and for whoever asks now."""
        return self.made - SKEW_SECONDS <= now < self.until and now - self.made <= ttl


@dataclass(slots=True)
class _Flight:
    """An answer that is being made, which others wait for."""

    waiting: int = 0
    landed: asyncio.Event = field(default_factory=asyncio.Event)
    answer: bytes | None = None
    failed: bool = False
    shared: bool = True  # whether it is good for others


class ResponseCache:
    """Keeps answers by the keys of `cache_key.key_of`, which hold whose they are. What it gives out is its taker's own.

    Nothing here fails: without Redis, what this process has in memory is what there is. What goes to Redis is written
    behind, until `aclose`: no answer waits for it.
    """

    def __init__(self, memory_bytes: int, redis: Redis | None = None, now: Callable[[], float] = time.time) -> None:
        """`now`: Unix seconds, which replicas share."""
        self._memory_bytes = memory_bytes
        self._redis = redis
        self._writes = None if redis is None else Writes(redis, "writing kept answers")
        self._now = now
        self._entries: OrderedDict[str, _Entry] = OrderedDict()  # the one that was used last is last
        self._size = 0
        self._flights: dict[str, _Flight] = {}

    @property
    def size(self) -> int:
        """Bytes of memory in use."""
        return self._size

    async def aclose(self) -> None:
        """Writes what still waits for Redis, for a bounded time."""
        if self._writes is not None:
            await self._writes.aclose()

    async def written(self) -> None:
        """Returns when what was kept until now is in Redis, or will not be."""
        if self._writes is not None:
            await self._writes.done()

    async def get(self, key: str, ttl: float, kind: type[Response]) -> Response | None:
        """The answer, where one is kept that is no older than `ttl` seconds."""
        place = _place(key, kind)
        kept = self._remembered(place, ttl)
        if kept is None and self._redis is not None:
            kept = await self._fetched(self._redis, place, ttl) or self._remembered(place, ttl)  # made here meanwhile
        return None if kept is None else _read(kind, kept.answer)

    def put(self, key: str, message: Response, ttl: float) -> None:
        """Keeps a whole answer for `ttl` seconds; not one that is large, or that ended otherwise than well."""
        if _is_good(message) and message.ByteSize() <= MAX_BYTES:
            self._keep(_place(key, type(message)), ttl, message.SerializeToString())

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
        """The answer, and whether it was there or made for another call; else `make` makes it, and `keep` says
        thereafter whether others may have it. Raises what `make` raises. Of several calls at once one makes it: see
        `get_or_lead`.
        """
        found = await self.get_or_lead(key, ttl, kind, seconds=seconds)
        if not isinstance(found, Lead):
            return found, True
        with found:
            message = await make()
            if keep():
                found.keep(message)
        return message, False

    async def get_or_lead(
        self, key: str, ttl: float, kind: type[Response], *, seconds: float = float("inf")
    ) -> "Response | Lead[Response]":
        """The answer, or the lead of a call that has to make it.

        Of several calls at once one makes it. When that fails or leaves, the next one does; a call that saw two fail,
        or has waited long, goes on its own. `seconds`: what its caller gives it, of which the larger part is then left.
        """
        place, failures, end = _place(key, kind), 0, asyncio.get_running_loop().time() + _patience(kind, seconds)
        while (found := await self.get(key, ttl, kind)) is None:
            flight = self._flights.get(place)
            if flight is None:
                flight = self._flights[place] = _Flight()
                return self._lead(place, ttl, flight)
            if failures >= MOST_FAILURES or not await _landed(flight, end) or not flight.shared:
                return self._lead(place, ttl, _Flight())  # for which nobody waits
            if flight.answer is not None and (found := _read(kind, flight.answer)) is not None:
                return found
            failures += flight.failed
        return found

    def _lead(self, place: str, ttl: float, flight: _Flight) -> "Lead[Any]":
        return Lead(flight, lambda: self._land(place, flight), lambda answer: self._keep(place, ttl, answer))

    def _land(self, place: str, flight: _Flight) -> None:
        awaited = self._flights.get(place)
        if awaited is flight or (awaited is not None and flight.answer is not None):
            del self._flights[place]
            awaited.answer = flight.answer  # where it is another, one that went on its own was there first
            awaited.landed.set()
        flight.landed.set()

    # --- keeping

    def _keep(self, place: str, ttl: float, answer: bytes) -> None:
        now = self._now()
        kept = _Entry(answer, now, now + ttl)
        self._remember(place, kept)
        if self._writes is not None:
            self._writes.set(PREFIX + place, HEAD.pack(_digest(place), kept.made, kept.until) + answer, ttl)

    def _remember(self, place: str, kept: _Entry) -> None:
        self._forget(place)
        self._entries[place] = kept
        self._size += len(kept.answer) + OVERHEAD_BYTES
        while self._size > self._memory_bytes:
            self._forget(next(iter(self._entries)))

    def _forget(self, place: str) -> None:
        if (kept := self._entries.pop(place, None)) is not None:
            self._size -= len(kept.answer) + OVERHEAD_BYTES

    def _remembered(self, place: str, ttl: float) -> _Entry | None:
        kept = self._entries.get(place)
        if kept is None or not kept.is_good(ttl, self._now()):
            return None
        self._entries.move_to_end(place)
        return kept

    async def _fetched(self, redis: Redis, place: str, ttl: float) -> _Entry | None:
        try:
            value = await redis.run(lambda client: client.get(PREFIX + place))
        except RedisAway:
            return None
        if not isinstance(value, bytes) or len(value) < HEAD.size:
            return None
        digest, made, until = HEAD.unpack_from(value)
        kept = _Entry(value[HEAD.size :], made, until)
        if digest != _digest(place) or not kept.is_good(ttl, self._now()):
            return None
        self._remember(place, kept)
        return kept


class Lead(Generic[Response]):
    """The making of an answer, for which others may wait until the block of it ends. They have the answer that was kept
    in it; without one each makes its own, and where the block fails or is left, the next of them leads.
    """

    def __init__(self, flight: _Flight, land: Callable[[], None], keep: Callable[[bytes], None]) -> None:
        self._flight = flight
        self._land = land
        self._keep = keep

    def keep(self, message: Response) -> None:
        """Gives the answer to those who wait, and keeps it: one that ended otherwise than well is neither given nor
        kept, a large one is only given.
        """
        flight, small = self._flight, message.ByteSize() <= MAX_BYTES
        if not _is_good(message) or not (small or flight.waiting):
            return
        flight.answer = message.SerializeToString()
        self._land()
        if small:
            self._keep(flight.answer)

    def give_up(self) -> None:
        """Lets those who wait make their own: it is known that there will be nothing for them."""
        self._flight.shared = False
        self._land()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._flight.landed.is_set():
            return
        self._flight.failed = isinstance(error, Exception)
        self._flight.shared = error is not None
        self._land()


async def _landed(flight: _Flight, end: float) -> bool:
    """Whether it has by then, on the clock of the loop."""
    flight.waiting += 1
    try:
        async with asyncio.timeout_at(end):
            await flight.landed.wait()
    except TimeoutError:
        return False
    finally:
        flight.waiting -= 1
    return True


def _patience(kind: type[Message], seconds: float) -> float:
    """How long a call waits for what another makes, of the seconds that its caller gives it."""
    return min(STREAM_SECONDS if kind is pb.StreamGenerateResponse else WHOLE_SECONDS, seconds * SHARE)


def _place(key: str, kind: type[Message]) -> str:
    """Where an answer is kept: whole and streamed ones of one key lie apart."""
    return f"{kind.DESCRIPTOR.name}:{key}"


def _digest(place: str) -> bytes:
    return hashlib.sha256(place.encode()).digest()


def _is_good(
    message: pb.GenerateResponse | pb.StreamGenerateResponse | pb.EmbedResponse | pb.RerankResponse,
) -> bool:
    """Whether the answer ended as it should."""
    match message:
        case pb.GenerateResponse():
            ends = [candidate.finish_reason for candidate in message.candidates]
        case pb.StreamGenerateResponse():
            ends = [event.finished.finish_reason for event in message.events if event.HasField("finished")]
        case _:
            return True
    return bool(ends) and GOOD_ENDS.issuperset(ends)


def _read(kind: type[Response], answer: bytes) -> Response | None:
    message = kind()
    try:
        message.ParseFromString(answer)
    except DecodeError:
        return None
    return message
