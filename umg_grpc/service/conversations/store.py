"""Responses that callers can look up and continue, on every upstream: each with the whole conversation that it ends."""

import asyncio
import secrets
import zlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, NoReturn

import msgspec
import structlog
from sqlalchemy.exc import SQLAlchemyError
from structlog.typing import FilteringBoundLogger

from umg_grpc.access.keys import utc_now
from umg_grpc.errors import UmgError
from umg_grpc.service.input_items import page
from umg_grpc.store import Store
from umg_grpc.store.background import reason_of
from umg_grpc.store.retained import Bounds, Retained
from umg_grpc.store.tables import MAX_OBJECT_ID_CHARACTERS, KeptResponse
from umg_grpc.v1 import pb
from umg_grpc.wire.responses.references import CORE_CHARACTERS, RESPONSE_PREFIX, items_of, referenced, response_of

LIFETIME = timedelta(days=30)
BOUNDS = Bounds(owner_bytes=2**30, total_bytes=8 * 2**30)
KEEP_SECONDS = 2.0  # that an answer waits for the database, which should take a millisecond
READ_SECONDS = 5.0
SMALL_BYTES = 64 * 2**10  # what is packed in a millisecond; more is done in a thread
PACKED_BYTES = 8 * 2**10  # the same of what is unpacked, which may be many times as large
MOST_NAMED = 500  # responses whose items a request names; each is read

# Field of each format's body that holds the conversation.
CONVERSATION_FIELDS = {"responses": "input", "chat": "messages", "messages": "messages", "native": "contents"}

logger: FilteringBoundLogger = structlog.get_logger(__name__)


class Place(NamedTuple):
    """Where an answer was made."""

    channel: str
    upstream_response_id: str  # "" where the provider knows it by none


# What providers say of an id that they no longer know.
FORGOTTEN = frozenset({"previous_response_not_found"})


@dataclass
class Continued:
    """A request that continues a response."""

    caller_request: pb.GenerateRequest
    """As the caller sent it."""
    request: pb.GenerateRequest
    """With the whole conversation, and continuing nothing."""
    place: Place
    """Where the earlier response was made, and can be continued by its id there."""
    earlier: bytes
    """The conversation before the request, as `KeptResponse.conversation` has it, unpacked."""
    earlier_count: int
    _forgotten: bool = False  # whether the provider no longer knows the response

    def told_to(self, channel: str, *, same: bool) -> pb.GenerateRequest:
        """Return the request as it goes to a channel; `same`: whether that speaks the caller's own format."""
        known = self.place.upstream_response_id and self.place.channel == channel and not self._forgotten
        return self._by_id if same and known else self.request

    def mends(self, told: pb.GenerateRequest, error: UmgError) -> bool:
        """Return whether the call is good if the provider is told the whole conversation: it has forgotten the
        response.
        """
        if not told.previous_response_id or self._forgotten:
            return False
        if error.metadata.get("upstream_status") != "404" and error.metadata.get("upstream_code") not in FORGOTTEN:
            return False
        self._forgotten = True
        return True

    @property
    def _by_id(self) -> pb.GenerateRequest:
        """The caller's request, with the id that is known where the response was made."""
        request = self.caller_request
        if request.previous_response_id == self.place.upstream_response_id:
            return request
        sent = pb.GenerateRequest()
        sent.CopyFrom(request)
        sent.previous_response_id = self.place.upstream_response_id
        _edited(sent, "previous_response_id")
        return sent


def new_response_id() -> str:
    """An id that nobody can guess, for a response that has none of its provider's."""
    return RESPONSE_PREFIX + secrets.token_hex(CORE_CHARACTERS // 2)


class Conversations:
    """The stored responses of all callers, from `start` to `aclose`. An owner is the id of a caller's key: to any other
    the responses do not exist.

    Reading raises UmgError(UNAVAILABLE) while the database is away.
    """

    def __init__(
        self,
        store: Store,
        *,
        lifetime: timedelta = LIFETIME,
        bounds: Bounds = BOUNDS,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._rows = Retained(store, KeptResponse, bounds, now)
        self._lifetime = lifetime
        self._now = now

    def start(self) -> None:
        """From now on responses can be kept."""
        self._rows.start()

    async def aclose(self) -> None:
        """Ends the work behind it."""
        await self._rows.aclose()

    async def sweep(self) -> None:
        """Forgets what has expired or is too much, which is done once a minute anyway."""
        await self._rows.sweep()

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
        """Keeps a finished answer by its id. When this returns, every process finds it; so it is awaited before the
        caller learns that the answer is whole.

        `request` is as its caller sent it, `continued` what `continue_` made of it. `response` has its candidates, also
        where it was passed on (see `wire/gather.py`); the first one continues the conversation. False when it could not
        be kept, which the log tells: the answer is good all the same.
        """
        if not _is_id(response.response_id):
            logger.warning("a response is not kept: its id is too long or not printable", channel=channel)
            return False
        now = self._now()
        row = KeptResponse(
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
        kept = await self._rows.put(row, KEEP_SECONDS)
        if not kept:
            logger.warning("a response is not kept, or later only", response_id=response.response_id, channel=channel)
        return kept

    async def continue_(self, owner: str, request: pb.GenerateRequest) -> Continued:
        """The request with the conversation of its `previous_response_id` before its own messages; the instructions are
        its own alone. Raises UmgError(OBJECT_NOT_FOUND).
        """
        row = await self._row(owner, request.previous_response_id, "previous_response_id")
        if len(row.conversation) <= PACKED_BYTES and request.ByteSize() <= SMALL_BYTES:
            return _continue(row, request)
        return await asyncio.to_thread(_continue, row, request)

    async def resolve(self, owner: str, request: pb.GenerateRequest) -> pb.GenerateRequest:
        """The request with the items that it only names by ids of ours; itself where there are none. Raises
        UmgError(OBJECT_NOT_FOUND) for one that this caller has not, or no more.
        """
        named = {at: item for at, message in enumerate(request.messages) if (item := referenced(message))}
        found = dict[str, list[pb.Message]]()
        responses = dict.fromkeys(response_id for item in named.values() if (response_id := response_of(item)))
        if len(responses) > MOST_NAMED:
            text = f"input: it names items of more than {MOST_NAMED} responses; send the items themselves"
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
        _edited(resolved, "messages")
        return resolved

    async def get(self, owner: str, response_id: str) -> pb.StoredResponse:
        """Raises UmgError(OBJECT_NOT_FOUND)."""
        row = await self._row(owner, response_id)
        if len(row.answer) <= PACKED_BYTES:
            return _answer(row)
        return await asyncio.to_thread(_answer, row)

    async def delete(self, owner: str, response_id: str) -> Place:
        """Forgets the response, also for continuation; those that continued it already stay whole. Says where it was
        made. Raises UmgError(OBJECT_NOT_FOUND).
        """
        row = await self._row(owner, response_id)
        async with _reading():
            if not await self._rows.delete(owner, response_id):
                raise _not_found(response_id)
        return Place(row.channel, row.upstream_response_id)

    async def cancel(self, owner: str, response_id: str) -> NoReturn:
        """Raises UmgError: OBJECT_NOT_FOUND, else WRONG_STATE, for what is kept is finished."""
        status = (await self.get(owner, response_id)).response.status or "completed"
        message = f"response {response_id} is {status}; only one that is being made in the background can be cancelled"
        raise UmgError(pb.ERROR_REASON_WRONG_STATE, message, state=status)

    async def list_items(self, owner: str, request: pb.ListInputItemsRequest) -> pb.ListInputItemsResponse:
        """What the response was asked itself, without what earlier responses brought: one message an item, each with an
        id that stays. Raises UmgError: OBJECT_NOT_FOUND, INVALID_FIELD for an `after` that is no item of it.
        """
        row = await self._row(owner, request.response_id)
        if len(row.conversation) <= PACKED_BYTES:
            return _page(row, request)
        return await asyncio.to_thread(_page, row, request)

    async def _row(self, owner: str, response_id: str, at: str = "") -> KeptResponse:
        row = None
        if _is_id(response_id):
            async with _reading():
                row = await self._rows.get(owner, response_id)
        if row is None:
            raise _not_found(response_id, at)
        return row


# --- rows


def _pack(
    row: KeptResponse, request: pb.GenerateRequest, response: pb.GenerateResponse, earlier: bytes, *, streamed: bool
) -> None:
    """Fills in what is kept of request and answer."""
    said = pb.GenerateRequest(messages=request.messages)
    if response.candidates and response.candidates[0].message.parts:
        output = said.messages.add()
        output.CopyFrom(response.candidates[0].message)
        for part in output.parts:
            if part.HasField("state") and not part.state.channel:
                part.state.channel = row.channel  # no other may be given it
    # Serialized messages of one field, one behind the other, are the messages of both.
    row.conversation = zlib.compress(earlier + said.SerializeToString(), level=1)
    stored = pb.StoredResponse(response=response, request=request, streamed=streamed)
    stored.request.ClearField("messages")
    _forget_conversation(stored.request)
    row.answer = zlib.compress(stored.SerializeToString(), level=1)
    row.size_bytes = len(row.conversation) + len(row.answer) + len(row.object_id) + 200


def _forget_conversation(request: pb.GenerateRequest) -> None:
    """Takes the conversation out of the source document: what is left of it is for echoes."""
    field = CONVERSATION_FIELDS.get(request.source.format)
    if field is None:
        return
    try:
        body = msgspec.json.decode(request.source.body, type=dict[str, msgspec.Raw])
    except (ValueError, RecursionError):
        request.source.body = b"{}"
        return
    body.pop(field, None)
    request.source.body = msgspec.json.encode(body)


def _messages(row: KeptResponse) -> pb.GenerateRequest:
    return pb.GenerateRequest.FromString(zlib.decompress(row.conversation))


def _answer(row: KeptResponse) -> pb.StoredResponse:
    return pb.StoredResponse.FromString(zlib.decompress(row.answer))


def _output(row: KeptResponse) -> dict[str, list[pb.Message]]:
    return items_of(_answer(row))


def _page(row: KeptResponse, request: pb.ListInputItemsRequest) -> pb.ListInputItemsResponse:
    own = _messages(row).messages[row.earlier_count : row.earlier_count + row.input_count]
    return page(own, f"{row.owner}\0{row.object_id}", request)


def _continue(row: KeptResponse, request: pb.GenerateRequest) -> Continued:
    earlier = zlib.decompress(row.conversation)
    expanded = pb.GenerateRequest.FromString(earlier)
    count = len(expanded.messages)
    expanded.MergeFrom(request)
    expanded.ClearField("previous_response_id")
    _edited(expanded, "messages", "previous_response_id")
    return Continued(request, expanded, Place(row.channel, row.upstream_response_id), earlier, count)


def _edited(request: pb.GenerateRequest, *fields: str) -> None:
    """Notes what the source document does not say, for an upstream that starts from it."""
    if request.HasField("source"):
        request.source.edited_fields.extend(field for field in fields if field not in request.source.edited_fields)


# --- failures


@asynccontextmanager
async def _reading() -> AsyncGenerator[None, None]:
    """Bounds what the database takes. Raises UmgError(UNAVAILABLE)."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            yield
    except (SQLAlchemyError, OSError) as error:  # TimeoutError is an OSError
        logger.warning("stored responses cannot be read", reason=reason_of(error))
        message = "stored responses cannot be read at the moment; try again"
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message) from error


def _is_id(response_id: str) -> bool:
    return 0 < len(response_id) <= MAX_OBJECT_ID_CHARACTERS and response_id.isprintable()


def _not_found(response_id: str, at: str = "") -> UmgError:
    shown = response_id[:MAX_OBJECT_ID_CHARACTERS]
    if at:
        message = f"Previous response with id '{shown}' not found."
        return UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=shown, field=at)
    return UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, f"Response with id '{shown}' not found.", id=shown)
