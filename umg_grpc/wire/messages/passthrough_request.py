"""A caller's body for a provider of the same format: to the byte, save what only our document has or only we made.

Ours are: the model id, `cache_control: persistent`, whole numbers with a fraction, `betas` inside the body, `top_p: 0`
beside thinking (which the document recommends and providers refuse), and what the answers of providers of other formats
were given to look like this format: state, unsigned thoughts, searches and their citations.
"""

import re
from collections.abc import Collection

import msgspec
from msgspec import Raw, Struct

from umg_grpc.quirks import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.json import ABSENT, given, parse
from umg_grpc.wire.messages.body import encode_fields
from umg_grpc.wire.messages.content import OUR_CALL, UNSIGNED
from umg_grpc.wire.messages.marks import has_persistent, rename_persistent
from umg_grpc.wire.messages.thinking import LEAST_TOP_P, OFF
from umg_grpc.wire.quirks import changed_fields
from umg_grpc.wire.report import Report
from umg_grpc.wire.state import PREFIX, read

BETA_HEADER = "anthropic-beta"

# Canonical field -> fields of the body that say it. What thinking rules out is written anew with it.
EDITS = {
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
}  # any other is one field of its own name

RULED_OUT = ("temperature", "top_p", "top_k", "max_output_tokens")  # by thinking, in part

_OURS = (b'"' + PREFIX.encode(), b'"' + OUR_CALL.encode())  # in what a translated answer made the caller return
_NO_INDEX = re.compile(rb'"encrypted_index"\s*:\s*""')


class _Block(Struct):
    """What tells a block of ours, and one that may hold a mark."""

    type: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    tool_use_id: str | None = None


class _Cited(Struct):
    encrypted_index: str | None = None


class _Told(Struct):
    """`thinking`, as far as other fields depend on it."""

    type: str | None = None


def rebuild(
    request: pb.GenerateRequest, model: str, stream: bool, headers: dict[str, str], report: Report, quirks: Quirks
) -> bytes:
    """The caller's body with the edits that must be made; `headers` get what belongs there."""
    body = request.source.body
    fields = parse(dict[str, Raw], body)
    if edited := dict.fromkeys([*request.source.edited_fields, *changed_fields(request, quirks)]):
        _write_anew(fields, request, edited, report, quirks)
    _move_betas(fields, headers)
    if _has_ours(body):
        _take_out_ours(fields, report)
    if has_persistent(body):
        rename_persistent(fields)
    _plain_numbers(fields, request)
    if _thinks(fields) and request.HasField("top_p") and request.top_p < LEAST_TOP_P and "top_p" in fields:
        del fields["top_p"]
        report.drop("top_p")
    fields["model"] = Raw(msgspec.json.encode(model))
    if stream or "stream" in fields:
        fields["stream"] = Raw(b"true" if stream else b"false")
    return msgspec.json.encode(fields)


def _write_anew(
    fields: dict[str, Raw], request: pb.GenerateRequest, edited: Collection[str], report: Report, quirks: Quirks
) -> None:
    """The fields of what a family's policy changed and of what the provider refuses, from the canonical form."""
    own = Report()
    fresh = encode_fields(request, own, quirks)
    for field in edited:
        for name in EDITS.get(field, (field,)):
            fields.pop(name, None)
            if name in fresh:
                fields[name] = Raw(msgspec.json.encode(fresh[name]))
    said = {*edited, *(RULED_OUT if "reasoning" in edited else ()), *(("web_search",) if "search" in edited else ())}
    for name, instead in own.dropped.items():
        if name.partition(".")[0] in said:  # of all else the body says what it says
            report.drop(name, instead)


def _move_betas(fields: dict[str, Raw], headers: dict[str, str]) -> None:
    """`betas` is a header; SDKs put it there."""
    raw = fields.pop("betas", ABSENT)
    if not given(raw):
        return
    try:
        asked = msgspec.json.decode(raw, type=list[str])
    except msgspec.ValidationError:
        return
    named = [*filter(None, headers.get(BETA_HEADER, "").split(",")), *asked]
    if named and all(name.isascii() and name.isprintable() for name in named):
        headers[BETA_HEADER] = ",".join(dict.fromkeys(name.strip() for name in named))


def _plain_numbers(fields: dict[str, Raw], request: pb.GenerateRequest) -> None:
    """`50.0` as 50: the document says number, providers say integer."""
    raw = bytes(fields.get("max_tokens", ABSENT))
    if raw and not raw.isdigit():
        fields["max_tokens"] = Raw(b"%d" % request.max_output_tokens)


def _thinks(fields: dict[str, Raw]) -> bool:
    raw = fields.get("thinking", ABSENT)
    return given(raw) and parse(_Told, raw, "thinking").type in {"enabled", "adaptive"}


# --- what answers of other formats left behind


def _take_out_ours(fields: dict[str, Raw], report: Report) -> None:
    """State of other formats, unsigned thoughts and foreign searches leave the conversation: a provider refuses them.

    Where the turn that goes on loses its thoughts, thinking is switched off: a provider would refuse that as well.
    """
    kept = list[dict[str, Raw]]()
    unthought = False
    for turn in parse(list[dict[str, Raw]], fields.get("messages", ABSENT), "messages"):
        content = bytes(turn.get("content", ABSENT))
        if bytes(turn.get("role", ABSENT)) != b'"assistant"':
            unthought = unthought and b'"tool_result"' in content  # else a new question
        elif content.startswith(b"[") and _has_ours(content):
            blocks = parse(list[Raw], content, "messages")
            left = [own for block in blocks if (own := _theirs(block, report)) is not None]
            unthought = unthought or (_is_thought(blocks) and not _is_thought(left))
            if not left:
                continue
            turn["content"] = Raw(msgspec.json.encode(left))
        kept.append(turn)
    fields["messages"] = Raw(msgspec.json.encode(kept))
    if unthought and parse(_Told, fields.get("thinking", Raw(b"{}")), "thinking").type == "enabled":
        fields["thinking"] = Raw(msgspec.json.encode(OFF))
        report.drop("reasoning", "disabled")


def _has_ours(text: bytes) -> bool:
    return any(mark in text for mark in _OURS) or (b'"encrypted_index"' in text and bool(_NO_INDEX.search(text)))


def _is_thought(blocks: list[Raw]) -> bool:
    """Whether a turn begins with its thoughts."""
    return bool(blocks) and parse(_Block, blocks[0], "messages").type in {"thinking", "redacted_thinking"}


def _theirs(block: Raw, report: Report) -> Raw | None:
    """The block as the provider knows it; None for one that it never made."""
    seen = parse(_Block, block, "messages")
    match seen.type:
        case "thinking" if seen.signature is not None and seen.signature.startswith(PREFIX):
            return _unwrapped(block, "signature", seen.signature, report)
        case "redacted_thinking" if seen.data is not None and seen.data.startswith(PREFIX):
            return _unwrapped(block, "data", seen.data, report)
        case "server_tool_use" if seen.id is not None and seen.id.startswith(OUR_CALL):
            report.drop("server_tool_call")
            return None
        case "web_search_tool_result" if seen.tool_use_id is not None and seen.tool_use_id.startswith(OUR_CALL):
            report.drop("server_tool_result")
            return None
        case "text":
            return _cited(block, report)
        case _:
            return block


def _unwrapped(block: Raw, name: str, state: str, report: Report) -> Raw | None:
    own = read(state, "messages")
    if state == UNSIGNED or own.format != "messages":
        report.drop("reasoning" if state == UNSIGNED else "state")
        return None
    return Raw(msgspec.json.encode(parse(dict[str, Raw], block) | {name: Raw(msgspec.json.encode(own.data))}))


def _cited(block: Raw, report: Report) -> Raw:
    """A text less the sources that its provider did not give."""
    members = parse(dict[str, Raw], block)
    raw = members.get("citations", ABSENT)
    if not given(raw):
        return block
    sources = parse(list[Raw], raw, "citations")
    kept = [source for source in sources if parse(_Cited, source).encrypted_index != ""]
    if len(kept) == len(sources):
        return block
    report.drop("citations")
    if kept:
        members["citations"] = Raw(msgspec.json.encode(kept))
    else:
        del members["citations"]
    return Raw(msgspec.json.encode(members))
