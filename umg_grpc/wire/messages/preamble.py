"""Whether events say anything yet: a message and its first block begin before they do."""

import re

import msgspec
from msgspec import Raw, Struct

from umg_grpc.wire.json import ABSENT
from umg_grpc.wire.preamble import MEMBERS, are_nothing, is_nothing, preamble

TEXTS = frozenset({b'"text"', b'"thinking"'})


class _Message(Struct):
    content: Raw = ABSENT


class _Event(Struct):
    type: str
    message: _Message | None = None
    content_block: Raw = ABSENT


_EVENT = msgspec.json.Decoder(_Event)
_TYPE = frozenset({"type"})


def _says_nothing(data: bytes) -> bool:
    event = _EVENT.decode(data)
    match event.type:
        case "ping":
            return True
        case "message_start":
            return event.message is None or is_nothing(event.message.content)
        case "content_block_start":
            block = MEMBERS.decode(event.content_block)
            return bytes(block.get("type", b"")) in TEXTS and are_nothing(block, _TYPE)
    return False


is_preamble = preamble(_says_nothing, re.compile(rb'_delta"'))
