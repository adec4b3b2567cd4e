"""Edits of a chat caller's body for a chat provider, e.g. the removal of fields that only this gateway has."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import schema
from umg_grpc.wire.chat.structured_output import fit_own_format
from umg_grpc.wire.chat.tools import SEARCH_KEYS, SEARCH_TOOLS, is_search
from umg_grpc.wire.chat.vendor_message_rules import fit_raw_messages
from umg_grpc.wire.core.agent_prompt_lines import edit_first_turn
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, MEMBERS_DECODER, JsonObject, echo, is_present, parse
from umg_grpc.wire.core.provider_member_changes import fit_members
from umg_grpc.wire.core.tool_schema_dialects import fit_own_tools
from umg_grpc.wire.dropped_fields_report import Report

KNOWN_FIELDS = frozenset(schema.ChatRequest.__struct_encode_fields__)

Path = tuple[str, ...]

# Places of each canonical field in a body after `extra_body` is merged: an edit clears all of them and looks for the
# new value in the same places of the encoding.
FIELD_PATHS: dict[str, tuple[Path, ...]] = {
    "reasoning": (
        ("reasoning_effort",),
        ("thinking",),
        ("enable_thinking",),
        ("thinking_budget",),
        ("reasoning",),
        ("extra_body", "google", "thinking_config"),
        ("extra_body", "google", "thinkingConfig"),
        ("google", "thinking_config"),
        ("google", "thinkingConfig"),
        ("generationConfig", "thinking_config"),
        ("generationConfig", "thinkingConfig"),
    ),
    "search": (
        ("web_search_options",),
        ("search_parameters",),
        ("parameters", "enable_search"),
        ("parameters", "search_options"),
    ),
    "temperature": (("parameters", "temperature"), ("temperature",)),
    "top_p": (("parameters", "top_p"), ("top_p",)),
    "top_k": (("top_k",),),
    "max_output_tokens": (("max_tokens",), ("max_completion_tokens",)),
    "stop_sequences": (("stop",),),
    "tools": (("tools",), ("functions",), ("web_search_options",)),
    "tool_choice": (("tool_choice",), ("function_call",)),
    "parallel_tool_calls": (("parallel_tool_calls",),),
    "response_format": (("response_format",),),
    "messages": (("messages",),),
    "instructions": (("messages",),),
    "messages.parts.reasoning": (("messages",),),
    "user": (("user",),),
    "service_tier": (("service_tier",),),
}


# Fields whose places all mean the same: an edited value stays in its place.
INTERCHANGEABLE_FIELDS = frozenset({"temperature", "top_p", "max_output_tokens"})


def rebuild(
    request: pb.GenerateRequest,
    model: str,
    stream: bool,
    edits: Mapping[str, JsonObject],
    report: Report,
    quirks: Quirks,
) -> bytes:
    """Return the caller's body for a provider of the same format, changed only where necessary, else byte for byte.

    Changes are the model id, the stream options, members that only the gateway defines or that the provider rejects,
    and fields changed after decoding. `edits`: canonical name of each -> members of the body with its value.
    """
    fields = MEMBERS_DECODER.decode(request.source.body)  # the body was decoded before, so that it is a JSON object
    fields.pop("vendorn_thinking_to_content", None)  # the gateway does this itself
    if "extra_body" in fields or "vendorg" in fields:
        _merge_extra_body(fields, request, report)
    for field, encoded in edits.items():
        _replace_field(fields, field, encoded)
    if "generationConfig" in fields:
        _replace_generation_config(fields, report)
    if request.tools and any(tool.HasField("web_search") for tool in request.tools):
        _replace_search_tools(fields, request, report)
    edit_first_turn(fields, "messages", quirks, report)
    fields["model"] = Raw(msgspec.json.encode(model))
    if stream:
        options = _members(fields["stream_options"], "stream_options") if "stream_options" in fields else {}
        options["include_usage"] = Raw(b"true")
        fields["stream"], fields["stream_options"] = Raw(b"true"), Raw(msgspec.json.encode(options))
    else:
        fields.pop("stream_options", None)  # rejected without a stream
        if "stream" in fields:
            fields["stream"] = Raw(b"false")
    if quirks is NO_QUIRKS:
        return msgspec.json.encode(fields)
    fit_own_format(fields, request, quirks, report)
    fit_own_tools(fields, quirks, report)
    if quirks.accepts is not None and _is_empty_list(fields.get("tools", ABSENT_MEMBER), "tools"):
        del fields["tools"]  # means the same as none; refused by vendors that are strict about members
    fields["messages"] = fit_raw_messages(fields["messages"], quirks, report)
    fit_members(fields, quirks, "chat", report)
    return msgspec.json.encode(fields)


CONFIG_NAMES = frozenset(schema.GenerationConfig.__struct_encode_fields__)


def _is_empty_list(raw: Raw, at: str) -> bool:
    return is_present(raw) and not parse(list[Raw], raw, at)


def _raw(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))


def _members(raw: Raw, at: str) -> dict[str, Raw]:
    return parse(dict[str, Raw], raw, at) if is_present(raw) else {}


def _replace_field(fields: dict[str, Raw], field: str, encoded: JsonObject) -> None:
    removed = [path for path in FIELD_PATHS[field] if _remove_member(fields, path)]
    for path in FIELD_PATHS[field]:
        if (value := _find_member(encoded, path)) is not None:
            _set_member(fields, removed[0] if removed and field in INTERCHANGEABLE_FIELDS else path, value)


def _find_member(encoded: object, path: Path) -> object:
    for name in path:
        encoded = encoded.get(name) if isinstance(encoded, dict) else None
    return encoded


def _remove_member(fields: dict[str, Raw], path: Path) -> bool:
    name, *rest = path
    if name not in fields:
        return False
    if not rest:
        del fields[name]
        return True
    members = _members(fields[name], name)
    if not _remove_member(members, tuple(rest)):
        return False
    if members:
        fields[name] = _raw(members)
    else:
        del fields[name]
    return True


def _set_member(fields: dict[str, Raw], path: Path, value: object) -> None:
    name, *rest = path
    if rest:
        members = _members(fields.get(name, ABSENT_MEMBER), name)
        _set_member(members, tuple(rest), value)
        value = members
    fields[name] = _raw(value)


def _merge_extra_body(fields: dict[str, Raw], request: pb.GenerateRequest, report: Report) -> None:
    """Move the members of `extra_body` to the top level, as SDKs do. A member that exists there is left out and
    reported, since only the top level was checked against the gateway's limits.
    """
    extra = _members(fields.pop("extra_body", ABSENT_MEMBER), "extra_body")
    if "vendorg" in fields:
        extra["vendorg"] = fields.pop("vendorg")
    vendor = _members(extra.pop("google", ABSENT_MEMBER), "extra_body.google")
    vendor |= _members(extra.pop("vendorg", ABSENT_MEMBER), "extra_body.vendorg")
    if any(tool.web_search.declared_type in SEARCH_KEYS for tool in request.tools):
        vendor.pop("tools", None)
        fields.setdefault("web_search_options", Raw(b"{}"))
    for name, value in extra.items():
        if name in KNOWN_FIELDS:
            report.drop(f"extra_body.{name}")
        else:
            fields[name] = value
    if vendor:
        fields["extra_body"] = _raw({"google": vendor})


def _replace_generation_config(fields: dict[str, Raw], report: Report) -> None:
    """Replace `generationConfig` by the thinking config that vendor G's endpoint reads. Report its other settings, and
    a thinking config beside an effort, which the endpoint rejects.
    """
    members = _members(fields.pop("generationConfig"), "generationConfig")
    for name in members.keys() - CONFIG_NAMES:
        if is_present(members[name]):
            report.drop(f"generationConfig.{echo(name)}")
    for name in CONFIG_NAMES & members.keys():
        if is_present(fields.get("reasoning_effort", ABSENT_MEMBER)):
            report.drop("generationConfig.thinkingConfig")
            continue
        for key, value in _members(members[name], f"generationConfig.{name}").items():
            snake = SNAKE_CASE.get(key, key)
            path = ("extra_body", "google", "thinking_config", snake)
            _set_member(fields, path, Raw(bytes(value).lower()) if snake == "thinking_level" else value)


SNAKE_CASE = {
    "thinkingBudget": "thinking_budget",
    "includeThoughts": "include_thoughts",
    "thinkingLevel": "thinking_level",
}


def _replace_search_tools(fields: dict[str, Raw], request: pb.GenerateRequest, report: Report) -> None:
    """Replace tools that select a web search by the provider's search option, and remove a tool choice that names one:
    the model would call `vendorgSearch` like a function of the caller.
    """
    raw = fields.get("tools", ABSENT_MEMBER)
    tools = parse(list[Raw], raw, "tools") if is_present(raw) else []
    kept = [tool for tool in tools if not _is_search(tool)]
    if len(kept) == len(tools):
        return
    fields.setdefault("web_search_options", Raw(b"{}"))
    if not SEARCH_TOOLS.isdisjoint(request.tool_choice.names):
        fields.pop("tool_choice", None)
        report.drop("tool_choice")
    if kept:
        fields["tools"] = _raw(kept)
    else:
        for name in ("tools", "tool_choice", "parallel_tool_calls"):
            fields.pop(name, None)


def _is_search(tool: Raw) -> bool:
    return parse(schema.Kind, tool).type == "function" and is_search(parse(schema.FunctionTool, tool).function)
