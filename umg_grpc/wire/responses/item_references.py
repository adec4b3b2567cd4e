"""Look-up of stored items that a caller references by id (`item_reference`). The gateway's item ids contain the
response id; only the provider can look up its own ids.
"""

import re

from msgspec import Raw, Struct, json

from umg_grpc.v1 import pb
from umg_grpc.wire.facts_beside_request import RequestNotes
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
"""Kind of part that becomes a separate input item -> prefix of the item's id."""
MESSAGE_PREFIX = "msg"  # prefix of the ids of all other items

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
    """Return the response id in an item id that the gateway made; "" for any other id."""
    own = _OWN_ITEM.fullmatch(item_id)
    return RESPONSE_PREFIX + own[1] if own else ""


def items_of(stored: pb.StoredResponse) -> dict[str, list[pb.Message]]:
    """Return item id -> messages for a stored response, as each item would be decoded if a caller sent it."""
    shown = pb.GenerateRequest()
    shown.CopyFrom(stored.request)
    shown.include.append(ENCRYPTED_INCLUDE)  # the reasoning state is included, whether or not the caller received it
    items = dict[str, list[pb.Message]]()
    for raw in json.decode(encode_response(stored.response, shown), type=_Output).output:
        request = pb.GenerateRequest()
        InputDecoder(request, RequestNotes()).decode([raw])
        items[json.decode(raw, type=_Reference).id] = list(request.messages)
    return items
