"""The messages of a caller's own body, with the `reasoning_content` that their provider wants, or without any."""

import msgspec
from msgspec import Raw

from umg_grpc.quirks import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.json import ABSENT, JsonObject, given, parse
from umg_grpc.wire.report import Report

FIELD = "reasoning_content"


def edit_thoughts(request: pb.GenerateRequest, report: Report, quirks: Quirks) -> JsonObject:
    """Return `messages` with the thoughts that the caller's client left out of them; without any for a provider that
    refuses them.
    """
    messages = parse(_Body, request.source.body).messages
    if quirks.reasoning_content is False:
        report.drop("reasoning")
        return {"messages": [_without(raw) for raw in messages]}
    for index, message in enumerate(request.messages[: len(messages)]):
        thoughts = [text for part in message.parts for text in part.reasoning.texts or part.reasoning.summaries]
        if thoughts and not given(_members(messages[index]).get(FIELD, ABSENT)):
            said = _members(messages[index]) | {FIELD: Raw(msgspec.json.encode("".join(thoughts)))}
            messages[index] = Raw(msgspec.json.encode(said))
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
