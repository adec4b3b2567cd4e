"""What models thought before their tool calls, for callers whose clients or formats do not bring it back.

Three kinds of things are remembered for each owner (the id of a caller's key), under digests, since they may be long:
by the id of a tool call what was thought before it and the call's own state; by a reasoning state, and by the id of
what a provider keeps of its answers, the channel whose account made it, since a caller sends it back without saying so.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta

import structlog
from sqlalchemy.exc import SQLAlchemyError
from structlog.typing import FilteringBoundLogger

from umg_grpc.access.keys import utc_now
from umg_grpc.service.restoring import Entry, Restoration
from umg_grpc.service.states import digest_of, digests_of, object_ids
from umg_grpc.store import Store
from umg_grpc.store.background import reason_of
from umg_grpc.store.retained import Bounds, Retained
from umg_grpc.store.tables import KeptReasoning
from umg_grpc.v1 import pb

LIFETIME = timedelta(days=1)
MEMORY_BYTES = 64 * 2**20
BOUNDS = Bounds(owner_bytes=256 * 2**20, total_bytes=2 * 2**30)
LOOK_SECONDS = 1.0
RETRY_TIME = timedelta(seconds=1)
ABSENT_TIME = timedelta(seconds=30)  # in which what the database did not have is not asked for again
MAX_ABSENT = 65_536
FEW = 50  # calls and states that are put back in half a millisecond; more are in a thread
RENEWALS = 24  # in a lifetime, at most: an entry that is used lives on, without a write at each use

logger: FilteringBoundLogger = structlog.get_logger(__name__)
_Key = tuple[str, str]  # owner, digest


class Vault:
    """Remembers in memory and, soon after, in the store, from `start` to `aclose`."""

    def __init__(
        self,
        store: Store,
        *,
        lifetime: timedelta = LIFETIME,
        memory_bytes: int = MEMORY_BYTES,
        bounds: Bounds = BOUNDS,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """`lifetime` is counted from the last use."""
        self._rows = Retained(store, KeptReasoning, bounds, now)
        self._lifetime = lifetime
        self._memory_bytes = memory_bytes
        self._now = now
        self._entries: OrderedDict[_Key, Entry] = OrderedDict()  # the one that was used last is last
        self._size = 0
        self._absent: OrderedDict[_Key, datetime] = OrderedDict()  # until when the database need not be asked
        self._ask_from = now()  # a database that did not answer is left alone for a while

    @property
    def size(self) -> int:
        """Bytes of memory in use."""
        return self._size

    def start(self) -> None:
        """From now on what is remembered outlives the process."""
        self._rows.start()

    async def aclose(self) -> None:
        """Writes what is not written yet, and ends the work behind it."""
        await self._rows.aclose()

    async def flushed(self, seconds: float = LOOK_SECONDS) -> bool:
        """Whether every process finds what was remembered until now; waits for that."""
        return await self._rows.flushed(seconds)

    async def sweep(self) -> None:
        """Forgets what has expired or is too much, which is done once a minute anyway."""
        await self._rows.sweep()

    def remember(self, owner: str, channel: str, parts: Iterable[pb.Part]) -> None:
        """Remembers one answer: its tool calls that have an id, with what was thought before each, and whose its states
        are. Of an answer without both it is cheap.
        """
        turn = pb.Message()
        for part in parts:
            if part.HasField("state"):
                self._remember(owner, digest_of("state", part.state.data), channel, b"")
            if part.HasField("reasoning"):
                turn.parts.add().CopyFrom(part)
                _sign(turn.parts[-1], channel)
            elif part.HasField("tool_call") and part.tool_call.call_id:
                digest = digest_of("call", part.tool_call.call_id)
                turn.message_id = turn.message_id or digest
                if turn.parts or part.HasField("state"):
                    own = turn.parts.add()
                    if part.HasField("state"):
                        own.state.CopyFrom(part.state)
                        _sign(own, channel)
                    self._remember(owner, digest, channel, turn.SerializeToString())
                    del turn.parts[-1]

    async def restore(
        self, owner: str, request: pb.GenerateRequest, channel: str | None = None, *, thoughts: bool = True
    ) -> pb.GenerateRequest:
        """The request with what is known: before tool calls that stand there without thoughts, what was thought; on
        calls, their state; on all states, their channel. With `channel` only what that channel made is put back;
        without `thoughts` nothing that was thought.

        It is for an upstream that the request has to be translated for, and never fails: without the database it goes
        by what is in memory. The request itself stays as it is, and is returned when nothing is known. Its source
        document does not say what was put back.
        """
        known = await self._known(owner, set(digests_of(request)))
        if not known:
            return request
        restoration = Restoration(request, known, channel, thoughts=thoughts)
        return restoration.request() if len(known) <= FEW else await asyncio.to_thread(restoration.request)

    def own(self, owner: str, channel: str, parts: Iterable[pb.Part]) -> None:
        """Remembers of an answer that its caller was given in the provider's own words whose the states in it are, and
        what else the provider keeps of it: the caller will name both without saying whose they are.
        """
        for part in parts:
            if part.HasField("state"):
                self._remember(owner, digest_of("state", part.state.data), channel, b"")
            for object_id in object_ids(part):
                self._remember(owner, digest_of("object", object_id), channel, b"")

    async def channels_of(self, owner: str, object_ids: Iterable[str]) -> dict[str, str]:
        """The channels whose accounts keep these objects, by their ids: of those that the owner was told of. Fails as
        little as `restore`.
        """
        digests = {object_id: digest_of("object", object_id) for object_id in object_ids}
        known = await self._known(owner, set(digests.values()))
        return {object_id: known[digest].channel for object_id, digest in digests.items() if digest in known}

    # --- memory

    def _remember(self, owner: str, digest: str, channel: str, thoughts: bytes) -> None:
        entry = Entry(channel, thoughts, self._now() + self._lifetime)
        if entry.size > self._memory_bytes:
            return
        self._put((owner, digest), entry)
        self._write(owner, digest, entry)

    def _write(self, owner: str, digest: str, entry: Entry) -> None:
        row = KeptReasoning(
            owner=owner,
            object_id=digest,
            expire_time=entry.expires,
            size_bytes=entry.size,
            channel=entry.channel,
            thoughts=entry.thoughts,
        )
        self._rows.add(row)

    def _put(self, key: _Key, entry: Entry) -> None:
        self._drop(key)
        self._absent.pop(key, None)
        self._entries[key] = entry
        self._size += entry.size
        while self._size > self._memory_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: _Key) -> None:
        if (entry := self._entries.pop(key, None)) is not None:
            self._size -= entry.size

    def _used(self, key: _Key, entry: Entry, now: datetime) -> Entry:
        """The entry, which lives on."""
        self._entries.move_to_end(key)
        expires = now + self._lifetime
        if expires - entry.expires > self._lifetime / RENEWALS:
            entry = Entry(entry.channel, entry.thoughts, expires)
            self._entries[key] = entry
            self._write(*key, entry)
        return entry

    # --- looking up

    async def _known(self, owner: str, digests: Collection[str]) -> dict[str, Entry]:
        now = self._now()
        known, unknown = dict[str, Entry](), list[str]()
        for digest in digests:
            key = (owner, digest)
            entry = self._entries.get(key)
            if entry is not None and entry.expires > now:
                known[digest] = self._used(key, entry, now)
                continue
            self._drop(key)  # another process may have used it since
            if (until := self._absent.get(key)) is None or until <= now:
                unknown.append(digest)
        if unknown and now >= self._ask_from:
            for row in await self._look(owner, unknown):
                key = (owner, row.object_id)
                entry = Entry(row.channel, row.thoughts, row.expire_time)
                self._put(key, entry)
                if key in self._entries:  # its size may be beyond the bound of this process
                    entry = self._used(key, entry, now)
                known[row.object_id] = entry
        return known

    async def _look(self, owner: str, digests: Collection[str]) -> list[KeptReasoning]:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                rows = await self._rows.find(owner, digests)
        except (SQLAlchemyError, OSError) as error:  # TimeoutError is an OSError
            logger.warning("kept reasoning cannot be read", reason=reason_of(error))
            self._ask_from = self._now() + RETRY_TIME
            return []
        until = self._now() + ABSENT_TIME
        for digest in set(digests) - {row.object_id for row in rows}:
            self._absent[owner, digest] = until
        while len(self._absent) > MAX_ABSENT:
            self._absent.popitem(last=False)
        return rows


def _sign(part: pb.Part, channel: str) -> None:
    if part.HasField("state"):
        part.state.channel = channel
