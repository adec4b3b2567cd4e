"""Input items of a stored response, as pages of a list: messages, tool calls, tool results and reasoning."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import assert_never

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.store.table_definitions import MAX_OBJECT_ID_CHARACTERS
from umg_grpc.v1 import pb
from umg_grpc.wire.responses.item_references import ITEM_PREFIXES, MESSAGE_PREFIX

PAGE_SIZE = 20


def page(messages: Iterable[pb.Message], scope: str, request: pb.ListInputItemsRequest) -> pb.ListInputItemsResponse:
    """Return a page of the input items in messages. An item without an id gets a generated one, the same in every call.
    `scope`: makes the generated ids unique to the response. Raise UmgError(INVALID_FIELD) for an unknown page token.
    """
    items = [item for message in messages for item in items_of(message)]
    ids = dict[str, int]()
    for position, item in enumerate(items):
        if not item.message_id or item.message_id in ids:
            digest = hashlib.sha256(f"{scope}\0{position}".encode()).hexdigest()[:48]
            _set_id(item, f"{_prefix(item)}_{digest}")
        ids[item.message_id] = position
    start = len(items) if not request.ascending else -1
    if after := request.page_token:
        if after not in ids:
            message = f"page_token: there is no item {after[:MAX_OBJECT_ID_CHARACTERS]!r} in this response's input"
            raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="page_token")
        start = ids[after]
    following = items[start + 1 :] if request.ascending else items[:start][::-1]
    size = request.page_size if request.HasField("page_size") else PAGE_SIZE
    next_token = following[size - 1].message_id if len(following) > size else ""
    return pb.ListInputItemsResponse(items=following[:size], next_page_token=next_token)


def items_of(message: pb.Message) -> Iterator[pb.Message]:
    """Split a message into items: one for each tool call, tool result and reasoning part, and one for each run of other
    parts. Formats that have several of these in one message are thus listed like formats with an item for each.
    """
    if len(message.parts) <= 1:
        yield _item(message, list(message.parts), message.message_id)
        return
    run = list[pb.Part]()
    for part in message.parts:
        alone = part.WhichOneof("kind") in ITEM_PREFIXES
        if run and (alone or part.message_id != run[0].message_id):
            yield _item(message, run, run[0].message_id or message.message_id)
            run = []
        if alone:
            yield _item(message, [part], "")
        else:
            run.append(part)
    if run:
        yield _item(message, run, run[0].message_id or message.message_id)


def _item(message: pb.Message, parts: list[pb.Part], item_id: str) -> pb.Message:
    """Return an item: a message with these parts and the role of `message`. `item_id`: from the caller, or ""."""
    item = pb.Message(role=message.role, name=message.name, phase=message.phase, parts=parts)
    part = parts[0] if parts else pb.Part()
    match part.WhichOneof("kind"):
        case "tool_call":
            item_id = part.tool_call.item_id or item_id
        case "tool_result":
            item_id = part.tool_result.item_id or item_id
        case "reasoning":
            item_id = part.reasoning.item_id or item_id
        case "server_tool_call":
            item_id = part.server_tool_call.call_id or item_id
        case "compaction":
            item_id = part.compaction.item_id or item_id
        case "opaque":
            with suppress(ValueError, RecursionError):
                item_id = item_id or msgspec.json.decode(part.opaque.json, type=_IdOnly).id
        case "text" | "media" | "server_tool_result" | "refusal" | None:
            pass
        case unhandled:
            assert_never(unhandled)
    _set_id(item, item_id)
    return item


class _IdOnly(msgspec.Struct):
    """Item that is stored as the raw JSON of its format, of which only the id is read."""

    id: str = ""


def _set_id(item: pb.Message, item_id: str) -> None:
    """Set the id of an item in each field from which the format of a caller may read it."""
    item.message_id = item_id
    part = item.parts[0] if item.parts else pb.Part()
    match part.WhichOneof("kind"):
        case "tool_call":
            part.tool_call.item_id = item_id
        case "tool_result":
            part.tool_result.item_id = item_id
        case "reasoning":
            part.reasoning.item_id = item_id
        case "compaction":
            part.compaction.item_id = item_id
        case "text" | "media" | "server_tool_call" | "server_tool_result" | "refusal" | "opaque" | None:
            pass
        case unhandled:
            assert_never(unhandled)


def _prefix(item: pb.Message) -> str:
    kind = item.parts[0].WhichOneof("kind") if item.parts else None
    return ITEM_PREFIXES.get(kind or "", MESSAGE_PREFIX)
