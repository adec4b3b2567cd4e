"""Breakpoints of prompt caches on content parts of chat and responses (`prompt_cache_breakpoint`), in both directions.
They correspond to the marks (`cache_control`) of the messages format.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, is_present
from umg_grpc.wire.core.prompt_cache_marks import lasts_an_hour
from umg_grpc.wire.dropped_fields_report import Report

BREAKPOINT_MEMBER = "prompt_cache_breakpoint"
RELAYED_MEMBER = "cache_control"
"""Member for a mark at relays whose models have the messages format."""
LONG_LIFETIMES = frozenset({"12h", "1h"})
"""Lifetimes of breakpoints and marks that become an hour in other formats. Any other becomes the shorter lifetime."""
MAX_BREAKPOINTS = {BREAKPOINT_MEMBER: 3, RELAYED_MEMBER: 4}
"""Member -> maximum number in a request. A provider with breakpoints sets one more itself."""


class _Breakpoint(Struct):
    ttl: str | None = None


class _Options(Struct):
    mode: str | None = None


def decode_breakpoint(raw: Raw, marked: pb.Part | pb.Tool) -> None:
    """Decode a breakpoint or a mark into the mark of a part or a tool. If the member is absent, nothing changes."""
    if not is_present(raw):
        return
    marked.cache_control.SetInParent()
    try:
        if msgspec.json.decode(raw, type=_Breakpoint).ttl in LONG_LIFETIMES:
            marked.cache_control.ttl = pb.CACHE_TTL_ONE_HOUR
    except msgspec.ValidationError:
        pass  # an unknown form is still a mark


def is_explicit(request: pb.GenerateRequest) -> bool:
    """Return whether the caller disabled the breakpoint that providers set automatically."""
    if not request.prompt_cache_options_json:
        return False
    try:
        return msgspec.json.decode(request.prompt_cache_options_json, type=_Options).mode == "explicit"
    except (ValueError, RecursionError):
        return False


def marks_instructions(request: pb.GenerateRequest, quirks: Quirks) -> bool:
    """Return whether the provider is sent breakpoints in the system prompt."""
    return quirks.breakpoints is not None and any(part.HasField("cache_control") for part in request.instructions)


def has_marks(request: pb.GenerateRequest) -> bool:
    """Return whether a part of the prompt has a mark."""
    for part in request.instructions:
        if part.HasField("cache_control"):
            return True
    for message in request.messages:
        for part in message.parts:
            if part.HasField("cache_control"):
                return True
    return False


def can_end_prefix(message: pb.Message, part: pb.Part, quirks: Quirks) -> bool:
    """Return whether the provider accepts a part's mark: not in the model's turns; in tool results only at a relay."""
    if message.role == pb.ROLE_ASSISTANT:
        return False
    return quirks.breakpoints == RELAYED_MEMBER or not part.HasField("tool_result")


def with_breakpoint(encoded: object, part: pb.Part, quirks: Quirks, report: Report) -> object:
    """Return a content part with the mark of its canonical part. Report a mark or lifetime that the provider lacks."""
    if not part.HasField("cache_control"):
        return encoded
    if quirks.breakpoints is None or not isinstance(encoded, dict):
        report.drop("cache_control")
        return encoded
    is_long = lasts_an_hour(part.cache_control)
    if quirks.breakpoints == BREAKPOINT_MEMBER:
        if is_long:
            report.drop("cache_control", "30m")
        return {**encoded, BREAKPOINT_MEMBER: {"mode": "explicit"}}
    return {**encoded, RELAYED_MEMBER: relayed_mark(is_long=is_long)}


def relayed_mark(*, is_long: bool) -> JsonObject:
    """Return the value of a mark for a relay. `is_long`: whether the lifetime is an hour."""
    return {"type": "ephemeral", "ttl": "1h"} if is_long else {"type": "ephemeral"}


def limit_breakpoints(contents: Sequence[object], quirks: Quirks, report: Report) -> None:
    """Remove all but the last breakpoints, as many as a request may have, from lists of content parts, in place."""
    if (member := quirks.breakpoints) is None:
        return
    parts = [part for content in contents if isinstance(content, list) for part in content]
    marked = [part for part in parts if isinstance(part, dict) and member in part]
    for part in marked[: -MAX_BREAKPOINTS[member]]:
        del part[member]
        report.drop("cache_control")
