"""The input of a stored response as a list of items, in pages. Pure."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from umg_grpc.errors import UmgError
from umg_grpc.store.tables import MAX_OBJECT_ID_CHARACTERS
from umg_grpc.v1 import pb

PAGE_SIZE = 20

# Beginnings of the ids of items, as the responses format has them.
PREFIXES = {
    "tool_call": "fc",
    "tool_result": "fco",
    "reasoning": "rs",
    "server_tool_call": "ws",
    "server_tool_result": "ws",
}
MESSAGE_PREFIX = "msg"


def page(asked: Iterable[pb.Message], scope: str, request: pb.ListInputItemsRequest) -> pb.ListInputItemsResponse:
    """A page of the items that a response was asked, each with an id that stays: `scope` tells the response from
    others. Raises UmgError(INVALID_FIELD) for an `after` that is no item of it.
    """
    items = [item for message in asked for item in items_of(message)]
    ids = dict[str, int]()
    for position, item in enumerate(items):
        if not item.message_id or item.message_id in ids:
            digest = hashlib.sha256(f"{scope}\0{position}".encode()).hexdigest()[:48]
            _set_id(item, f"{_prefix(item)}_{digest}")
        ids[item.message_id] = position
    place = len(items) if not request.ascending else -1
    if request.after:
        if request.after not in ids:
            message = f"after: there is no item {request.after[:MAX_OBJECT_ID_CHARACTERS]!r} in this response's input"
            raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="after")
        place = ids[request.after]
    following = items[place + 1 :] if request.ascending else items[:place][::-1]
    size = request.page_size if request.HasField("page_size") else PAGE_SIZE
    return pb.ListInputItemsResponse(items=following[:size], has_more=len(following) > size)


def items_of(message: pb.Message) -> Iterator[pb.Message]:
    """The message as items: a call, a result and a thought are one each; texts and media that stand together are one.

    Formats whose turns hold all of these in one message are listed like those whose items do not.
    """
    if len(message.parts) <= 1:
        yield _item(message, list(message.parts), message.message_id)
        return
    run = list[pb.Part]()
    for part in message.parts:
        alone = part.WhichOneof("kind") in PREFIXES
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
    """These parts of the message as an item under the id that its caller gave it, "" for none."""
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
        case "opaque":
            with suppress(ValueError, RecursionError):
                item_id = item_id or msgspec.json.decode(part.opaque.json, type=_Identified).id
        case _:
            pass
    _set_id(item, item_id)
    return item


class _Identified(msgspec.Struct):
    """An item that only its own format knows."""

    id: str = ""


def _set_id(item: pb.Message, item_id: str) -> None:
    """Gives the item its id in each place where a face looks for it."""
    item.message_id = item_id
    part = item.parts[0] if item.parts else pb.Part()
    match part.WhichOneof("kind"):
        case "tool_call":
            part.tool_call.item_id = item_id
        case "tool_result":
            part.tool_result.item_id = item_id
        case "reasoning":
            part.reasoning.item_id = item_id
        case _:
            pass


def _prefix(item: pb.Message) -> str:
    kind = item.parts[0].WhichOneof("kind") if item.parts else None
    return PREFIXES.get(kind or "", MESSAGE_PREFIX)
