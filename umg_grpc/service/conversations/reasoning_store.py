"""Store of reasoning for clients and formats that do not send it back with the results of tool calls. Stored data
belongs to an owner (the id of a caller's key), and is found by digests: for the id of a tool call, the reasoning before
the call; for a reasoning state (a provider's opaque data that belongs to reasoning), or the id of an object that a
provider stores for its response, only the name of the channel that made it, which callers do not send back.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.service.conversations.reasoning_restore import ReasoningEntry, Restoration
from umg_grpc.service.conversations.reasoning_state import container_id, digest_of, digests_of, object_ids, state_digest
from umg_grpc.store import Store
from umg_grpc.store.database_time import Clock, utc_of
from umg_grpc.store.expired_row_sweep import Bounds
from umg_grpc.store.expiring_rows import Retained, RetainedStore
from umg_grpc.store.repeated_background_tasks import reason_of
from umg_grpc.store.repeated_log_lines import RepeatedLines
from umg_grpc.store.table_definitions import ReasoningRow
from umg_grpc.v1 import pb
from umg_grpc.wire.core.content_derived_call_ids import ContentIds

STATE_LIFETIME = timedelta(days=1)
MEMORY_BYTES = 64 * 2**20
STORE_BOUNDS = Bounds(owner_bytes=256 * 2**20, total_bytes=2 * 2**30)
READ_SECONDS = 1.0
RETRY_TIME = timedelta(seconds=1)  # time without reads after the database failed
ABSENT_TIME = timedelta(seconds=30)  # time in which a digest that the database does not have is not read again
MAX_ABSENT = 65_536
MAX_INLINE_ENTRIES = 50  # entries that are restored in half a millisecond; more are restored in a thread
MAX_RENEWALS = 24  # maximum renewals in a lifetime: use renews an entry, but not every use writes to the database

log_lines = RepeatedLines(__name__)
_Key = tuple[str, str]  # owner, digest


class ReasoningStore(RetainedStore[ReasoningRow]):
    """Store of reasoning for all processes, from `start` to `aclose`. New data is soon in the database too."""

    def __init__(
        self,
        store: Store,
        *,
        lifetime: timedelta = STATE_LIFETIME,
        memory_bytes: int = MEMORY_BYTES,
        bounds: Bounds = STORE_BOUNDS,
        clock: Clock | None = None,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        """Create the store. `lifetime`: time from the last use of an entry to its removal. `memory_bytes`: maximum size
        of the entries in memory. `bounds`: limits of the rows in the database. `clock`: None for the clock of the
        database. `read_seconds`: time limit of a read from the database.
        """
        self._clock = clock or store.clock
        super().__init__(Retained(store, ReasoningRow, bounds, self._clock))
        self._lifetime = lifetime
        self._memory_bytes = memory_bytes
        self._read_seconds = read_seconds
        self._entries: OrderedDict[_Key, ReasoningEntry] = OrderedDict()  # in order of last use
        self._size = 0
        self._absent: OrderedDict[_Key, datetime] = OrderedDict()  # time until which the database is not read for it
        self._stateful: set[str] = set()  # channels that have returned reasoning states to this process
        self._retry_from = utc_of(self._clock)  # time of the next read, after the database failed

    @property
    def size(self) -> int:
        """Bytes of memory that the stored reasoning uses."""
        return self._size

    async def flushed(self, seconds: float = READ_SECONDS) -> bool:
        """Wait up to `seconds` until all data is in the database, for every process. Return whether it is."""
        return await self._rows.flushed(seconds)

    def remember(
        self, owner: str, channel: str, parts: Iterable[pb.Part], content_ids: ContentIds | None = None
    ) -> None:
        """Store the reasoning before each tool call with an id in a response, and the channel of each reasoning state.
        `content_ids`: other ids under which a client may send the calls back, if it drops their ids. Takes little time
        for a response without reasoning.
        """
        turn = pb.Message()
        for part in parts:
            if part.HasField("state"):
                self._stateful.add(channel)
                self._remember(owner, state_digest(part.state), channel, b"")
            if part.HasField("reasoning"):
                turn.parts.add().CopyFrom(part)
                _set_channel(turn.parts[-1], channel)
            elif part.HasField("tool_call") and part.tool_call.call_id:
                digest = digest_of("call", part.tool_call.call_id)
                lost = digest_of("call", content_ids.next(part.tool_call)) if content_ids is not None else ""
                turn.message_id = turn.message_id or digest
                if turn.parts or part.HasField("state"):
                    own = turn.parts.add()
                    if part.HasField("state"):
                        own.state.CopyFrom(part.state)
                        _set_channel(own, channel)
                    for each in filter(None, (digest, lost)):
                        self._remember(owner, each, channel, turn.SerializeToString())
                    del turn.parts[-1]

    async def restore(
        self,
        owner: str,
        request: pb.GenerateRequest,
        channel: str | None = None,
        *,
        text_format: str | None = None,
        texts_of_others: bool = False,
        by_message: bool = False,
    ) -> pb.GenerateRequest:
        """Return the request with its stored reasoning: reasoning before tool calls that lack it, reasoning states, and
        the channel of each state. `channel`: only reasoning that this channel made is restored; None for all.
        `text_format`: only text of reasoning with a state of this format is restored; None for all. `texts_of_others`:
        the text of reasoning that other channels made is restored, too, without their states. `by_message`: reasoning
        is restored in the message of its tool call, not at the beginning of consecutive assistant messages.

        Needed if the request is translated for the provider. Never fails: while the database is unavailable, only
        entries in memory are used. The request is not modified. The source document of the result does not contain the
        restored reasoning.
        """
        known = await self._find(owner, set(digests_of(request)))
        if not known:
            return request
        restoration = Restoration(
            request, known, channel, text_format=text_format, texts_of_others=texts_of_others, by_message=by_message
        )
        return (
            restoration.request() if len(known) <= MAX_INLINE_ENTRIES else await asyncio.to_thread(restoration.request)
        )

    @property
    def may_lack_rows(self) -> bool:
        """Whether rows of other processes may be missing, because the database is or was unavailable to them."""
        return self._rows.may_lack_rows

    def has_states_of(self, channel: str) -> bool:
        """Return whether the channel has returned a reasoning state since this process started."""
        return channel in self._stateful

    def own(self, owner: str, channel: str, candidate: pb.Candidate, response_id: str = "") -> None:
        """Store that `channel` made the reasoning states in a response, and the objects that the provider stores for
        it. These are the response itself (`response_id`), its parts and its container. The caller gets the provider's
        own response, and sends these ids back.
        """
        for object_id in (response_id, container_id(candidate)):
            if object_id:
                self._remember(owner, digest_of("object", object_id), channel, b"")
        for part in candidate.message.parts:
            if part.HasField("state"):
                self._remember(owner, state_digest(part.state), channel, b"")
            for object_id in object_ids(part):
                self._remember(owner, digest_of("object", object_id), channel, b"")

    async def channels_of(self, owner: str, object_ids: Iterable[str]) -> dict[str, str]:
        """Return object id -> channel that made the object, for the objects made for this owner; other ids are left
        out. Never fails: while the database is unavailable, only entries in memory are used.
        """
        digests = {object_id: digest_of("object", object_id) for object_id in object_ids}
        known = await self._find(owner, set(digests.values()))
        return {object_id: known[digest].channel for object_id, digest in digests.items() if digest in known}

    # --- memory

    def _remember(self, owner: str, digest: str, channel: str, thoughts: bytes) -> None:
        entry = ReasoningEntry(channel, thoughts, utc_of(self._clock) + self._lifetime)
        if entry.size > self._memory_bytes:
            return
        self._put((owner, digest), entry)
        self._write(owner, digest, entry)

    def _write(self, owner: str, digest: str, entry: ReasoningEntry) -> None:
        row = ReasoningRow(
            owner=owner,
            object_id=digest,
            expire_time=entry.expires,
            size_bytes=entry.size,
            channel=entry.channel,
            thoughts=entry.thoughts,
        )
        self._rows.add(row)

    def _put(self, key: _Key, entry: ReasoningEntry) -> None:
        self._drop(key)
        self._absent.pop(key, None)
        self._entries[key] = entry
        self._size += entry.size
        while self._size > self._memory_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: _Key) -> None:
        if (entry := self._entries.pop(key, None)) is not None:
            self._size -= entry.size

    def _renew(self, key: _Key, entry: ReasoningEntry, now: datetime) -> ReasoningEntry:
        """Extend the lifetime of stored data that was just used, and return the data."""
        self._entries.move_to_end(key)
        expires = now + self._lifetime
        if expires - entry.expires > self._lifetime / MAX_RENEWALS:
            entry = ReasoningEntry(entry.channel, entry.thoughts, expires)
            self._entries[key] = entry
            self._write(*key, entry)
        return entry

    # --- looking up

    async def _find(self, owner: str, digests: Collection[str]) -> dict[str, ReasoningEntry]:
        now = utc_of(self._clock)
        known, unknown = dict[str, ReasoningEntry](), list[str]()
        for digest in digests:
            key = (owner, digest)
            entry = self._entries.get(key)
            if entry is not None and entry.expires > now:
                known[digest] = self._renew(key, entry, now)
                continue
            self._drop(key)  # another process may have used it since
            if (until := self._absent.get(key)) is None or until <= now:
                unknown.append(digest)
        if unknown and now >= self._retry_from:
            for row in await self._read_rows(owner, unknown):
                key = (owner, row.object_id)
                entry = ReasoningEntry(row.channel, row.thoughts, row.expire_time)
                self._put(key, entry)
                if key in self._entries:  # a large entry may exceed the memory bound of this process
                    entry = self._renew(key, entry, now)
                known[row.object_id] = entry
        return known

    async def _read_rows(self, owner: str, digests: Collection[str]) -> list[ReasoningRow]:
        try:
            async with asyncio.timeout(self._read_seconds):
                rows = await self._rows.find(owner, digests)
        except (SQLAlchemyError, OSError) as error:  # TimeoutError is an OSError
            log_lines.warning("stored reasoning cannot be read", reason=reason_of(error))
            self._retry_from = utc_of(self._clock) + RETRY_TIME
            return []
        until = utc_of(self._clock) + ABSENT_TIME
        for digest in set(digests) - {row.object_id for row in rows}:
            self._absent[owner, digest] = until
        while len(self._absent) > MAX_ABSENT:
            self._absent.popitem(last=False)
        return rows


def _set_channel(part: pb.Part, channel: str) -> None:
    if part.HasField("state"):
        part.state.channel = channel
