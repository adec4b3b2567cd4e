"""Spellings that only our document has, and what a provider of the format gets instead of them: the caller's body with
the edits that must be made.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.chat import schema
from umg_grpc.wire.chat.tools import SEARCH_KEYS, SEARCH_TOOLS, is_search
from umg_grpc.wire.json import ABSENT, JsonObject, echo, given, parse
from umg_grpc.wire.report import Report

KNOWN = frozenset(schema.ChatRequest.__struct_encode_fields__)

Path = tuple[str, ...]

# Where a body says a canonical field, `extra_body` merged: what an edit takes out, and where it looks for what it puts
# in.
PLACES: dict[str, tuple[Path, ...]] = {
    "reasoning": (
        ("reasoning_effort",),
        ("thinking",),
        ("enable_thinking",),
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
}


# Whose places all mean the same, so that an edited value stays where it stood.
ALIKE = frozenset({"temperature", "top_p", "max_output_tokens"})


def rebuild(
    request: pb.GenerateRequest, model: str, stream: bool, edits: Mapping[str, JsonObject], report: Report
) -> bytes:
    """The caller's body, all else byte for byte: one `model`, the stream options, our dialect, and the fields that were
    changed after decoding. `edits`: each of these by its canonical name -> an encoding of what it is now.
    """
    fields = parse(dict[str, Raw], request.source.body)
    fields.pop("vendorn_thinking_to_content", None)  # done by us
    if "extra_body" in fields or "vendorg" in fields:
        _merge_extra_body(fields, request, report)
    for field, encoded in edits.items():
        _write_anew(fields, field, encoded)
    if "generationConfig" in fields:
        _replace_generation_config(fields, report)
    if request.tools and any(tool.HasField("web_search") for tool in request.tools):
        _replace_search_tools(fields, request, report)
    fields["model"] = Raw(msgspec.json.encode(model))
    if stream:
        options = _members(fields.get("stream_options", ABSENT), "stream_options")
        options["include_usage"] = Raw(b"true")
        fields["stream"], fields["stream_options"] = Raw(b"true"), _raw(options)
    else:
        fields.pop("stream_options", None)  # refused without a stream
        if "stream" in fields:
            fields["stream"] = Raw(b"false")
    return msgspec.json.encode(fields)


CONFIG_NAMES = frozenset(schema.GenerationConfig.__struct_encode_fields__)


def _raw(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))


def _members(raw: Raw, at: str) -> dict[str, Raw]:
    """The members of an object; none of null and of what is absent."""
    return parse(dict[str, Raw], raw, at) if given(raw) else {}


def _write_anew(fields: dict[str, Raw], field: str, encoded: JsonObject) -> None:
    """Takes a canonical field out of all its places, and puts in what the encoding says of it."""
    stood = [place for place in PLACES[field] if _cut(fields, place)]
    for place in PLACES[field]:
        if (value := _found(encoded, place)) is not None:
            _put(fields, stood[0] if stood and field in ALIKE else place, value)


def _found(encoded: object, place: Path) -> object:
    for name in place:
        encoded = encoded.get(name) if isinstance(encoded, dict) else None
    return encoded


def _cut(fields: dict[str, Raw], place: Path) -> bool:
    """Whether something stood there. An object that holds nothing else goes with it."""
    name, *rest = place
    if name not in fields:
        return False
    if not rest:
        del fields[name]
        return True
    members = _members(fields[name], name)
    if not _cut(members, tuple(rest)):
        return False
    if members:
        fields[name] = _raw(members)
    else:
        del fields[name]
    return True


def _put(fields: dict[str, Raw], place: Path, value: object) -> None:
    name, *rest = place
    if rest:
        members = _members(fields.get(name, ABSENT), name)
        _put(members, tuple(rest), value)
        value = members
    fields[name] = _raw(value)


def _merge_extra_body(fields: dict[str, Raw], request: pb.GenerateRequest, report: Report) -> None:
    """What `extra_body` holds, at the top as an SDK would put it; vendor G's part stays inside under the name that its
    endpoint reads.

    Not shown: members that are fields of the body itself. They are left out: the limits were checked against the top
    level.
    """
    extra = _members(fields.pop("extra_body", ABSENT), "extra_body")
    if "vendorg" in fields:
        extra["vendorg"] = fields.pop("vendorg")
    vendor = _members(extra.pop("google", ABSENT), "extra_body.google")
    vendor |= _members(extra.pop("vendorg", ABSENT), "extra_body.vendorg")
    if any(tool.web_search.declared_type in SEARCH_KEYS for tool in request.tools):
        vendor.pop("tools", None)
        fields.setdefault("web_search_options", Raw(b"{}"))
    for name, value in extra.items():
        if name in KNOWN:
            report.drop(f"extra_body.{name}")
        else:
            fields[name] = value
    if vendor:
        fields["extra_body"] = _raw({"google": vendor})


def _replace_generation_config(fields: dict[str, Raw], report: Report) -> None:
    """Its thinking config where vendor G's chat endpoint reads one, which refuses it beside an effort."""
    members = _members(fields.pop("generationConfig"), "generationConfig")
    for name in members.keys() - CONFIG_NAMES:
        if given(members[name]):
            report.drop(f"generationConfig.{echo(name)}")
    for name in CONFIG_NAMES & members.keys():
        if given(fields.get("reasoning_effort", ABSENT)):
            report.drop("generationConfig.thinkingConfig")
            continue
        for key, value in _members(members[name], f"generationConfig.{name}").items():
            snake = SNAKE_CASE.get(key, key)
            place = ("extra_body", "google", "thinking_config", snake)
            _put(fields, place, Raw(bytes(value).lower()) if snake == "thinking_level" else value)


SNAKE_CASE = {
    "thinkingBudget": "thinking_budget",
    "includeThoughts": "include_thoughts",
    "thinkingLevel": "thinking_level",
}


def _replace_search_tools(fields: dict[str, Raw], request: pb.GenerateRequest, report: Report) -> None:
    """A tool named `vendorgSearch` would be called like the caller's own: the provider is asked to search by its
    option.
    """
    raw = fields.get("tools", ABSENT)
    tools = parse(list[Raw], raw, "tools") if given(raw) else []
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
