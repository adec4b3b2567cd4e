"""Edits of a caller's body that is passed through. Content that only the gateway's document defines, or that only the
gateway makes, is removed. All other bytes are unchanged.
"""

import re
from collections.abc import Collection

import msgspec
from msgspec import Raw, Struct

from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.agent_prompt_lines import edit_client_lines
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, is_present, parse
from umg_grpc.wire.core.provider_member_changes import fit_members
from umg_grpc.wire.core.reasoning_state_conversion import STATE_PREFIX, read
from umg_grpc.wire.core.tool_schema_dialects import fit_own_tools
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.messages.decode_messages import UNSIGNED_SIGNATURE
from umg_grpc.wire.messages.encode_body import encode_fields
from umg_grpc.wire.messages.passthrough_cache_control import (
    has_persistent,
    has_scopes,
    remove_scopes,
    rename_persistent,
)
from umg_grpc.wire.messages.passthrough_media_types import fit_media_types
from umg_grpc.wire.messages.passthrough_turns import fit_turns
from umg_grpc.wire.messages.reasoning_options import MIN_TOP_P, THINKING_OFF
from umg_grpc.wire.messages.server_tools import OUR_CALL
from umg_grpc.wire.messages.structured_output import fit_own_format
from umg_grpc.wire.model_quirks import changed_fields

BETA_HEADER = "anthropic-beta"

# Canonical field -> fields of the body that express it, and fields that depend on it: the fields that providers
# reject beside thinking are encoded again with it.
EDITED_MEMBERS = {
    "reasoning": ("thinking", "output_config", "temperature", "top_p", "top_k", "max_tokens", "tool_choice"),
    "response_format": ("output_config", "output_format", "system"),
    "max_output_tokens": ("max_tokens",),
    "messages": ("messages", "system"),
    "instructions": ("system",),
    "tools": ("tools", "tool_choice"),
    "search": ("tools",),
    "tool_choice": ("tool_choice", "tools"),
    "parallel_tool_calls": ("tool_choice",),
    "user": ("metadata",),
}  # any other canonical field is one field of the same name

RULED_OUT = ("temperature", "top_p", "top_k", "max_output_tokens")  # fields that thinking rules out in part

# Prefixes in content that a translated response made the caller return.
_GATEWAY_PREFIXES = (b'"' + STATE_PREFIX.encode(), b'"' + OUR_CALL.encode())
_NO_INDEX = re.compile(rb'"encrypted_index"\s*:\s*""')


class _GatewayBlock(Struct):
    """Members of a content block that identify blocks that the gateway made (wrapped states, searches)."""

    type: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    tool_use_id: str | None = None


class _Citation(Struct):
    encrypted_index: str | None = None


class _Thinking(Struct):
    """Member `thinking`, with the fields on which other members of the body depend."""

    type: str | None = None


def rebuild(
    request: pb.GenerateRequest,
    notes: RequestNotes,
    model: str,
    stream: bool,
    headers: dict[str, str],
    report: Report,
    quirks: Quirks,
) -> bytes:
    """Return the caller's body for a provider of the same format, changed only where the provider requires it.

    Changes are the model id, `stream`, fields in `notes.edited`, fields that `quirks` forbid, blocks that only the
    gateway makes, and `betas`, which moves into the call's `headers`.
    """
    body = request.source.body
    fields = parse(dict[str, Raw], body)
    if edited := dict.fromkeys([*notes.edited, *changed_fields(request, quirks)]):
        _encode_again(fields, request, edited, report, quirks)
    _move_betas(fields, headers)
    edit_client_lines(fields, "system", quirks, report)
    if _has_gateway_blocks(body):
        _remove_gateway_blocks(fields, report)
    if quirks is not NO_QUIRKS:
        fit_turns(fields, quirks, report)
        fit_media_types(fields, quirks, report)
        fit_own_format(fields, request, quirks, report)
        fit_own_tools(fields, quirks, report)
    if has_persistent(body):
        rename_persistent(fields)
    if not quirks.cache_scopes and has_scopes(body):
        remove_scopes(fields)
        report.omit("cache_control.scope")
    _make_max_tokens_whole(fields, request)
    if _is_thinking(fields) and request.HasField("top_p") and request.top_p < MIN_TOP_P and "top_p" in fields:
        del fields["top_p"]
        report.drop("top_p")
    fields["model"] = Raw(msgspec.json.encode(model))
    if stream or "stream" in fields:
        fields["stream"] = Raw(b"true" if stream else b"false")
    fit_members(fields, quirks, "messages", report)
    return msgspec.json.encode(fields)


def _encode_again(
    fields: dict[str, Raw], request: pb.GenerateRequest, edited: Collection[str], report: Report, quirks: Quirks
) -> None:
    """Replace `edited` fields by their canonical values: rules changed them, or the provider rejects the caller's."""
    own = Report()
    fresh = encode_fields(request, own, quirks)
    for field in edited:
        for name in EDITED_MEMBERS.get(field, (field,)):
            fields.pop(name, None)
            if name in fresh:
                fields[name] = Raw(msgspec.json.encode(fresh[name]))
    reported = {
        *edited,
        *(RULED_OUT if "reasoning" in edited else ()),
        *(("web_search",) if "search" in edited else ()),
    }
    for name, instead in own.dropped.items():
        if name.partition(".")[0] in reported:  # the body keeps all other fields as the caller sent them
            report.drop(name, instead)


def _move_betas(fields: dict[str, Raw], headers: dict[str, str]) -> None:
    raw = fields.pop("betas", ABSENT_MEMBER)
    if not is_present(raw):
        return
    try:
        listed = msgspec.json.decode(raw, type=list[str])
    except msgspec.ValidationError:
        return
    named = [*filter(None, headers.get(BETA_HEADER, "").split(",")), *listed]
    if named and all(name.isascii() and name.isprintable() for name in named):
        headers[BETA_HEADER] = ",".join(dict.fromkeys(name.strip() for name in named))


def _make_max_tokens_whole(fields: dict[str, Raw], request: pb.GenerateRequest) -> None:
    raw = bytes(fields.get("max_tokens", ABSENT_MEMBER))
    if raw and not raw.isdigit():
        fields["max_tokens"] = Raw(b"%d" % request.max_output_tokens)


def _is_thinking(fields: dict[str, Raw]) -> bool:
    raw = fields.get("thinking", ABSENT_MEMBER)
    return is_present(raw) and parse(_Thinking, raw, "thinking").type in {"enabled", "adaptive"}


# --- content from translated responses of other formats


def _remove_gateway_blocks(fields: dict[str, Raw], report: Report) -> None:
    """Remove blocks that a provider rejects: states of other formats, unsigned reasoning, searches of other formats."""
    kept = list[dict[str, Raw]]()
    lacks_reasoning = False
    for turn in parse(list[dict[str, Raw]], fields.get("messages", ABSENT_MEMBER), "messages"):
        content = bytes(turn.get("content", ABSENT_MEMBER))
        if bytes(turn.get("role", ABSENT_MEMBER)) != b'"assistant"':
            # a turn without tool results is a new question
            lacks_reasoning = lacks_reasoning and b'"tool_result"' in content
        elif content.startswith(b"[") and _has_gateway_blocks(content):
            blocks = parse(list[Raw], content, "messages")
            left = [own for block in blocks if (own := _provider_block(block, report)) is not None]
            lacks_reasoning = lacks_reasoning or (_begins_with_reasoning(blocks) and not _begins_with_reasoning(left))
            if not left:
                continue
            turn["content"] = Raw(msgspec.json.encode(left))
        kept.append(turn)
    fields["messages"] = Raw(msgspec.json.encode(kept))
    if lacks_reasoning and parse(_Thinking, fields.get("thinking", Raw(b"{}")), "thinking").type == "enabled":
        fields["thinking"] = Raw(msgspec.json.encode(THINKING_OFF))
        report.drop("reasoning", "disabled")


def _has_gateway_blocks(text: bytes) -> bool:
    return any(mark in text for mark in _GATEWAY_PREFIXES) or (
        b'"encrypted_index"' in text and bool(_NO_INDEX.search(text))
    )


def _begins_with_reasoning(blocks: list[Raw]) -> bool:
    return bool(blocks) and parse(_GatewayBlock, blocks[0], "messages").type in {"thinking", "redacted_thinking"}


def _provider_block(block: Raw, report: Report) -> Raw | None:
    """Return a block without the gateway's wrapping and citations; None (reported) for one of the gateway alone."""
    decoded = parse(_GatewayBlock, block, "messages")
    match decoded.type:
        case "thinking" if decoded.signature is not None and decoded.signature.startswith(STATE_PREFIX):
            return _unwrapped(block, "signature", decoded.signature, report)
        case "redacted_thinking" if decoded.data is not None and decoded.data.startswith(STATE_PREFIX):
            return _unwrapped(block, "data", decoded.data, report)
        case "server_tool_use" if decoded.id is not None and decoded.id.startswith(OUR_CALL):
            report.drop("server_tool_call")
            return None
        case "web_search_tool_result" if decoded.tool_use_id is not None and decoded.tool_use_id.startswith(OUR_CALL):
            report.drop("server_tool_result")
            return None
        case "text":
            return _without_foreign_citations(block, report)
        case _:  # the provider decides about blocks of all other types
            return block


def _unwrapped(block: Raw, name: str, state: str, report: Report) -> Raw | None:
    own = read(state, "messages")
    if state == UNSIGNED_SIGNATURE or own.format != "messages":
        report.drop("reasoning" if state == UNSIGNED_SIGNATURE else "state")
        return None
    return Raw(msgspec.json.encode(parse(dict[str, Raw], block) | {name: Raw(msgspec.json.encode(own.data))}))


def _without_foreign_citations(block: Raw, report: Report) -> Raw:
    members = parse(dict[str, Raw], block)
    raw = members.get("citations", ABSENT_MEMBER)
    if not is_present(raw):
        return block
    sources = parse(list[Raw], raw, "citations")
    kept = [source for source in sources if parse(_Citation, source).encrypted_index != ""]
    if len(kept) == len(sources):
        return block
    report.drop("citations")
    if kept:
        members["citations"] = Raw(msgspec.json.encode(kept))
    else:
        del members["citations"]
    return Raw(msgspec.json.encode(members))
