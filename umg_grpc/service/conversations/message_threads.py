"""Message threads: stored conversations that a caller continues by sending only its new messages. They work with every
provider. A provider of the messages format may store threads itself: it is sent only the id of its previous response,
as long as the conversation stays at its channel. Any other provider is sent the whole conversation.
"""

import asyncio
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

import structlog
from sqlalchemy import Update, select, update
from sqlalchemy.exc import SQLAlchemyError
from structlog.typing import FilteringBoundLogger

from umg_grpc.base.errors import UmgError
from umg_grpc.routing import Target
from umg_grpc.service.conversations.stored_responses import PACKED_BYTES, SMALL_BYTES, ResponseOrigin
from umg_grpc.service.possibly_unwritten_error import unwritten
from umg_grpc.store import Store
from umg_grpc.store.database import repeated
from umg_grpc.store.database_time import Clock, utc_of
from umg_grpc.store.expired_row_sweep import Bounds
from umg_grpc.store.expiring_rows import Retained, RetainedStore
from umg_grpc.store.repeated_background_tasks import reason_of
from umg_grpc.store.repeated_log_lines import RepeatedLines
from umg_grpc.store.table_definitions import MAX_OBJECT_ID_CHARACTERS, ThreadRow
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest
from umg_grpc.wire.messages import message_threads as bodies

THREADED_FORMAT = next(name for name, codec in TEXT_FORMATS.items() if codec.has_threads)
"""Wire format whose callers and providers support message threads (messages)."""
IDLE_TIME = timedelta(minutes=5)
"""Time after a response within which it can be continued."""
LONGEST_CALL_SECONDS = 3600.0
"""Maximum seconds for which a call may continue a response exclusively, also for calls without a deadline."""
KEEP_SECONDS = 3.0  # longest time that a response waits for the database: a restart, and usually a millisecond
READ_SECONDS = 5.0

logger: FilteringBoundLogger = structlog.get_logger(__name__)
log_lines = RepeatedLines(__name__)


@dataclass
class Thread:
    """Thread of one call, new or continued: the request for providers that store threads, and for all others."""

    caller: DecodedRequest[pb.GenerateRequest]
    origin: ResponseOrigin
    """Channel and provider's id of the response that is continued; both "" for a new thread."""
    continued: DecodedRequest[pb.GenerateRequest] | None = None
    """The request with all messages of the conversation and without reference to the thread; None for a new thread."""
    claim_end_time: datetime | None = None
    """Time until which this call has the exclusive right to continue the response; None for a new thread."""
    answered_id: str = ""
    """Id of the response of this call, once the response is complete; "" before."""
    _forgotten: bool = False  # whether the provider no longer has the thread
    _refused: bool = False  # whether a provider rejected the thread

    @property
    def previous_id(self) -> str:
        """Id of the response that is continued; "" for a new thread."""
        return self.caller.canonical.thread.previous_response_id

    @cached_property
    def whole(self) -> DecodedRequest[pb.GenerateRequest]:
        """Request with all messages of the conversation and without a thread, for providers that store none."""
        if self.continued is not None:
            return self.continued
        alone = _copy(self.caller.canonical)
        alone.ClearField("thread")
        if alone.source.format == THREADED_FORMAT:
            alone.source.body = bodies.without_thread(alone.source.body)
        return DecodedRequest(alone, self.caller.notes)

    @cached_property
    def begun(self) -> DecodedRequest[pb.GenerateRequest]:
        """Request with all messages of the conversation that begins a new thread at the provider."""
        if self.continued is None:
            return self.caller
        begun = _copy(self.continued.canonical)
        begun.thread.SetInParent()
        begun.source.body = bodies.with_new_thread(begun.source.body)
        return DecodedRequest(begun, self.continued.notes)

    def request_for(self, target: Target) -> DecodedRequest[pb.GenerateRequest]:
        """Return the request as it is sent to a channel. A provider that stores threads is sent the id of its own
        previous response or, if it does not have the thread, all messages, which begin one. A provider is sent all
        messages without a thread if it stores none, if it has refused the thread, or if the conversation began in
        another format than the request's.
        """
        keeps = self.caller.canonical.source.format in target.channel.protocols and target.quirks.keeps_threads
        if not keeps or self._refused or (self.continued and not self.continued.canonical.HasField("source")):
            return self.whole
        known = self.origin.upstream_response_id and self.origin.channel == target.channel.name and not self._forgotten
        return self.caller if known else self.begun

    def recovers_from(self, sent: pb.GenerateRequest, error: UmgError) -> bool:
        """Return whether the error means that the provider no longer has the thread, or stores none. `request_for` then
        returns another request, with which the call may be repeated. `sent`: the request that failed.
        """
        if not sent.HasField("thread"):
            return False
        if error.reason == pb.ERROR_REASON_THREAD_NOT_FOUND and sent.thread.previous_response_id:
            self._forgotten = True
            return True
        named = error.metadata.get("field", "").partition(".")[0] == "thread" or error.message.startswith("thread:")
        if error.reason == pb.ERROR_REASON_THREAD_UNSUPPORTED_REQUEST or (
            error.reason == pb.ERROR_REASON_UPSTREAM_REJECTED and named
        ):
            self._refused = True
            return True
        return False


class Threads(RetainedStore[ThreadRow]):
    """Store of the message threads of all callers. Only the key that began a thread (`owner`: its id) can use it."""

    def __init__(self, store: Store, *, bounds: Bounds, max_bytes: int, clock: Clock | None = None) -> None:
        """Create the store of threads. `bounds`: maximum size of the stored threads. `max_bytes`: maximum size of one
        conversation before compression. `clock`: None for the database's.
        """
        self._store = store
        self._clock = clock or store.clock
        super().__init__(Retained(store, ThreadRow, bounds, self._clock))
        self._max_bytes = max_bytes

    async def open(self, owner: str, decoded: DecodedRequest[pb.GenerateRequest], seconds: float) -> Thread:
        """Return the thread of a request: a new one, or one that continues a stored response. Only this call may then
        continue the response, for at most `seconds`, until it calls `close`. Raise UmgError: THREAD_NOT_FOUND,
        THREAD_ALREADY_CONTINUED, THREAD_CONTINUE_IN_FLIGHT, UNAVAILABLE, INVALID_FIELD for a field that only the first
        request of a thread may have.
        """
        request = decoded.canonical
        previous_id = request.thread.previous_response_id
        if not previous_id:
            return Thread(decoded, ResponseOrigin("", ""))
        for name, given in (("instructions", request.instructions), ("tools", request.tools)):
            if given:
                message = f"`{name}`: the thread keeps it from its first request; leave it out"
                raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=name)
        row = await self._claim(owner, previous_id, seconds)
        thread = Thread(
            decoded, ResponseOrigin(row.channel, row.upstream_response_id), claim_end_time=row.claim_end_time
        )
        try:
            small = len(row.conversation) <= PACKED_BYTES and request.ByteSize() <= SMALL_BYTES
            thread.continued = _whole(row, decoded) if small else await asyncio.to_thread(_whole, row, decoded)
        except BaseException:
            await self.close(owner, thread)
            raise
        return thread

    async def keep(self, owner: str, thread: Thread, response: pb.GenerateResponse, origin: ResponseOrigin) -> bool:
        """Store the conversation of the thread under the id of the complete response. Every process finds it once this
        returns. `response`: contains its candidates, also after passthrough. `origin`: channel and provider's id of the
        response. Return False, and log a warning, if it could not be stored; the response is valid all the same.
        """
        thread.answered_id = response.response_id
        if not 0 < len(response.response_id) <= MAX_OBJECT_ID_CHARACTERS or not response.response_id.isprintable():
            logger.warning(
                "a thread is not stored: the response's id is too long or not printable", channel=origin.channel
            )
            return False
        row = ThreadRow(
            owner=owner,
            object_id=response.response_id,
            expire_time=utc_of(self._clock) + IDLE_TIME,
            channel=origin.channel,
            upstream_response_id=origin.upstream_response_id,
            continued=False,
        )
        request = thread.whole.canonical
        if request.ByteSize() + response.ByteSize() <= SMALL_BYTES:
            size = _pack(row, request, response)
        else:
            size = await asyncio.to_thread(_pack, row, request, response)
        stored = size <= self._max_bytes and await self._rows.put(row, KEEP_SECONDS)
        if not stored:
            log_lines.warning("a thread is not stored", response_id=row.object_id, channel=origin.channel, bytes=size)
        return stored

    async def close(self, owner: str, thread: Thread) -> None:
        """End the exclusive right of a call to continue the previous response. If the call's own response is complete,
        mark the previous one as continued. If the database fails, the right lasts until its end time.
        """
        if thread.claim_end_time is None or thread.answered_id == thread.previous_id:
            return  # with equal ids the row is that of the new response, which no call has claimed
        claimed_row = _row_of(owner, thread.previous_id).where(ThreadRow.claim_end_time == thread.claim_end_time)
        settled = (
            claimed_row.values(continued=True, conversation=b"", size_bytes=0)
            if thread.answered_id
            else claimed_row.values(claim_end_time=None)
        )
        try:
            async with asyncio.timeout(READ_SECONDS), self._store.write() as session:
                await session.execute(settled)
        except (SQLAlchemyError, OSError) as error:
            log_lines.warning("a thread's claim is not settled", reason=reason_of(error))

    async def _claim(self, owner: str, previous_id: str, seconds: float) -> ThreadRow:
        """Give a call the exclusive right to continue the response `previous_id` for at most `seconds`."""
        try:
            async with asyncio.timeout(READ_SECONDS):
                return await self._claim_row(owner, previous_id, seconds)
        except (SQLAlchemyError, OSError) as error:  # TimeoutError is an OSError
            log_lines.warning("threads cannot be read", reason=reason_of(error))
            if self._rows.may_lack_rows:
                raise unwritten(previous_id) from error
            raise _not_found(previous_id, " that can be read at the moment") from error

    @repeated
    async def _claim_row(self, owner: str, previous_id: str, seconds: float) -> ThreadRow:
        now, end = self._clock.sql_time(), self._clock.sql_time(min(seconds, LONGEST_CALL_SECONDS))
        free = (ThreadRow.claim_end_time.is_(None)) | (ThreadRow.claim_end_time <= now)
        claim = (
            _row_of(owner, previous_id)
            .where(ThreadRow.expire_time > now, ThreadRow.continued.is_(False), free)
            .values(claim_end_time=end)
            .returning(ThreadRow)
            .execution_options(synchronize_session=False)
        )
        async with self._store.write() as session:
            row = await session.scalar(claim)
        if row is None:
            raise await self._claim_error(owner, previous_id)
        return row

    async def _claim_error(self, owner: str, previous_id: str) -> UmgError:
        """Return the error for a response that cannot be continued: unknown, continued before, or right now."""
        live = ThreadRow.expire_time > self._clock.sql_time()
        query = select(ThreadRow.continued).where(ThreadRow.owner == owner, ThreadRow.object_id == previous_id, live)
        async with self._store.read() as session:
            continued = await session.scalar(query)
        if continued is None:
            return unwritten(previous_id) if self._rows.may_lack_rows else _not_found(previous_id)
        shown = previous_id[:MAX_OBJECT_ID_CHARACTERS]
        if continued:
            message = f"`{shown}` has been continued by another call; send the whole conversation as a new thread"
            return UmgError(pb.ERROR_REASON_THREAD_ALREADY_CONTINUED, message, id=shown)
        message = f"`{shown}` is being continued by another call; send the whole conversation as a new thread"
        return UmgError(pb.ERROR_REASON_THREAD_CONTINUE_IN_FLIGHT, message, id=shown)


def unsupported() -> UmgError:
    """Return the error for a request with a thread if the gateway stores no conversations."""
    message = "this gateway stores no conversations; send the whole conversation, without `thread`"
    return UmgError(pb.ERROR_REASON_THREAD_UNSUPPORTED_REQUEST, message, unsupported="thread")


def _not_found(previous_id: str, why: str = "") -> UmgError:
    shown = previous_id[:MAX_OBJECT_ID_CHARACTERS]
    message = f"no thread is stored for `{shown}`{why}; send the whole conversation as a new thread"
    return UmgError(pb.ERROR_REASON_THREAD_NOT_FOUND, message, id=shown)


def _row_of(owner: str, object_id: str) -> Update:
    return update(ThreadRow).where(ThreadRow.owner == owner, ThreadRow.object_id == object_id)


# --- stored content: `messages`, `instructions` and `tools` or, for a caller of the messages format, `source` with JSON


def _pack(row: ThreadRow, request: pb.GenerateRequest, response: pb.GenerateResponse) -> int:
    """Store the whole conversation in a thread's row, compressed. Return its size before the compression."""
    stored = pb.GenerateRequest()
    if request.source.format == THREADED_FORMAT:
        received = TEXT_FORMATS[THREADED_FORMAT].encode_response(response, request)
        stored.source.format = THREADED_FORMAT
        stored.source.body = bodies.stored_conversation(request.source.body, received)
    else:
        stored.messages.MergeFrom(request.messages)
        stored.instructions.MergeFrom(request.instructions)
        stored.tools.MergeFrom(request.tools)
        if response.candidates and response.candidates[0].message.parts:
            stored.messages.append(response.candidates[0].message)
            for part in stored.messages[-1].parts:
                if part.HasField("state") and not part.state.channel:
                    part.state.channel = row.channel  # no other channel may get the state
    plain = stored.SerializeToString()
    row.conversation = zlib.compress(plain, level=1)
    row.size_bytes = len(row.conversation) + len(row.object_id) + 200
    return len(plain)


def _whole(row: ThreadRow, decoded: DecodedRequest[pb.GenerateRequest]) -> DecodedRequest[pb.GenerateRequest]:
    """Return a request of the thread `row` with the stored messages of the conversation before its own messages, and
    without reference to a thread. `decoded`: the request, with facts about the caller's body.
    """
    request, notes = decoded
    stored = pb.GenerateRequest.FromString(zlib.decompress(row.conversation))
    own, earlier = request.source, stored.source
    if own.format == earlier.format == THREADED_FORMAT:
        body = bodies.whole_body(own.body, earlier.body)
        whole, _, whole_notes = TEXT_FORMATS[THREADED_FORMAT].decode_request(body, dict(own.headers))
        named = (name for name in notes.indispensable if name.startswith("thread."))
        whole_notes.indispensable.extend(named)  # of the thread, which the body no longer has
        return DecodedRequest(whole, whole_notes)
    if earlier.format == THREADED_FORMAT and (decode_count := TEXT_FORMATS[THREADED_FORMAT].decode_count) is not None:
        stored = decode_count(bodies.countable(earlier.body), {}).canonical
    whole = pb.GenerateRequest(messages=stored.messages, instructions=stored.instructions, tools=stored.tools)
    whole.MergeFrom(request)
    whole.ClearField("thread")
    whole.ClearField("source")  # the source document has only the new messages
    return DecodedRequest(whole, NO_NOTES)


def _copy(request: pb.GenerateRequest) -> pb.GenerateRequest:
    copied = pb.GenerateRequest()
    copied.CopyFrom(request)
    return copied
