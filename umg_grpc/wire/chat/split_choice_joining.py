"""Joining of choices, for relays that send the text of one response as one choice and its tool calls as another."""

from collections.abc import Iterable

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.reasoning_state_members import REASONING_CARRIERS
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.shared_response_fields import OVERRIDDEN_REASONS
from umg_grpc.wire.core.finish_reason_conversion import finish_reason_of
from umg_grpc.wire.core.json_decoding import ELEMENTS_DECODER, MEMBERS_DECODER, is_present

_STATE = [row for row in REASONING_CARRIERS if row.place == "message"]
TEXT_MEMBERS = ("content", "reasoning_content", "refusal", *(row.text_member for row in _STATE if row.text_member))
STATE_LISTS = tuple(row.member.partition(".")[0] for row in _STATE if row.merge != "replace")
"""Members that hold a list of reasoning state, either directly or inside an object."""
JOINED_MEMBERS = tuple(dict.fromkeys((*TEXT_MEMBERS, "tool_calls", "annotations", "images", *STATE_LISTS)))
"""Members of messages whose values are joined across all choices. Of any other member, the first value is kept."""


def wants_one(request: pb.GenerateRequest) -> bool:
    """Return whether the caller requested a single candidate, as nearly all callers do."""
    return request.candidate_count <= 1


def joint_reason(reasons: Iterable[str | None]) -> str | None:
    """Return the finish reason of joined choices: the first that is no regular stop, else the first; None if none."""
    stated = [reason for reason in reasons if reason]
    special = (reason for reason in stated if finish_reason_of(reason) not in OVERRIDDEN_REASONS)
    return next(special, stated[0] if stated else None)


def joined_body(body: bytes) -> bytes:
    """Return a response with all choices joined into the first one. Raise ValueError if it cannot be decoded."""
    members = MEMBERS_DECODER.decode(body)
    choices = [MEMBERS_DECODER.decode(choice) for choice in ELEMENTS_DECODER.decode(members["choices"])]
    reasons = (choice.get("finish_reason", Raw(b"null")) for choice in choices)
    reason = joint_reason(msgspec.json.decode(reason, type=str | None) for reason in reasons)
    return _with_joined(members, choices, "message", Raw(msgspec.json.encode(reason)))


def joined_chunk(data: bytes) -> bytes:
    """Return a chunk with joined choices and no finish reason: content may follow. Raise ValueError if it is broken."""
    members = MEMBERS_DECODER.decode(data)
    choices = [MEMBERS_DECODER.decode(choice) for choice in ELEMENTS_DECODER.decode(members["choices"])]
    return _with_joined(members, choices, "delta", Raw(b"null"))


def _with_joined(members: dict[str, Raw], choices: list[dict[str, Raw]], content: str, reason: Raw) -> bytes:
    first = {name: value for choice in reversed(choices) for name, value in choice.items() if is_present(value)}
    messages = [MEMBERS_DECODER.decode(choice[content]) for choice in choices if is_present(choice.get(content, Raw()))]
    if messages:
        first[content] = _joined_message(messages)
    first |= {"index": Raw(b"0"), "finish_reason": reason}
    members["choices"] = Raw(msgspec.json.encode([first]))
    return msgspec.json.encode(members)


def _joined_message(messages: list[dict[str, Raw]]) -> Raw:
    joined = {name: value for message in reversed(messages) for name, value in message.items() if is_present(value)}
    for name in JOINED_MEMBERS:
        values = [value for message in messages if is_present(value := message.get(name, Raw()))]
        if len(values) > 1:
            joined[name] = _joined(values)
    return Raw(msgspec.json.encode(joined))


def _joined(values: list[Raw]) -> Raw:
    """Return several values as one: texts, lists, or objects with lists, joined; the first if their types differ."""
    if all(bytes(value).startswith(b'"') for value in values):
        return Raw(msgspec.json.encode("".join(msgspec.json.decode(value, type=str) for value in values)))
    if all(bytes(value).startswith(b"[") for value in values):
        return Raw(msgspec.json.encode([element for value in values for element in ELEMENTS_DECODER.decode(value)]))
    if all(bytes(value).startswith(b"{") for value in values):
        return _joined_object([MEMBERS_DECODER.decode(value) for value in values])
    return values[0]


def _joined_object(objects: list[dict[str, Raw]]) -> Raw:
    joined = dict[str, Raw]()
    for name, value in ((name, value) for each in objects for name, value in each.items() if is_present(value)):
        before = joined.get(name, value)
        is_further = name in joined and bytes(before).startswith(b"[")
        joined[name] = _joined([before, value]) if is_further else before
    return Raw(msgspec.json.encode(joined))
