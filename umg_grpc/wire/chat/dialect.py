"""Spellings that only our document has: where they are read, and what a provider gets instead of them."""

from collections.abc import Iterator

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.chat import schema
from umg_grpc.wire.chat.tools import SEARCH_TOOL
from umg_grpc.wire.json import ABSENT, echo, given, invalid, parse
from umg_grpc.wire.report import Report

LEVELS = ("minimal", "low", "medium", "high", "xhigh")
SEARCH_KEYS = (SEARCH_TOOL, "googleSearch", "google_search")
KNOWN = frozenset(schema.ChatRequest.__struct_encode_fields__)


def level(value: str, field: str) -> str:
    """A thinking level in lower case. Raises UmgError(INVALID_FIELD)."""
    if value.lower() not in LEVELS:
        known = ", ".join(f"`{name.upper()}`" for name in LEVELS)
        raise invalid(field, f"{echo(repr(value))} is none of its values; send one of {known}")
    return value.lower()


def thinking_configs(chat: schema.ChatRequest) -> Iterator[tuple[str, schema.ThinkingConfig]]:
    """(path, config) of every place where a thinking config may stand, the most particular last."""
    if not (chat.extra_body or chat.generation_config or chat.vendorg or chat.google):
        return
    places: list[tuple[str, schema.VendorG | schema.GenerationConfig | None]] = [
        ("generationConfig", chat.generation_config),
        *_vendor_places(chat),
    ]
    for at, place in places:
        if place and place.thinking_config:
            yield f"{at}.thinking_config", place.thinking_config
        if place and place.camel_config:
            yield f"{at}.thinkingConfig", place.camel_config


def search_tools(chat: schema.ChatRequest) -> Iterator[str]:
    """The search tools of `extra_body.vendorg.tools`, by the keys under which they were asked for."""
    for _, place in _vendor_places(chat) if chat.extra_body or chat.vendorg or chat.google else ():
        for tool in (place.tools or ()) if place else ():
            yield from (key for key in tool if key in SEARCH_KEYS)


def _vendor_places(chat: schema.ChatRequest) -> list[tuple[str, schema.VendorG | None]]:
    body = chat.extra_body or schema.ExtraBody()
    return [
        ("google", chat.google),
        ("vendorg", chat.vendorg),
        ("extra_body.google", body.google),
        ("extra_body.vendorg", body.vendorg),
    ]


def rebuild(request: pb.GenerateRequest, model: str, stream: bool, report: Report) -> bytes:
    """The caller's body with the edits that must be made, all else byte for byte: one `model`, the stream options, our
    dialect.
    """
    fields = parse(dict[str, Raw], request.source.body)
    fields.pop("vendorn_thinking_to_content", None)  # done by us
    if "extra_body" in fields or "vendorg" in fields:
        _merge_extra_body(fields, request, report)
    if "generationConfig" in fields:
        _replace_generation_config(fields, request, report)
    if any(tool.HasField("web_search") for tool in request.tools):
        _replace_search_tools(fields, request, report)
    fields["model"] = Raw(msgspec.json.encode(model))
    if stream:
        options = _members(fields.get("stream_options", ABSENT), "stream_options")
        options["include_usage"] = Raw(b"true")
        fields["stream"], fields["stream_options"] = Raw(b"true"), Raw(msgspec.json.encode(options))
    else:
        fields.pop("stream_options", None)  # refused without a stream
        if "stream" in fields:
            fields["stream"] = Raw(b"false")
    return msgspec.json.encode(fields)


def _members(raw: Raw, at: str) -> dict[str, Raw]:
    """The members of an object; none of null and of what is absent."""
    return parse(dict[str, Raw], raw, at) if given(raw) else {}


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
        fields["extra_body"] = Raw(msgspec.json.encode({"google": vendor}))


def _replace_generation_config(fields: dict[str, Raw], request: pb.GenerateRequest, report: Report) -> None:
    """A thinking level as the effort of the same name, which vendor G's chat endpoint reads as one."""
    members = _members(fields.pop("generationConfig"), "generationConfig")
    thinks = [name for name in ("thinkingConfig", "thinking_config") if name in members]
    report.unknown += len(members) - len(thinks)
    if request.reasoning.level and not given(fields.get("reasoning_effort", ABSENT)):
        fields["reasoning_effort"] = Raw(msgspec.json.encode(request.reasoning.level))
    elif thinks:
        report.drop("generationConfig.thinkingConfig")


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
    if SEARCH_TOOL in request.tool_choice.names:
        fields.pop("tool_choice", None)
        report.drop("tool_choice")
    if kept:
        fields["tools"] = Raw(msgspec.json.encode(kept))
    else:
        for name in ("tools", "tool_choice", "parallel_tool_calls"):
            fields.pop(name, None)


def _is_search(tool: Raw) -> bool:
    return parse(schema.Kind, tool).type == "function" and parse(schema.FunctionTool, tool).function.name == SEARCH_TOOL
