"""Member `context_management` of messages bodies: the edits that a request selects, and the report in the response."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.context_management_edits import (
    EDITS_FIELD,
    ClearThinking,
    ClearToolUses,
    Compact,
    ContextEdit,
    UnknownEdit,
)
from umg_grpc.wire.core.json_decoding import JsonObject, missing, parse

MIN_COMPACT_TRIGGER = 50_000
"""Smallest trigger of `compact_20260112` that the vendor accepts."""


class Management(Struct):
    """Member `context_management` of a body."""

    edits: list[Raw] | None = None


class _Kind(Struct):
    type: str


class _Trigger(Struct):
    type: Literal["input_tokens", "tool_uses"]
    value: Annotated[int, Meta(ge=1)]


class _CompactTrigger(Struct):
    type: Literal["input_tokens"]
    value: Annotated[int, Meta(ge=MIN_COMPACT_TRIGGER)]


class _Tokens(Struct):
    type: Literal["input_tokens"]
    value: Annotated[int, Meta(ge=0)]


class _ToolUses(Struct):
    type: Literal["tool_uses"]
    value: Annotated[int, Meta(ge=0)]


class _ThinkingTurns(Struct):
    type: Literal["thinking_turns", "all"]
    value: Annotated[int, Meta(ge=1)] | None = None


class ClearToolUsesEdit(Struct):
    """Edit of type `clear_tool_uses_20250919`."""

    trigger: _Trigger | None = None
    keep: _ToolUses | None = None
    clear_at_least: _Tokens | None = None
    exclude_tools: list[str] | None = None
    clear_tool_inputs: bool | list[str] | None = None


class ClearThinkingEdit(Struct):
    """Edit of type `clear_thinking_20251015`."""

    keep: _ThinkingTurns | Literal["all"] | None = None


class CompactEdit(Struct):
    """Edit of type `compact_20260112`."""

    instructions: str | None = None
    pause_after_compaction: bool | None = None
    trigger: _CompactTrigger | None = None


EDIT_TYPES: dict[str, type[Struct]] = {
    "clear_tool_uses_20250919": ClearToolUsesEdit,
    "clear_thinking_20251015": ClearThinkingEdit,
    "compact_20260112": CompactEdit,
}
"""Type of an edit -> its struct."""


def decode_edits(raw: Raw) -> tuple[ContextEdit, ...]:
    """Return the edits in `context_management`. Raise UmgError(MISSING_FIELD, INVALID_FIELD) with the field's path."""
    edits = parse(Management, raw, EDITS_FIELD).edits or []
    return tuple(_decode_edit(edit, f"{EDITS_FIELD}.edits[{index}]") for index, edit in enumerate(edits))


def _decode_edit(raw: Raw, at: str) -> ContextEdit:
    kind = parse(_Kind, raw, at).type
    if (struct := EDIT_TYPES.get(kind)) is None:
        return UnknownEdit(type=kind, field=f"{at}.type")
    match parse(struct, raw, at):
        case ClearToolUsesEdit() as parsed:
            return _decode_tool_uses(parsed, kind)
        case ClearThinkingEdit(keep=None):
            return ClearThinking(type=kind)
        case ClearThinkingEdit(keep=_ThinkingTurns(type="thinking_turns", value=None)):
            raise missing(f"{at}.keep.value")
        case ClearThinkingEdit(keep=_ThinkingTurns(type="thinking_turns", value=value)):
            return ClearThinking(type=kind, keep=value)
        case ClearThinkingEdit():
            return ClearThinking(type=kind, keep=None)
        case CompactEdit() as compact:
            return _decode_compact(compact, kind)
        case unhandled:  # a new struct of `EDIT_TYPES`
            raise TypeError(type(unhandled))


def _decode_compact(parsed: CompactEdit, kind: str) -> Compact:
    edit = Compact(type=kind, instructions=parsed.instructions or "", pauses=parsed.pause_after_compaction is True)
    if parsed.trigger is not None:
        edit = msgspec.structs.replace(edit, trigger_tokens=parsed.trigger.value)
    return edit


def _decode_tool_uses(parsed: ClearToolUsesEdit, kind: str) -> ClearToolUses:
    edit, inputs = ClearToolUses(type=kind), parsed.clear_tool_inputs
    trigger = parsed.trigger or _Trigger("input_tokens", edit.trigger_tokens or 1)
    by_tokens = trigger.type == "input_tokens"
    return ClearToolUses(
        type=kind,
        trigger_tokens=trigger.value if by_tokens else None,
        trigger_uses=None if by_tokens else trigger.value,
        keep=edit.keep if parsed.keep is None else parsed.keep.value,
        clear_at_least=0 if parsed.clear_at_least is None else parsed.clear_at_least.value,
        excluded=frozenset(parsed.exclude_tools or ()),
        clears_all_inputs=inputs is True,
        cleared_inputs=frozenset(inputs if isinstance(inputs, list) else ()),
    )


def encode_management(management: pb.ContextManagement) -> JsonObject:
    """Return the member `context_management` of a response: the edits that were made, with the amounts removed."""
    return {"applied_edits": [_encode_applied(edit) for edit in management.applied_edits]}


def _encode_applied(edit: pb.AppliedEdit) -> JsonObject:
    applied: JsonObject = {"type": edit.type, "cleared_input_tokens": edit.cleared_input_tokens}
    if edit.HasField("cleared_tool_uses"):
        applied["cleared_tool_uses"] = edit.cleared_tool_uses
    if edit.HasField("cleared_thinking_turns"):
        applied["cleared_thinking_turns"] = edit.cleared_thinking_turns
    return applied


def encode_count(tokens: int, original: int | None) -> bytes:
    """Return the response to a token counting call. `original`: tokens before edits of the conversation, if any."""
    body: JsonObject = {"input_tokens": tokens}
    if original is not None:
        body[EDITS_FIELD] = {"original_input_tokens": original}
    return msgspec.json.encode(body)
