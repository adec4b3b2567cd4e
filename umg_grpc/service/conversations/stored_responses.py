"""Stored responses with their conversations, which callers read and continue by id, with every provider."""

import asyncio
import secrets
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, NoReturn

import msgspec
import structlog
from sqlalchemy.exc import SQLAlchemyError
from structlog.typing import FilteringBoundLogger

from umg_grpc.base.errors import UmgError
from umg_grpc.routing import Target
from umg_grpc.service.conversations.response_input_items import page
from umg_grpc.service.possibly_unwritten_error import unwritten
from umg_grpc.store import Store
from umg_grpc.store.database_time import Clock, utc_of
from umg_grpc.store.expired_row_sweep import Bounds
from umg_grpc.store.expiring_rows import Retained, RetainedStore
from umg_grpc.store.repeated_background_tasks import reason_of
from umg_grpc.store.repeated_log_lines import RepeatedLines
from umg_grpc.store.table_definitions import MAX_OBJECT_ID_CHARACTERS, ResponseRow
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.sealed_summaries import SEALED_PREFIX
from umg_grpc.wire.facts_beside_request import DecodedRequest
from umg_grpc.wire.responses.item_references import CORE_CHARACTERS, RESPONSE_PREFIX, items_of, referenced, response_of

SEALED_BYTES = SEALED_PREFIX.encode()
"""Bytes that a stored conversation with a sealed summary contains."""
PROMPTING_ROLES = frozenset({pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER, pb.ROLE_USER})
RESPONSE_LIFETIME = timedelta(days=30)
STORE_BOUNDS = Bounds(owner_bytes=2**30, total_bytes=8 * 2**30)
KEEP_SECONDS = 3.0  # longest time that a response waits for the database: a restart, and usually a millisecond
READ_SECONDS = 5.0
SMALL_BYTES = 64 * 2**10  # size that is compressed in a millisecond; more is compressed in a thread
PACKED_BYTES = 8 * 2**10  # the same for decompression, whose result may be many times larger
MAX_NAMED = 500  # maximum number of responses whose items a request names; each needs a read

logger: FilteringBoundLogger = structlog.get_logger(__name__)
log_lines = RepeatedLines(__name__)


class ResponseOrigin(NamedTuple):
    """Origin of a stored response: the channel that made it, and the provider's own id of it."""

    channel: str
    upstream_response_id: str  # "" if the provider stores no response


# Error codes of providers for a previous response that they no longer have.
NOT_FOUND_CODES = frozenset({"previous_response_not_found"})


@dataclass
class Continued:
    """Request that continues a stored response, in two forms. The provider that stores the response gets the response's
    id. Any other provider gets all messages of the conversation.
    """

    caller: DecodedRequest[pb.GenerateRequest]
    whole: DecodedRequest[pb.GenerateRequest]
    """The request with all messages of the conversation, and without the id of the previous response."""
    origin: ResponseOrigin
    """Channel that made the previous response, and the provider's id of it ("" if the provider does not store it)."""
    earlier: bytes
    """The messages of the conversation before the request, as serialized `umg.v1.GenerateRequest`."""
    earlier_count: int
    _forgotten: bool = False  # whether the provider no longer has the response

    def request_for(self, target: Target) -> DecodedRequest[pb.GenerateRequest]:
        """Return the request as it is sent to a channel. It has the id of the previous response if the channel made
        that response and has the caller's format; otherwise it has all messages of the conversation.
        """
        same = self.caller.canonical.source.format in target.channel.protocols
        known = self.origin.upstream_response_id and self.origin.channel == target.channel.name and not self._forgotten
        return self._by_id if same and known else self.whole

    def recovers_from(self, sent: pb.GenerateRequest, error: UmgError) -> bool:
        """Return whether the error means that the provider no longer has the previous response. `request_for` then
        returns the request with all messages, with which the call may be repeated. `sent`: the request that failed.
        """
        if not sent.previous_response_id or self._forgotten:
            return False
        if (
            error.metadata.get("upstream_status") != "404"
            and error.metadata.get("upstream_code") not in NOT_FOUND_CODES
        ):
            return False
        self._forgotten = True
        return True

    @property
    def _by_id(self) -> DecodedRequest[pb.GenerateRequest]:
        """The caller's request with the provider's own id of the previous response."""
        request, notes = self.caller
        if request.previous_response_id == self.origin.upstream_response_id:
            return self.caller
        sent = pb.GenerateRequest()
        sent.CopyFrom(request)
        sent.previous_response_id = self.origin.upstream_response_id
        return DecodedRequest(sent, notes.with_edited("previous_response_id"))


def new_response_id() -> str:
    """Return a random, unguessable id for a response without an id from its provider."""
    return RESPONSE_PREFIX + secrets.token_hex(CORE_CHARACTERS // 2)


class Conversations(RetainedStore[ResponseRow]):
    """Store of all callers' responses, from `start` to `aclose`. Only the key whose call made a response can use it
    (`owner`: id of the key). Reads raise UmgError(UNAVAILABLE) while the database is unavailable.
    """

    def __init__(
        self,
        store: Store,
        *,
        lifetime: timedelta = RESPONSE_LIFETIME,
        bounds: Bounds = STORE_BOUNDS,
        clock: Clock | None = None,
    ) -> None:
        """Create the store of responses. `clock`: None for the clock of the database."""
        self._clock = clock or store.clock
        super().__init__(Retained(store, ResponseRow, bounds, self._clock))
        self._lifetime = lifetime

    async def keep(
        self,
        owner: str,
        request: pb.GenerateRequest,
        response: pb.GenerateResponse,
        *,
        channel: str,
        streamed: bool,
        continued: Continued | None = None,
        upstream_response_id: str = "",
    ) -> bool:
        """Store a complete response by its id. Every process finds it once this returns, so it is awaited before the
        end of the response is sent to the caller. `request`: as its caller sent it. `response`: contains its
        candidates, also after passthrough; the first one becomes part of the conversation. `streamed`: the caller got
        it as a stream. `continued`: result of `continue_` for the request. `upstream_response_id`: the provider's id of
        the response, "" if the provider does not store it. Return False, and log a warning, if it could not be stored;
        the response is valid all the same.
        """
        if not _is_id(response.response_id):
            logger.warning("a response is not stored: its id is too long or not printable", channel=channel)
            return False
        now = utc_of(self._clock)
        row = ResponseRow(
            owner=owner,
            object_id=response.response_id,
            create_time=now,
            expire_time=now + self._lifetime,
            channel=channel,
            upstream_response_id=upstream_response_id,
            earlier_count=continued.earlier_count if continued else 0,
            input_count=len(request.messages),
        )
        earlier = continued.earlier if continued else b""
        size = request.ByteSize() + response.ByteSize() + len(earlier)
        if size <= SMALL_BYTES:
            _pack(row, request, response, earlier, streamed=streamed)
        else:
            await asyncio.to_thread(_pack, row, request, response, earlier, streamed=streamed)
        stored = await self._rows.put(row, KEEP_SECONDS)
        if not stored:
            log_lines.warning(
                "a response is not stored, or later only", response_id=response.response_id, channel=channel
            )
        return stored

    async def continue_(self, owner: str, decoded: DecodedRequest[pb.GenerateRequest]) -> Continued:
        """Return the request together with the stored conversation of its `previous_response_id`, without the
        instructions of earlier requests. Raise UmgError: OBJECT_NOT_FOUND, UNAVAILABLE.
        """
        request = decoded.canonical
        row = await self._row(owner, request.previous_response_id, "previous_response_id")
        if len(row.conversation) <= PACKED_BYTES and request.ByteSize() <= SMALL_BYTES:
            return _continue(row, decoded)
        return await asyncio.to_thread(_continue, row, decoded)

    async def resolve(self, owner: str, request: pb.GenerateRequest) -> pb.GenerateRequest:
        """Return the request with its references to items of stored responses replaced by the items; the request itself
        if it has none. Raise UmgError: OBJECT_NOT_FOUND for an item that this caller does not have, INVALID_FIELD for
        items of too many responses, UNAVAILABLE.
        """
        named = {at: item for at, message in enumerate(request.messages) if (item := referenced(message))}
        found = dict[str, list[pb.Message]]()
        responses = dict.fromkeys(response_id for item in named.values() if (response_id := response_of(item)))
        if len(responses) > MAX_NAMED:
            text = f"input: it names items of more than {MAX_NAMED} responses; send the items themselves"
            raise UmgError(pb.ERROR_REASON_INVALID_FIELD, text, field="input")
        for response_id in responses:
            row = await self._row(owner, response_id)
            small = len(row.answer) <= PACKED_BYTES
            found |= _output(row) if small else await asyncio.to_thread(_output, row)
        if not found:
            return request
        resolved = pb.GenerateRequest()
        resolved.CopyFrom(request)
        resolved.ClearField("messages")
        for at, message in enumerate(request.messages):
            item = named.get(at, "")
            if item and response_of(item) and item not in found:
                raise _not_found(item, f"input[{at}].id")
            resolved.messages.extend(found.get(item, [message]))
        return resolved

    async def get(self, owner: str, response_id: str) -> pb.StoredResponse:
        """Return a stored response. Raise UmgError: OBJECT_NOT_FOUND, UNAVAILABLE."""
        row = await self._row(owner, response_id)
        if len(row.answer) <= PACKED_BYTES:
            return _response(row)
        return await asyncio.to_thread(_response, row)

    async def delete(self, owner: str, response_id: str) -> ResponseOrigin:
        """Delete a response, so that it can no longer be read or continued; responses that continued it stay complete.
        Return the channel that made it, and its id at the provider. Raise UmgError: OBJECT_NOT_FOUND, UNAVAILABLE.
        """
        row = await self._row(owner, response_id)
        async with _reading():
            if not await self._rows.delete(owner, response_id):
                raise self._absent(response_id)
        return ResponseOrigin(row.channel, row.upstream_response_id)

    async def cancel(self, owner: str, response_id: str) -> NoReturn:
        """Raise UmgError: WRONG_STATE, since a stored response is complete; OBJECT_NOT_FOUND if it is unknown."""
        status = (await self.get(owner, response_id)).response.status or "completed"
        message = f"response {response_id} is {status}; only one that is being made in the background can be cancelled"
        raise UmgError(pb.ERROR_REASON_WRONG_STATE, message, state=status)

    async def list_items(self, owner: str, request: pb.ListInputItemsRequest) -> pb.ListInputItemsResponse:
        """Return a page of the input items of a response's request, without the earlier conversation: a message for
        each item, with a stable id. Raise UmgError: OBJECT_NOT_FOUND, INVALID_FIELD, UNAVAILABLE.
        """
        row = await self._row(owner, request.response_id)
        if len(row.conversation) <= PACKED_BYTES:
            return _page(row, request)
        return await asyncio.to_thread(_page, row, request)

    async def _row(self, owner: str, response_id: str, at: str = "") -> ResponseRow:
        row = None
        if _is_id(response_id):
            async with _reading():
                row = await self._rows.get(owner, response_id)
        if row is None:
            raise self._absent(response_id, at)
        return row

    def _absent(self, response_id: str, at: str = "") -> UmgError:
        return unwritten(response_id, field=at) if self._rows.may_lack_rows else _not_found(response_id, at)


# --- rows


def _pack(
    row: ResponseRow, request: pb.GenerateRequest, response: pb.GenerateResponse, earlier: bytes, *, streamed: bool
) -> None:
    """Fill in the columns of a stored response: the conversation with request and response, and its size."""
    conversation = pb.GenerateRequest(messages=request.messages)
    if response.candidates and response.candidates[0].message.parts:
        output = conversation.messages.add()
        output.CopyFrom(response.candidates[0].message)
        for part in output.parts:
            if part.HasField("state") and not part.state.channel:
                part.state.channel = row.channel  # no other channel may get the state
    # Two serialized messages one after the other are, in protobuf, the two messages merged.
    row.conversation = zlib.compress(earlier + conversation.SerializeToString(), level=1)
    stored = pb.StoredResponse(response=response, request=request, streamed=streamed)
    stored.request.ClearField("messages")
    _remove_conversation(stored.request)
    row.answer = zlib.compress(stored.SerializeToString(), level=1)
    row.size_bytes = len(row.conversation) + len(row.answer) + len(row.object_id) + 200


def _remove_conversation(request: pb.GenerateRequest) -> None:
    """Remove the messages from the caller's body; its other fields are stored, since a response repeats them."""
    codec = TEXT_FORMATS.get(request.source.format)
    if codec is None:
        return
    field = codec.conversation_field
    try:
        body = msgspec.json.decode(request.source.body, type=dict[str, msgspec.Raw])
    except (ValueError, RecursionError):
        request.source.body = b"{}"
        return
    body.pop(field, None)
    request.source.body = msgspec.json.encode(body)


def _messages(row: ResponseRow) -> pb.GenerateRequest:
    return pb.GenerateRequest.FromString(zlib.decompress(row.conversation))


def _response(row: ResponseRow) -> pb.StoredResponse:
    return pb.StoredResponse.FromString(zlib.decompress(row.answer))


def _output(row: ResponseRow) -> dict[str, list[pb.Message]]:
    return items_of(_response(row))


def _page(row: ResponseRow, request: pb.ListInputItemsRequest) -> pb.ListInputItemsResponse:
    own = _messages(row).messages[row.earlier_count : row.earlier_count + row.input_count]
    return page(own, f"{row.owner}\0{row.object_id}", request)


def _continue(row: ResponseRow, decoded: DecodedRequest[pb.GenerateRequest]) -> Continued:
    earlier = zlib.decompress(row.conversation)
    expanded = pb.GenerateRequest.FromString(earlier)
    if SEALED_BYTES in earlier and _compact(expanded):
        earlier = expanded.SerializeToString()
    count = len(expanded.messages)
    expanded.MergeFrom(decoded.canonical)
    expanded.ClearField("previous_response_id")
    whole = DecodedRequest(expanded, decoded.notes.with_edited("messages", "previous_response_id"))
    return Continued(decoded, whole, ResponseOrigin(row.channel, row.upstream_response_id), earlier, count)


def _compact(conversation: pb.GenerateRequest) -> bool:
    """Remove the turns before the newest summary of a conversation. Messages of users, instructions and the summary
    stay; earlier summaries do not. Return False for a conversation without a summary.
    """
    messages = conversation.messages
    at = next((at for at in reversed(range(len(messages))) if _is_summary(messages[at])), None)
    if at is None:
        return False
    kept = [each for each in messages[:at] if each.role in PROMPTING_ROLES and not _has_summary(each)]
    summary, later = messages[at], messages[at + 1 :]
    summary.role = pb.ROLE_USER
    compacted = pb.GenerateRequest(messages=[*kept, summary, *later])
    conversation.ClearField("messages")
    conversation.MergeFrom(compacted)
    return True


def _is_summary(message: pb.Message) -> bool:
    return message.role == pb.ROLE_ASSISTANT and _has_summary(message)


def _has_summary(message: pb.Message) -> bool:
    return any(part.HasField("compaction") for part in message.parts)


# --- failures


@asynccontextmanager
async def _reading() -> AsyncGenerator[None, None]:
    """Limit the time of the reads in the block."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            yield
    except (SQLAlchemyError, OSError) as error:  # TimeoutError is an OSError
        log_lines.warning("stored responses cannot be read", reason=reason_of(error))
        message = "stored responses cannot be read at the moment; try again"
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds="1") from error


def _is_id(response_id: str) -> bool:
    return 0 < len(response_id) <= MAX_OBJECT_ID_CHARACTERS and response_id.isprintable()


def _not_found(response_id: str, at: str = "") -> UmgError:
    shown = response_id[:MAX_OBJECT_ID_CHARACTERS]
    if at:
        message = f"Previous response with id '{shown}' not found."
        return UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=shown, field=at)
    return UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, f"Response with id '{shown}' not found.", id=shown)
