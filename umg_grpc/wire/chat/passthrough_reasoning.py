"""Edits of `reasoning_content` in the messages of a chat body that is passed through: some providers require it, others
reject it.
"""

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.quirks import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json import ABSENT, JsonObject, is_present, parse
from umg_grpc.wire.dropped_fields_report import Report

FIELD = "reasoning_content"


def edit_reasoning_content(request: pb.GenerateRequest, report: Report, quirks: Quirks) -> JsonObject:
    """Return {"messages": [...]} for a passed-through body: with the reasoning that the gateway has stored where the
    client left it out, or without any reasoning if the provider rejects it (`quirks`), which is reported.
    """
    messages = parse(_Body, request.source.body).messages
    if quirks.reasoning_content is False:
        report.drop("reasoning")
        return {"messages": [_without(raw) for raw in messages]}
    for index, message in enumerate(request.messages[: len(messages)]):
        thoughts = [text for part in message.parts for text in part.reasoning.texts or part.reasoning.summaries]
        if thoughts and not is_present(_members(messages[index]).get(FIELD, ABSENT)):
            members = _members(messages[index]) | {FIELD: Raw(msgspec.json.encode("".join(thoughts)))}
            messages[index] = Raw(msgspec.json.encode(members))
    return {"messages": messages}


class _Body(msgspec.Struct):
    messages: list[Raw]


def _members(raw: Raw) -> dict[str, Raw]:
    return parse(dict[str, Raw], raw)


def _without(raw: Raw) -> Raw:
    members = _members(raw)
    if FIELD not in members:
        return raw
    del members[FIELD]
    return Raw(msgspec.json.encode(members))
