"""Look-up of items referenced by id instead of sent again (`item_reference`), in stored responses. The gateway's ids
contain their response's; only providers can look up their own.
"""

import re

from msgspec import Raw, Struct, json

from umg_grpc.v1 import pb
from umg_grpc.wire.request_notes import RequestNotes
from umg_grpc.wire.responses.decode_messages import OWN_PREFIX, InputDecoder
from umg_grpc.wire.responses.encode_options import ENCRYPTED_INCLUDE
from umg_grpc.wire.responses.response import encode_response

RESPONSE_PREFIX = "resp_"
CORE_CHARACTERS = 32  # of a response id of ours, after its prefix: the ids of its items contain all of them
ITEM_PREFIXES = {
    "tool_call": "fc",
    "tool_result": "fco",
    "reasoning": "rs",
    "server_tool_call": "ws",
    "server_tool_result": "ws",
    "compaction": "cmp",
}
"""Beginnings of the ids of input items, by the kinds of parts that are items of their own."""
MESSAGE_PREFIX = "msg"
"""Beginning of the ids of all other items."""

_OWN_ITEM = re.compile(rf"[a-z]+_{OWN_PREFIX}([0-9a-f]{{{CORE_CHARACTERS}}})_[0-9]+")


class _Reference(Struct):
    id: str = ""


class _Output(Struct):
    output: list[Raw]


def referenced(message: pb.Message) -> str:
    """Return the id of the earlier item in an `item_reference`; "" for any other message."""
    if message.role or len(message.parts) != 1 or message.parts[0].opaque.type != "item_reference":
        return ""
    return json.decode(message.parts[0].opaque.json, type=_Reference).id


def response_of(item_id: str) -> str:
    """Return the id of the response that contains an item, which is a part of the ids that the gateway gives to items;
    "" for any other id, for example of an item that a provider stores.
    """
    own = _OWN_ITEM.fullmatch(item_id)
    return RESPONSE_PREFIX + own[1] if own else ""


def items_of(stored: pb.StoredResponse) -> dict[str, list[pb.Message]]:
    """Return item id -> the messages that the item of a stored response becomes if a caller sends it."""
    shown = pb.GenerateRequest()
    shown.CopyFrom(stored.request)
    shown.include.append(ENCRYPTED_INCLUDE)  # the reasoning state is included, whether or not the caller received it
    items = dict[str, list[pb.Message]]()
    for raw in json.decode(encode_response(stored.response, shown), type=_Output).output:
        request = pb.GenerateRequest()
        InputDecoder(request, RequestNotes()).decode([raw])
        items[json.decode(raw, type=_Reference).id] = list(request.messages)
    return items
