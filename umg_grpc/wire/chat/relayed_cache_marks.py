"""Prompt cache marks (`cache_control`) that are added to messages for relays whose models cache only up to a mark."""

from collections.abc import Sequence
from itertools import chain, takewhile
from typing import TypeGuard

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.agent_prompt_lines import INSTRUCTION_ROLES
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.prompt_cache_breakpoints import RELAYED_MEMBER, has_marks, is_explicit, relayed_mark
from umg_grpc.wire.core.prompt_cache_marks import lasts_an_hour

OWN_MARKS = frozenset({"", "chat", "messages"})
"""Formats whose callers get no added mark if they set marks: the relay's own, and those without automatic marks."""


def marks_end(request: pb.GenerateRequest, quirks: Quirks) -> bool:
    """Return whether the prompt's end gets a mark: the caller marks the whole prompt, or the caller's format has no
    marks, or a provider of that format would set one.
    """
    if quirks.breakpoints != RELAYED_MEMBER or request.source.format == "chat":
        return False
    if request.HasField("cache_control"):
        return True
    if not quirks.cache_marks or is_explicit(request):
        return False
    return request.source.format not in OWN_MARKS or not has_marks(request)


def add_marks(messages: Sequence[object], request: pb.GenerateRequest) -> None:
    """Mark the end of the prompt, in place; also of the instructions if the caller set no mark. The longest lifetime of
    the caller's marks is used. The content of each message must be a list of parts.
    """
    turns = [message for message in messages if isinstance(message, dict)]
    mark = relayed_mark(is_long=_is_long(request))
    if not (request.HasField("cache_control") or has_marks(request)):
        instructions = list(takewhile(lambda turn: turn.get("role") in INSTRUCTION_ROLES, turns))
        if instructions:
            _mark_last(instructions[-1], mark)
    for turn in reversed(turns):
        if turn.get("role") in {"user", "tool"}:
            _mark_last(turn, mark)
            return


def _is_long(request: pb.GenerateRequest) -> bool:
    parts = chain(request.instructions, *(message.parts for message in request.messages))
    return lasts_an_hour(request.cache_control) or any(lasts_an_hour(part.cache_control) for part in parts)


def _mark_last(turn: JsonObject, mark: JsonObject) -> None:
    content = turn.get("content")
    texts = [part for part in content if _is_text(part)] if isinstance(content, list) else []
    if texts:  # relays take no marks on other parts
        texts[-1].setdefault(RELAYED_MEMBER, mark)


def _is_text(part: object) -> TypeGuard[JsonObject]:
    return isinstance(part, dict) and part.get("type") == "text"
