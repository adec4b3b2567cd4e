"""Whether events say anything yet: a response, its first item and its first part begin before they do."""

import re

import msgspec
from msgspec import Raw, Struct

from umg_grpc.wire.json import ABSENT
from umg_grpc.wire.preamble import MEMBERS, are_nothing, is_nothing, preamble
from umg_grpc.wire.responses.events import BEGINNINGS

# Of an item that begins, what is no answer; a state of reasoning is of use only with what was thought.
ITEM = frozenset({"type", "id", "status", "role", "phase", "encrypted_content"})
ITEMS = frozenset({b'"message"', b'"reasoning"'})
PARTS = frozenset({b'"output_text"', b'"refusal"', b'"summary_text"', b'"reasoning_text"'})


class _Response(Struct):
    output: Raw = ABSENT
    error: Raw = ABSENT


class _Event(Struct):
    type: str
    response: _Response | None = None
    item: Raw = ABSENT
    part: Raw = ABSENT
    error: Raw = ABSENT


_EVENT = msgspec.json.Decoder(_Event)
_TYPE = frozenset({"type"})


def _says_nothing(data: bytes) -> bool:
    event = _EVENT.decode(data)
    if not is_nothing(event.error):
        return False
    if event.type in BEGINNINGS:
        response = event.response
        return response is None or (is_nothing(response.output) and is_nothing(response.error))
    match event.type:
        case "response.output_item.added":
            return _is_empty(event.item, ITEMS, ITEM)
        case "response.content_part.added" | "response.reasoning_summary_part.added":
            return _is_empty(event.part, PARTS, _TYPE)
    return False


def _is_empty(raw: Raw, kinds: frozenset[bytes], known: frozenset[str]) -> bool:
    members = MEMBERS.decode(raw)
    return bytes(members.get("type", b"")) in kinds and are_nothing(members, known)


is_preamble = preamble(_says_nothing, re.compile(rb'\.delta"'))
