"""Repair of passed-through chat responses that typed clients cannot read: choices without index, delta, message or
known finish reason; content as a list of parts; usage without totals.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Protocol

import msgspec
from msgspec import Raw, UnsetType

from umg_grpc.wire.chat.passthrough_call_repair import Calls
from umg_grpc.wire.chat.shared_response_fields import (
    FINISH_NAMES,
    FINISH_REASONS,
    ProviderMessage,
    content_text,
    reasoning_text,
)
from umg_grpc.wire.core.finish_reason_conversion import finish_reason_of
from umg_grpc.wire.core.json_decoding import MEMBERS_DECODER, JsonObject, is_present
from umg_grpc.wire.core.raw_json_edits import EACH_ELEMENT, edit_values

JSON_NULL = Raw(b"null")
CONTENT_LISTS = b'"content":[', b'"content": ['
"""Bytes in a message or delta whose content is a list of parts, as in responses of Mistral's reasoning models."""
EMPTY_MESSAGE = Raw(b'{"role":"assistant","content":null}')


class Choice(Protocol):
    """Choice of a passed-through chunk, with the members that are decoded."""

    index: int | None
    finish_reason: str | UnsetType | None
    delta: Raw


def is_odd(choice: Choice) -> bool:
    """Return whether typed clients cannot read a choice: no index or delta, unknown finish reason, list as content."""
    delta = bytes(choice.delta)
    return choice.index is None or len(delta) < len(b"{}") or _is_odd_reason(choice.finish_reason) or has_list(delta)


def has_list(data: bytes) -> bool:
    """Return whether `data` (a body, message or delta) contains a message whose content is a list of parts."""
    return CONTENT_LISTS[0] in data or CONTENT_LISTS[1] in data


def _is_odd_reason(reason: str | UnsetType | None) -> bool:
    return isinstance(reason, str) and reason not in FINISH_REASONS


def chunk_with_choices(data: bytes) -> bytes:
    """Return a chunk that typed clients can read: each choice has an index, a delta (also where the provider sent a
    message) and a finish reason of this format or null.
    """
    members = MEMBERS_DECODER.decode(data)
    raw = members.get("choices", JSON_NULL)
    choices = msgspec.json.decode(raw, type=list[dict[str, Raw]] | None) or []
    members["choices"] = Raw(msgspec.json.encode([_right_choice(*each, "delta") for each in enumerate(choices)]))
    return msgspec.json.encode(members)


def body_with_choices(body: bytes) -> bytes:
    """Return a complete response whose choices have their index, a message, and a finish reason of this format."""
    positions = count()
    return bytes(edit_values(Raw(body), ("choices", EACH_ELEMENT), lambda choice: _right(choice, next(positions))))


def _right(choice: Raw, position: int) -> Raw:
    return Raw(msgspec.json.encode(_right_choice(position, MEMBERS_DECODER.decode(choice), "message")))


def _right_choice(position: int, choice: dict[str, Raw], content: str) -> dict[str, Raw]:
    if not is_present(choice.get("index", JSON_NULL)):
        choice["index"] = Raw(b"%d" % position)
    if content == "delta" and not is_present(choice.get(content, JSON_NULL)):
        choice[content] = choice.pop("message", Raw(b"{}"))
    elif not is_present(choice.get(content, JSON_NULL)):
        choice[content] = EMPTY_MESSAGE
    if has_list(bytes(choice[content])):
        choice[content] = _without_list(choice[content])
    reason = msgspec.json.decode(choice.get("finish_reason", JSON_NULL), type=str | None)
    if reason is not None and _is_odd_reason(reason):
        word = FINISH_NAMES.get(finish_reason_of(reason), "stop") if reason else None
        choice["finish_reason"] = Raw(msgspec.json.encode(word))
    return choice


def _without_list(raw: Raw) -> Raw:
    """Return a message or delta with its list of parts replaced by one text, and the reasoning in a separate member."""
    members, message = MEMBERS_DECODER.decode(raw), msgspec.json.decode(raw, type=ProviderMessage)
    if not isinstance(message.content, list):
        return raw
    members["content"] = Raw(msgspec.json.encode(content_text(message.content) or None))
    if thoughts := reasoning_text(message):
        members["reasoning_content"] = Raw(msgspec.json.encode(thoughts))
    return Raw(msgspec.json.encode(members))


def with_totals(data: bytes, totals: JsonObject) -> bytes:
    """Return a response or chunk with `totals` added to its usage."""
    members = MEMBERS_DECODER.decode(data)
    members["usage"] = Raw(msgspec.json.encode(MEMBERS_DECODER.decode(members["usage"]) | totals))
    return msgspec.json.encode(members)


def finish_chunks(head: JsonObject, reason: str, candidates: Iterable[int]) -> Iterator[bytes]:
    """Yield the data of a last chunk for each candidate without a finish reason. `head`: members of all chunks."""
    for index in candidates:
        choice = {"index": index, "delta": {}, "finish_reason": reason}
        yield msgspec.json.encode({**head, "object": "chat.completion.chunk", "choices": [choice]})


def with_finish_reasons(body: bytes) -> bytes:
    """Return a complete response in which each choice without a finish reason has one."""
    return bytes(edit_values(Raw(body), ("choices", EACH_ELEMENT), _finished))


def _finished(choice: Raw) -> Raw:
    members = msgspec.json.decode(choice, type=dict[str, Raw])
    if msgspec.json.decode(members.get("finish_reason", JSON_NULL)):
        return choice
    message = msgspec.json.decode(members.get("message", JSON_NULL), type=Calls | None)
    members["finish_reason"] = Raw(b'"tool_calls"' if message and message.tool_calls else b'"stop"')
    return Raw(msgspec.json.encode(members))
