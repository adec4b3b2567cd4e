"""What models thought before their tool calls, for callers whose clients or formats do not bring it back.

Two kinds of things are remembered for each owner (the id of a caller's key), under digests, since both may be long: by
the id of a tool call what was thought before it and the call's own state; by a reasoning state the channel whose
account made it, since a caller sends it back without saying so.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog
from sqlalchemy.exc import SQLAlchemyError
from structlog.typing import FilteringBoundLogger

from umg_grpc.access.keys import utc_now
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
ENTRY_BYTES = 512  # of memory that an entry takes beside its thoughts
RENEWALS = 24  # in a lifetime, at most: an entry that is used lives on, without a write at each use

STANDARD_ALPHABET = str.maketrans("-_", "+/")

THOUGHTS = "messages.parts.reasoning"
"""What restoring changed, for an upstream that starts from the caller's body."""

logger: FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Entry:
    channel: str
    thoughts: bytes
    """`umg.v1.Message`: its parts are what was thought in the turn until the call, in order, and last one that holds
    nothing but the call's own state, if it had any. Its id is one for all calls of the turn. b"" for a state alone.
    """
    expires: datetime

    @property
    def size(self) -> int:
        return len(self.thoughts) + len(self.channel) + ENTRY_BYTES


_Key = tuple[str, str]  # owner, digest


def needs(request: pb.GenerateRequest) -> bool:
    """Whether the vault may know something of the request that the request does not say itself."""
    for message in request.messages:
        if message.role == pb.ROLE_ASSISTANT:
            for part in message.parts:
                if part.HasField("state") and not part.state.channel:
                    return True
                if part.HasField("tool_call") and part.tool_call.call_id:
                    return True
    return False


def may_be_stripped(request: pb.GenerateRequest) -> bool:
    """Whether thoughts may be missing although the upstream is of the caller's format: chat has no place for them that
    clients know, and only a model that was asked to think is likely to want them back.
    """
    return request.source.format == "chat" and request.HasField("reasoning") and needs(request)


def pinned_channel(request: pb.GenerateRequest) -> str:
    """The channel that made the newest reasoning state of the conversation; "" when none is known."""
    for message in reversed(request.messages):
        for part in reversed(message.parts):
            if part.HasField("state") and part.state.channel:
                return part.state.channel
    return ""


def makers(request: pb.GenerateRequest) -> dict[str, str]:
    """The channels that made the reasoning states of the conversation, by their data, where they are known."""
    return {
        part.state.data: part.state.channel
        for message in request.messages
        if message.role == pb.ROLE_ASSISTANT
        for part in message.parts
        if part.HasField("state") and part.state.channel
    }


def without_states_of_others(request: pb.GenerateRequest, channel: str, known: Mapping[str, str]) -> pb.GenerateRequest:
    """The request without the states that another channel made, since no other account can read them; itself where
    there are none. `known` are makers of states whose request does not say them.
    """
    strange = [
        (index, position)
        for index, message in enumerate(request.messages)
        if message.role == pb.ROLE_ASSISTANT
        for position, part in enumerate(message.parts)
        if part.HasField("state") and (part.state.channel or known.get(part.state.data, channel)) != channel
    ]
    if not strange:
        return request
    less = pb.GenerateRequest()
    less.CopyFrom(request)
    for index, position in strange:
        less.messages[index].parts[position].ClearField("state")
    if less.HasField("source") and "messages" not in less.source.edited_fields:
        less.source.edited_fields.append("messages")
    return less


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
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()  # the one that was used last is last
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
                self._remember(owner, _digest("state", part.state.data), channel, b"")
            if part.HasField("reasoning"):
                turn.parts.add().CopyFrom(part)
                _sign(turn.parts[-1], channel)
            elif part.HasField("tool_call") and part.tool_call.call_id:
                digest = _digest("call", part.tool_call.call_id)
                turn.message_id = turn.message_id or digest
                if turn.parts or part.HasField("state"):
                    own = turn.parts.add()
                    if part.HasField("state"):
                        own.state.CopyFrom(part.state)
                        _sign(own, channel)
                    self._remember(owner, digest, channel, turn.SerializeToString())
                    del turn.parts[-1]

    async def restore(self, owner: str, request: pb.GenerateRequest, channel: str | None = None) -> pb.GenerateRequest:
        """The request with what is known: before tool calls that stand there without thoughts, what was thought; on
        calls, their state; on all states, their channel. With `channel` only what that channel made is put back.

        It is for an upstream that the request has to be translated for, and never fails: without the database it goes
        by what is in memory. The request itself stays as it is, and is returned when nothing is known. Its source
        document does not say what was put back.
        """
        known = await self._known(owner, set(_digests(request)))
        if not known:
            return request
        restoration = _Restoration(request, known, channel)
        return restoration.request() if len(known) <= FEW else await asyncio.to_thread(restoration.request)

    def own(self, owner: str, channel: str, parts: Iterable[pb.Part]) -> None:
        """Remembers of an answer that its caller was given in the provider's own words whose the states in it are, and
        what else the provider keeps of it: the caller will name both without saying whose they are.
        """
        for part in parts:
            if part.HasField("state"):
                self._remember(owner, _digest("state", part.state.data), channel, b"")
            for object_id in _object_ids(part):
                self._remember(owner, _digest("object", object_id), channel, b"")

    async def channels_of(self, owner: str, object_ids: Iterable[str]) -> dict[str, str]:
        """The channels whose accounts keep these objects, by their ids: of those that the owner was told of. Fails as
        little as `restore`.
        """
        digests = {object_id: _digest("object", object_id) for object_id in object_ids}
        known = await self._known(owner, set(digests.values()))
        return {object_id: known[digest].channel for object_id, digest in digests.items() if digest in known}

    # --- memory

    def _remember(self, owner: str, digest: str, channel: str, thoughts: bytes) -> None:
        entry = _Entry(channel, thoughts, self._now() + self._lifetime)
        if entry.size > self._memory_bytes:
            return
        self._put((owner, digest), entry)
        self._write(owner, digest, entry)

    def _write(self, owner: str, digest: str, entry: _Entry) -> None:
        row = KeptReasoning(
            owner=owner,
            object_id=digest,
            expire_time=entry.expires,
            size_bytes=entry.size,
            channel=entry.channel,
            thoughts=entry.thoughts,
        )
        self._rows.add(row)

    def _put(self, key: _Key, entry: _Entry) -> None:
        self._drop(key)
        self._absent.pop(key, None)
        self._entries[key] = entry
        self._size += entry.size
        while self._size > self._memory_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: _Key) -> None:
        if (entry := self._entries.pop(key, None)) is not None:
            self._size -= entry.size

    def _used(self, key: _Key, entry: _Entry, now: datetime) -> _Entry:
        """The entry, which lives on."""
        self._entries.move_to_end(key)
        expires = now + self._lifetime
        if expires - entry.expires > self._lifetime / RENEWALS:
            entry = _Entry(entry.channel, entry.thoughts, expires)
            self._entries[key] = entry
            self._write(*key, entry)
        return entry

    # --- looking up

    async def _known(self, owner: str, digests: Collection[str]) -> dict[str, _Entry]:
        now = self._now()
        known, unknown = dict[str, _Entry](), list[str]()
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
                entry = _Entry(row.channel, row.thoughts, row.expire_time)
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


def _digest(kind: str, text: str) -> str:
    """Of states only what their base64 says counts: clients write it anew in the other alphabet, and pad it."""
    if kind == "state":
        text = text.translate(STANDARD_ALPHABET).rstrip("=")
    return hashlib.blake2b(f"{kind}\0{text}".encode(), digest_size=16).hexdigest()


def _object_ids(part: pb.Part) -> Iterator[str]:
    """Ids of all that a provider may keep of a part of its answer."""
    yield from {
        part.message_id,
        part.reasoning.item_id,
        part.tool_call.item_id,
        part.server_tool_call.call_id,
        part.media.media_id,
    } - {""}


def _digests(request: pb.GenerateRequest) -> Iterator[str]:
    """Of all that the vault may know something of."""
    for message in request.messages:
        if message.role == pb.ROLE_ASSISTANT:
            for part in message.parts:
                if part.HasField("state") and not part.state.channel:
                    yield _digest("state", part.state.data)
                if part.HasField("tool_call") and part.tool_call.call_id:
                    yield _digest("call", part.tool_call.call_id)


def _sign(part: pb.Part, channel: str) -> None:
    if part.HasField("state"):
        part.state.channel = channel


class _Place(NamedTuple):
    """A part of the request."""

    message: int
    part: int


class _Restoration:
    """Puts back what is known of one request. A turn of the model is a run of messages: formats whose items are
    messages have its thoughts and calls in several.
    """

    def __init__(self, request: pb.GenerateRequest, known: dict[str, _Entry], channel: str | None) -> None:
        self._request = request
        self._known = known
        self._channel = channel
        self._told: dict[str, int] = {}  # turn -> how many of its thoughts stand in the request by now
        self._added: dict[_Place, list[pb.Part]] = {}  # what stands before a part
        self._removed: set[_Place] = set()
        self._states: dict[_Place, pb.ReasoningState] = {}
        # Some providers use the ids of one turn in the next again: what is known is then the last one's.
        self._last = {
            part.tool_call.call_id: _Place(index, position)
            for index, message in enumerate(request.messages)
            if message.role == pb.ROLE_ASSISTANT
            for position, part in enumerate(message.parts)
            if part.HasField("tool_call")
        }

    def request(self) -> pb.GenerateRequest:
        """The request with all that is put back; itself when there was nothing."""
        start: _Place | None = None  # where the thoughts of the next call belong
        thoughts = list[_Place]()  # that stand there already
        for index, message in enumerate(self._request.messages):
            if message.role != pb.ROLE_ASSISTANT:
                start, thoughts = None, []
                continue
            for position, part in enumerate(message.parts):
                place = _Place(index, position)
                start = start or place
                self._find_channel(place, part)
                if part.HasField("reasoning"):
                    thoughts.append(place)
                elif part.HasField("tool_call"):
                    self._call(place, part, start, thoughts)
                    start, thoughts = None, []
        if not (self._added or self._states):
            return self._request
        return self._rebuilt()

    def _find_channel(self, place: _Place, part: pb.Part) -> None:
        if not part.HasField("state") or part.state.channel:
            return
        if (entry := self._known.get(_digest("state", part.state.data))) is not None:
            state = pb.ReasoningState(data=part.state.data, format=part.state.format, channel=entry.channel)
            self._states[place] = state

    def _call(self, place: _Place, part: pb.Part, start: _Place, present: list[_Place]) -> None:
        call_id = part.tool_call.call_id
        if not call_id or self._last[call_id] != place:
            return
        entry = self._known.get(_digest("call", call_id))
        if entry is None or self._channel not in (None, entry.channel):
            return
        turn = pb.Message.FromString(entry.thoughts)
        thoughts, own = turn.parts[:-1], turn.parts[-1]
        told = self._told.get(turn.message_id, 0)
        self._told[turn.message_id] = max(told, len(thoughts))
        fresh = thoughts[told:]
        if own.HasField("state") and not part.HasField("state"):
            self._states[place] = own.state
        if not fresh or any(self._part(there).HasField("state") for there in present):
            return
        if present and not any(thought.HasField("state") for thought in fresh):
            return  # the caller brought the same, or what it made of it
        self._removed.update(present)
        self._added[present[0] if present else start] = fresh

    def _part(self, place: _Place) -> pb.Part:
        return self._request.messages[place.message].parts[place.part]

    def _rebuilt(self) -> pb.GenerateRequest:
        request = pb.GenerateRequest()
        request.CopyFrom(self._request)
        changed = {place.message for place in (*self._added, *self._states)} | {
            place.message for place in self._removed
        }
        for index in changed:
            parts = list[pb.Part]()
            for position, part in enumerate(self._request.messages[index].parts):
                place = _Place(index, position)
                parts.extend(self._added.get(place, ()))
                if place in self._removed:
                    continue
                parts.append(part)
                if place in self._states:
                    signed = parts[-1] = pb.Part()
                    signed.CopyFrom(part)
                    signed.state.CopyFrom(self._states[place])
            if not parts:  # it held nothing but thoughts, which stand elsewhere now
                del request.messages[index]
                continue
            message = request.messages[index]
            del message.parts[:]
            message.parts.extend(parts)
        return request
