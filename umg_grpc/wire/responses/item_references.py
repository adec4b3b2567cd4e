"""Items that a caller names instead of sending them again (`item_reference`), found in the responses that we keep.

An id of ours tells the response that it is of; those of providers only they know.
"""

import re

from msgspec import Raw, Struct, json

from umg_grpc.v1 import pb
from umg_grpc.wire.responses.items import OURS, InputDecoder
from umg_grpc.wire.responses.options import ENCRYPTED
from umg_grpc.wire.responses.response import encode_response

RESPONSE_PREFIX = "resp_"
CORE_CHARACTERS = 32  # of a response id of ours, behind its prefix: all of them stand in the ids of its items

_OWN_ITEM = re.compile(rf"[a-z]+_{OURS}([0-9a-f]{{{CORE_CHARACTERS}}})_[0-9]+")


class _Reference(Struct):
    id: str = ""


class _Output(Struct):
    output: list[Raw]


def referenced(message: pb.Message) -> str:
    """Id of the item that stands for itself in this message; "" where it is none."""
    if message.role or len(message.parts) != 1 or message.parts[0].opaque.type != "item_reference":
        return ""
    return json.decode(message.parts[0].opaque.json, type=_Reference).id


def response_of(item_id: str) -> str:
    """Id of the response of ours that the item is of; "" for a provider's item."""
    own = _OWN_ITEM.fullmatch(item_id)
    return RESPONSE_PREFIX + own[1] if own else ""


def items_of(stored: pb.StoredResponse) -> dict[str, list[pb.Message]]:
    """What each output item of a stored response says as input, by its id."""
    shown = pb.GenerateRequest()
    shown.CopyFrom(stored.request)
    shown.include.append(ENCRYPTED)  # what was thought goes along, whether or not the caller was shown it
    items = dict[str, list[pb.Message]]()
    for raw in json.decode(encode_response(stored.response, shown), type=_Output).output:
        request = pb.GenerateRequest()
        InputDecoder(request).decode([raw])
        items[json.decode(raw, type=_Reference).id] = list(request.messages)
    return items
