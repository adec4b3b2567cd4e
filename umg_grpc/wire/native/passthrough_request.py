"""Edits of a caller's native body that a native provider requires. All other bytes stay unchanged."""

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, is_present, parse
from umg_grpc.wire.core.provider_member_changes import fit_members
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.model_quirks import changed_fields, has_functions, requests_search
from umg_grpc.wire.native.encode_body import encode_messages, encode_options
from umg_grpc.wire.native.passthrough_signatures import edit_signatures
from umg_grpc.wire.native.structured_output import fit_own_format
from umg_grpc.wire.native.tools import SEARCH_KEYS

OUR_SEARCH = ("vendorgSearch", "vendorg_search")  # spellings that only the text document has
CONFIG_MEMBER = "generationConfig"
TURN_FIELDS = {"messages", "instructions"}
DECLARED_INVOCATIONS = "toolConfig.includeServerSideToolInvocations"

# Canonical field -> its members of the body, with the prefix `generationConfig.` for members of that object.
FIELD_MEMBERS: dict[str, tuple[str, ...]] = {
    "messages": ("contents", "systemInstruction"),
    "instructions": ("systemInstruction", "contents"),
    "tools": ("tools",),
    "search": ("tools",),
    "tool_choice": ("toolConfig",),
    "safety_settings": ("safetySettings",),
    "cached_content": ("cachedContent",),
    "metadata": ("labels",),
    "service_tier": ("serviceTier",),
    "store": ("store",),
    "temperature": (f"{CONFIG_MEMBER}.temperature",),
    "top_p": (f"{CONFIG_MEMBER}.topP",),
    "top_k": (f"{CONFIG_MEMBER}.topK",),
    "max_output_tokens": (f"{CONFIG_MEMBER}.maxOutputTokens",),
    "stop_sequences": (f"{CONFIG_MEMBER}.stopSequences",),
    "candidate_count": (f"{CONFIG_MEMBER}.candidateCount",),
    "seed": (f"{CONFIG_MEMBER}.seed",),
    "presence_penalty": (f"{CONFIG_MEMBER}.presencePenalty",),
    "frequency_penalty": (f"{CONFIG_MEMBER}.frequencyPenalty",),
    "logprobs": (f"{CONFIG_MEMBER}.responseLogprobs",),
    "top_logprobs": (f"{CONFIG_MEMBER}.logprobs",),
    "reasoning": (f"{CONFIG_MEMBER}.thinkingConfig",),
    "response_format": (
        f"{CONFIG_MEMBER}.responseMimeType",
        f"{CONFIG_MEMBER}.responseSchema",
        f"{CONFIG_MEMBER}.responseJsonSchema",
    ),
    "output_modalities": (f"{CONFIG_MEMBER}.responseModalities",),
    "media_detail": (f"{CONFIG_MEMBER}.mediaResolution",),
    "image_output": (f"{CONFIG_MEMBER}.imageConfig",),
    "audio_output": (f"{CONFIG_MEMBER}.speechConfig",),
}


def rebuild(request: pb.GenerateRequest, notes: RequestNotes, model: str, report: Report, quirks: Quirks) -> bytes:
    """Return the caller's body for a provider of the same format, changed only where necessary, else byte for byte.

    The model is removed, since the path contains it. A message, system instruction or tool without a list is put into
    one. Fields in `notes.edited`, and fields that `quirks` forbid, are encoded again.
    """
    fields = parse(dict[str, Raw], request.source.body)
    fields.pop("model", None)
    for name in ("contents", "tools"):
        if bytes(raw := fields.get(name, Raw())).startswith(b"{"):
            fields[name] = Raw(b"[" + bytes(raw) + b"]")
    for name in ("systemInstruction", "system_instruction"):
        if name in fields:
            fields[name] = _instruction(fields[name])
    if any(tool.web_search.declared_type in OUR_SEARCH for tool in request.tools):
        fields["tools"] = _with_search(fields["tools"])
    changed = _changed(request, notes, quirks)
    if changed or notes.edited:
        _edit(fields, request, notes, model, report, quirks, changed)
    edit_signatures(fields, request, model, report)
    if quirks is NO_QUIRKS:
        return msgspec.json.encode(fields)
    fit_own_format(fields, request, quirks, report)
    fit_members(fields, quirks, "native", report)
    return msgspec.json.encode(fields)


def _instruction(raw: Raw) -> Raw:
    """Return a system instruction as `{"parts": [...]}`: clients also send only its text, parts or one part."""
    text = bytes(raw)
    if text.startswith(b'"'):
        return Raw(b'{"parts":[{"text":' + text + b"}]}")
    if text.startswith(b"["):
        return Raw(b'{"parts":' + text + b"}")
    bare = text.startswith(b"{") and "text" in parse(dict[str, Raw], raw, "systemInstruction")
    return Raw(b'{"parts":[' + text + b"]}") if bare else raw


def _with_search(raw: Raw) -> Raw:
    """Return tools with web search under the provider's name; the gateway's specification has more names for it."""
    elements = parse(list[Raw], raw, "tools")
    for index, element in enumerate(elements):
        members = parse(dict[str, Raw], element, f"tools[{index}]") if is_present(element) else {}
        if not members.keys() & set(OUR_SEARCH):
            continue
        renamed = {SEARCH_KEYS[key] if key in OUR_SEARCH else key: value for key, value in members.items()}
        elements[index] = Raw(msgspec.json.encode(renamed))
    return Raw(msgspec.json.encode(elements))


def _changed(request: pb.GenerateRequest, notes: RequestNotes, quirks: Quirks) -> list[str]:
    """Return the canonical names of fields to encode again, because the provider rejects the caller's value."""
    changed = [name for name in changed_fields(request, quirks) if name in FIELD_MEMBERS]
    declared = DECLARED_INVOCATIONS in notes.uncarried
    both = requests_search(request) and has_functions(request)
    if quirks.search_with_functions == "declare" and both and not declared:
        changed.append("tool_choice")
    return changed


def _edit(
    fields: dict[str, Raw],
    request: pb.GenerateRequest,
    notes: RequestNotes,
    model: str,
    report: Report,
    quirks: Quirks,
    changed: list[str],
) -> None:
    """Replace fields in `notes.edited`, and in `changed`, which providers reject (reported), by canonical values."""
    own = Report()
    options = encode_options(request, model, own, quirks)
    for name, instead in own.dropped.items():
        if name.partition(".")[0] in {*changed, *(("web_search",) if "search" in changed else ())}:
            report.drop(name, instead)
    turns = encode_messages(request, model, Report(), quirks) if TURN_FIELDS & set(notes.edited) else {}
    fresh = _members(turns | options)
    config = _members(fresh.get(CONFIG_MEMBER, Raw(b"{}")))
    kept = dict[str, Raw]()
    at = next(
        (name for name in (CONFIG_MEMBER, _snake(CONFIG_MEMBER)) if is_present(fields.get(name, Raw()))), CONFIG_MEMBER
    )
    if is_present(fields.get(at, Raw())):
        kept = parse(dict[str, Raw], fields[at], at)
    for edited in [*notes.edited, *changed]:
        for member in FIELD_MEMBERS.get(edited, ()):
            name = member.removeprefix(f"{CONFIG_MEMBER}.")
            if name == member:
                _replace(fields, name, fresh)
            else:
                _replace(kept, name, config)
    if kept:
        fields[at] = Raw(msgspec.json.encode(kept))
    else:
        fields.pop(at, None)
    for name in notes.uncarried:
        if (name.startswith("toolConfig.") and name != DECLARED_INVOCATIONS and "tool_choice" in changed) or (
            name.partition(".")[0] in ("functionDeclarations", "googleSearch") and "tools" in notes.edited
        ):
            report.drop(name)


def _replace(fields: dict[str, Raw], name: str, fresh: dict[str, Raw]) -> None:
    for spelling in (name, _snake(name)):
        fields.pop(spelling, None)
    if name in fresh:
        fields[name] = fresh[name]


def _members(value: JsonObject | Raw) -> dict[str, Raw]:
    document = value if isinstance(value, Raw) else msgspec.json.encode(value)
    return msgspec.json.decode(document, type=dict[str, Raw])


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
