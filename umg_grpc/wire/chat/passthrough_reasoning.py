"""Edits of reasoning and its state in a passed-through chat body: some providers require them, others reject them."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.provider_reasoning_members import from_canonical, joined, put, text_member
from umg_grpc.wire.chat.thought_signatures import encode_signature, is_signed
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, is_present, parse
from umg_grpc.wire.dropped_fields_report import Report

REASONING_FIELD = "reasoning_content"


def edit_reasoning(request: pb.GenerateRequest, report: Report, quirks: Quirks) -> JsonObject:
    """Return {"messages": [...]} with stored reasoning that the client left out, and without rejected reasoning."""
    messages = parse(_Body, request.source.body).messages
    if quirks.reasoning_content is False:
        if any(REASONING_FIELD in _members(raw) for raw in messages):
            report.drop("reasoning")
        messages = [_without(raw) for raw in messages]
    for index, message in enumerate(request.messages[: len(messages)]):
        if message.role == pb.ROLE_ASSISTANT:
            messages[index] = _completed(messages[index], message, quirks)
    return {"messages": messages}


class _Body(msgspec.Struct):
    messages: list[Raw]


def _completed(raw: Raw, message: pb.Message, quirks: Quirks) -> Raw:
    """Return a body's message with reasoning and states that only the canonical `message` has; `raw` itself if none."""
    members, state = _members(raw), joined(from_canonical(part.state) for part in message.parts)
    added = JsonObject()
    put(state, added, "message")
    field = text_member(state) or REASONING_FIELD
    thoughts = [text for part in message.parts for text in part.reasoning.texts or part.reasoning.summaries]
    if thoughts and (field != REASONING_FIELD or quirks.reasoning_content is not False):
        added[field] = "".join(thoughts)
    missing = {name: value for name, value in added.items() if not is_present(members.get(name, ABSENT_MEMBER))}
    calls = {part.tool_call.call_id: part for part in message.parts if part.HasField("tool_call")}
    if any(part.HasField("state") for part in calls.values()) and is_present(members.get("tool_calls", ABSENT_MEMBER)):
        missing["tool_calls"] = [_completed_call(raw, calls) for raw in parse(list[Raw], members["tool_calls"])]
    return Raw(msgspec.json.encode({**members, **missing})) if missing else raw


class _PassedCall(msgspec.Struct):
    id: str = ""


def _completed_call(raw: Raw, parts: Mapping[str, pb.Part]) -> JsonObject:
    part, added = parts.get(parse(_PassedCall, raw).id, pb.Part()), JsonObject()
    put(from_canonical(part.state), added, "call")
    if is_signed(part):
        added["extra_content"] = encode_signature(part.state)
    return added | _members(raw)


def _members(raw: Raw) -> dict[str, Raw]:
    return parse(dict[str, Raw], raw)


def _without(raw: Raw) -> Raw:
    members = _members(raw)
    if REASONING_FIELD not in members:
        return raw
    del members[REASONING_FIELD]
    return Raw(msgspec.json.encode(members))
