"""Message threads: conversations that are kept from call to call, so that callers send their new messages alone.

A thread is kept for every provider. One of the messages format that keeps threads itself is told the thread by the ids
of its own answers, as long as its channel serves the conversation; any other is told the whole conversation.
"""

import asyncio
import zlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

import structlog
from sqlalchemy import Update, select, update
from sqlalchemy.exc import SQLAlchemyError
from structlog.typing import FilteringBoundLogger

from umg_grpc.access.keys import utc_now
from umg_grpc.errors import UmgError
from umg_grpc.service.conversations import PACKED_BYTES, SMALL_BYTES, Place
from umg_grpc.store import Store
from umg_grpc.store.background import reason_of
from umg_grpc.store.retained import Bounds, Retained
from umg_grpc.store.tables import MAX_OBJECT_ID_CHARACTERS, KeptThread
from umg_grpc.v1 import pb
from umg_grpc.wire import FORMATS
from umg_grpc.wire.messages import threads as bodies

MESSAGES = "messages"
"""The format whose callers and providers know threads."""
IDLE = timedelta(minutes=5)
"""How long an answer can be continued."""
LONGEST_CALL = timedelta(hours=1)
"""How long a call may last that continues a thread, where its caller set no deadline."""
KEEP_SECONDS = 2.0  # that an answer waits for the database
READ_SECONDS = 5.0

logger: FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass
class Thread:
    """One call of a thread, which begins or continues it."""

    caller_request: pb.GenerateRequest
    """As the caller sent it."""
    place: Place
    """Where the answer that is continued was made; nowhere for a new thread."""
    whole: pb.GenerateRequest | None = None
    """A continuing request with the whole conversation, and without a thread."""
    claim_end_time: datetime | None = None
    """Of this call's claim on the answer that it continues."""
    answered_id: str = ""
    """Id of the answer of this call, once it is complete."""
    _forgotten: bool = False  # whether the provider no longer has the thread
    _refusing: set[str] = field(default_factory=set)  # channels whose providers keep no threads

    @property
    def previous_id(self) -> str:
        """Id of the answer that is continued; "" for a new thread."""
        return self.caller_request.thread.previous_response_id

    @cached_property
    def request(self) -> pb.GenerateRequest:
        """The request with the whole conversation, for providers that keep no threads."""
        if self.whole is not None:
            return self.whole
        alone = _copy(self.caller_request)
        alone.ClearField("thread")
        if alone.source.format == MESSAGES:
            alone.source.body = bodies.without_thread(alone.source.body)
        return alone

    @cached_property
    def begun(self) -> pb.GenerateRequest:
        """The request with the whole conversation, which begins a thread at the provider."""
        if self.whole is None:
            return self.caller_request
        begun = _copy(self.whole)
        begun.thread.SetInParent()
        begun.source.body = bodies.beginning_thread(begun.source.body)
        return begun

    def told_to(self, channel: str, *, keeps: bool) -> pb.GenerateRequest:
        """Return the request as it goes to a channel; `keeps`: whether its provider may keep threads."""
        if not keeps or channel in self._refusing:
            return self.request
        known = self.place.upstream_response_id and self.place.channel == channel and not self._forgotten
        return self.caller_request if known else self.begun

    def mends(self, told: pb.GenerateRequest, channel: str, error: UmgError) -> bool:
        """Return whether the call is good if the provider is told more of the conversation than it was: it has
        forgotten the thread, or keeps none.
        """
        if not told.HasField("thread"):
            return False
        if error.reason == pb.ERROR_REASON_THREAD_NOT_FOUND and told.thread.previous_response_id:
            self._forgotten = True
            return True
        named = error.metadata.get("field", "").partition(".")[0] == "thread" or error.message.startswith("thread:")
        if error.reason == pb.ERROR_REASON_THREAD_UNSUPPORTED_REQUEST or (
            error.reason == pb.ERROR_REASON_UPSTREAM_REJECTED and named
        ):
            self._refusing.add(channel)
            return True
        return False


class Threads:
    """The threads of all callers, from `start` to `aclose`. An owner is the id of a caller's key: to any other the
    threads do not exist.
    """

    def __init__(self, store: Store, *, bounds: Bounds, most_bytes: int, now: Callable[[], datetime] = utc_now) -> None:
        """`most_bytes`: of a conversation; a longer one is not kept."""
        self._store = store
        self._rows = Retained(store, KeptThread, bounds, now)
        self._most_bytes = most_bytes
        self._now = now

    def start(self) -> None:
        """From now on threads can be kept."""
        self._rows.start()

    async def aclose(self) -> None:
        """End the work behind it."""
        await self._rows.aclose()

    async def open(self, owner: str, request: pb.GenerateRequest, seconds: float) -> Thread:
        """Return the call that `request` makes of its thread. The answer that it continues is claimed for `seconds` at
        most, to be given back by `close`. Raises UmgError: THREAD_NOT_FOUND, THREAD_ALREADY_CONTINUED,
        THREAD_CONTINUE_IN_FLIGHT.
        """
        previous_id = request.thread.previous_response_id
        if not previous_id:
            return Thread(request, Place("", ""))
        for name, given in (("instructions", request.instructions), ("tools", request.tools)):
            if given:
                message = f"`{name}`: the thread keeps it from its first request; leave it out"
                raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=name)
        row = await self._claimed(owner, previous_id, seconds)
        thread = Thread(request, Place(row.channel, row.upstream_response_id), claim_end_time=row.claim_end_time)
        try:
            small = len(row.conversation) <= PACKED_BYTES and request.ByteSize() <= SMALL_BYTES
            thread.whole = _whole(row, request) if small else await asyncio.to_thread(_whole, row, request)
        except BaseException:
            await self.close(owner, thread)
            raise
        return thread

    async def keep(self, owner: str, thread: Thread, response: pb.GenerateResponse, place: Place) -> bool:
        """Keep the conversation under the id of its finished answer, for every process to find when this returns.
        `response` has its candidates; `place` is where it was made. False when it could not be kept, which the log
        tells: the answer is good all the same.
        """
        thread.answered_id = response.response_id
        if not 0 < len(response.response_id) <= MAX_OBJECT_ID_CHARACTERS or not response.response_id.isprintable():
            logger.warning("a thread is not kept: the answer's id is too long or not printable", channel=place.channel)
            return False
        row = KeptThread(
            owner=owner,
            object_id=response.response_id,
            expire_time=self._now() + IDLE,
            channel=place.channel,
            upstream_response_id=place.upstream_response_id,
            continued=False,
        )
        if thread.request.ByteSize() + response.ByteSize() <= SMALL_BYTES:
            size = _pack(row, thread.request, response)
        else:
            size = await asyncio.to_thread(_pack, row, thread.request, response)
        kept = size <= self._most_bytes and await self._rows.put(row, KEEP_SECONDS)
        if not kept:
            logger.warning("a thread is not kept", response_id=row.object_id, channel=place.channel, bytes=size)
        return kept

    async def close(self, owner: str, thread: Thread) -> None:
        """Settle the claim of a call that is over: the answer that it continued was continued, or may be once more.
        What the database does not take is left to the end of the claim.
        """
        if thread.claim_end_time is None or thread.answered_id == thread.previous_id:
            return  # in the latter case the row is the new answer's, which no call continues yet
        mine = _row_of(owner, thread.previous_id).where(KeptThread.claim_end_time == thread.claim_end_time)
        settled = (
            mine.values(continued=True, conversation=b"", size_bytes=0)
            if thread.answered_id
            else mine.values(claim_end_time=None)
        )
        try:
            async with asyncio.timeout(READ_SECONDS), self._store.write() as session:
                await session.execute(settled)
        except (SQLAlchemyError, OSError) as error:
            logger.warning("a thread's claim is not settled", reason=reason_of(error))

    async def _claimed(self, owner: str, previous_id: str, seconds: float) -> KeptThread:
        """Return the answer that is continued, which is this call's from now on."""
        now = self._now()
        end = now + min(LONGEST_CALL, timedelta(seconds=min(seconds, LONGEST_CALL.total_seconds())))
        free = (KeptThread.claim_end_time.is_(None)) | (KeptThread.claim_end_time <= now)
        claim = (
            _row_of(owner, previous_id)
            .where(KeptThread.expire_time > now, KeptThread.continued.is_(False), free)
            .values(claim_end_time=end)
            .returning(KeptThread)
        )
        async with _reading(previous_id):
            async with self._store.write() as session:
                row = await session.scalar(claim)
            if row is None:
                raise await self._refusal(owner, previous_id, now)
        return row

    async def _refusal(self, owner: str, previous_id: str, now: datetime) -> UmgError:
        """Return why the answer cannot be claimed."""
        query = select(KeptThread.continued, KeptThread.expire_time).where(
            KeptThread.owner == owner, KeptThread.object_id == previous_id
        )
        async with self._store.read() as session:
            found = (await session.execute(query)).one_or_none()
        if found is None or found.expire_time <= now:
            return _lost(previous_id)
        shown = previous_id[:MAX_OBJECT_ID_CHARACTERS]
        if found.continued:
            message = f"`{shown}` has been continued by another call; send the whole conversation as a new thread"
            return UmgError(pb.ERROR_REASON_THREAD_ALREADY_CONTINUED, message, id=shown)
        message = f"`{shown}` is being continued by another call; send the whole conversation as a new thread"
        return UmgError(pb.ERROR_REASON_THREAD_CONTINUE_IN_FLIGHT, message, id=shown)


def unsupported() -> UmgError:
    """For a gateway that stores nothing."""
    message = "this gateway stores no conversations; send the whole conversation, without `thread`"
    return UmgError(pb.ERROR_REASON_THREAD_UNSUPPORTED_REQUEST, message, unsupported="thread")


def _lost(previous_id: str, why: str = "") -> UmgError:
    shown = previous_id[:MAX_OBJECT_ID_CHARACTERS]
    message = f"no thread is kept for `{shown}`{why}; send the whole conversation as a new thread"
    return UmgError(pb.ERROR_REASON_THREAD_NOT_FOUND, message, id=shown)


@asynccontextmanager
async def _reading(previous_id: str) -> AsyncGenerator[None, None]:
    """Bound the time that the database takes. Raises UmgError(THREAD_NOT_FOUND), after which a caller goes on without
    it.
    """
    try:
        async with asyncio.timeout(READ_SECONDS):
            yield
    except (SQLAlchemyError, OSError) as error:  # TimeoutError is an OSError
        logger.warning("threads cannot be read", reason=reason_of(error))
        raise _lost(previous_id, " that can be read at the moment") from error


def _row_of(owner: str, object_id: str) -> Update:
    return update(KeptThread).where(KeptThread.owner == owner, KeptThread.object_id == object_id)


# --- what is kept: `messages`, `instructions` and `tools`, or, of a caller of messages, `source` with his own JSON


def _pack(row: KeptThread, request: pb.GenerateRequest, response: pb.GenerateResponse) -> int:
    """Fill in what is kept. Return its size before it is compressed."""
    kept = pb.GenerateRequest()
    if request.source.format == MESSAGES:
        answer = FORMATS[MESSAGES].encode_response(response, request)
        kept.source.format = MESSAGES
        kept.source.body = bodies.kept_conversation(request.source.body, answer)
    else:
        kept.messages.MergeFrom(request.messages)
        kept.instructions.MergeFrom(request.instructions)
        kept.tools.MergeFrom(request.tools)
        if response.candidates and response.candidates[0].message.parts:
            kept.messages.append(response.candidates[0].message)
            for part in kept.messages[-1].parts:
                if part.HasField("state") and not part.state.channel:
                    part.state.channel = row.channel  # no other may be given it
    plain = kept.SerializeToString()
    row.conversation = zlib.compress(plain, level=1)
    row.size_bytes = len(row.conversation) + len(row.object_id) + 200
    return len(plain)


def _whole(row: KeptThread, request: pb.GenerateRequest) -> pb.GenerateRequest:
    """Return the request with the kept conversation before its own messages, and without a thread."""
    kept = pb.GenerateRequest.FromString(zlib.decompress(row.conversation))
    own, earlier = request.source, kept.source
    if own.format == earlier.format == MESSAGES:
        body = bodies.whole_body(own.body, earlier.body)
        return FORMATS[MESSAGES].decode_request(body, dict(own.headers)).canonical
    if earlier.format == MESSAGES and (decode_count := FORMATS[MESSAGES].decode_count) is not None:
        kept = decode_count(bodies.countable(earlier.body), {})
    whole = pb.GenerateRequest(messages=kept.messages, instructions=kept.instructions, tools=kept.tools)
    whole.MergeFrom(request)
    whole.ClearField("thread")
    whole.ClearField("source")  # which has the new messages alone
    return whole


def _copy(request: pb.GenerateRequest) -> pb.GenerateRequest:
    copied = pb.GenerateRequest()
    copied.CopyFrom(request)
    return copied
