"""Tools and the tool choice of the messages format: decoded from a caller's body, and encoded for a provider."""

from typing import assert_never

import msgspec

from umg_grpc.knowledge.model_quirk_definitions import Quirks, SchemaDialect
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import (
    JsonObject,
    invalid,
    is_present,
    json_object,
    json_text,
    missing,
    parse,
    whole,
)
from umg_grpc.wire.core.tool_argument_objects import encode_free_text
from umg_grpc.wire.core.tool_name_conversion import ToolNames, distinct_tools
from umg_grpc.wire.core.tool_schema_dialects import fit_parameters
from umg_grpc.wire.dropped_fields_report import Report, foreign, omits
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.messages import schema
from umg_grpc.wire.messages.cache_control import decode_cache, encode_cache
from umg_grpc.wire.messages.provider_tool_names import SEARCH_NAME
from umg_grpc.wire.messages.structured_output import dialect_of
from umg_grpc.wire.model_quirks import chooses_search, has_search_option, requests_search, supports_search

SEARCH_TYPE = "web_search_20250305"

CHOICE_MODES = {
    "auto": pb.TOOL_CHOICE_MODE_AUTO,
    "any": pb.TOOL_CHOICE_MODE_REQUIRED,
    "tool": pb.TOOL_CHOICE_MODE_REQUIRED,
    "none": pb.TOOL_CHOICE_MODE_NONE,
}
MODE_NAMES = {
    pb.TOOL_CHOICE_MODE_UNSPECIFIED: "auto",
    pb.TOOL_CHOICE_MODE_AUTO: "auto",
    pb.TOOL_CHOICE_MODE_VALIDATED: "auto",
    pb.TOOL_CHOICE_MODE_NONE: "none",
    pb.TOOL_CHOICE_MODE_REQUIRED: "any",
}
MAX_USES = {"low": 1, "medium": 5, "high": 10}  # searches that gateways allow for a context size

NO_ARGUMENTS: JsonObject = {"type": "object", "properties": {}}


# --- caller -> canonical


def decode_tools(tools: list[msgspec.Raw], request: pb.GenerateRequest, notes: RequestNotes) -> None:
    """Decode `tools`. `notes`: receives members without a canonical form. Raise UmgError with the path of the field."""
    for index, raw in enumerate(tools):
        _decode_tool(raw, request, notes, f"tools[{index}]")


def _decode_tool(raw: msgspec.Raw, request: pb.GenerateRequest, notes: RequestNotes, at: str) -> None:
    head, tool = parse(schema.ToolHead, raw, at), request.tools.add()
    kind = head.type or "custom"
    if kind.startswith("web_search_") or head.name == SEARCH_NAME:
        if kind != SEARCH_TYPE:
            raise invalid(f"{at}.type", f"expected `{SEARCH_TYPE}` for web search; send that")
        if head.name != SEARCH_NAME:
            raise missing(f"{at}.name") if head.name is None else invalid(f"{at}.name", f"expected `{SEARCH_NAME}`")
        search = parse(schema.WebSearchTool, raw, at)
        _decode_search(search, tool.web_search, at)
        marked: schema.Marked = search
    elif kind == "custom":
        function = parse(schema.FunctionTool, raw, at)
        _decode_function(function, tool.function, at)
        for name in ("input_examples", "eager_input_streaming"):
            if is_present(getattr(function, name)):
                notes.uncarried.append(name)
        marked = function
    else:
        tool.opaque.format, tool.opaque.type, tool.opaque.json = "messages", kind, str(raw, "utf-8")
        marked = parse(schema.Marked, raw, at)
    if marked.cache_control is not None:
        decode_cache(marked.cache_control, tool.cache_control, f"{at}.cache_control")


def _decode_function(function: schema.FunctionTool, target: pb.FunctionTool, at: str) -> None:
    target.name = function.name
    target.parameters_json = json_object(function.input_schema, f"{at}.input_schema")
    if function.description is not None:
        target.description = function.description
    if function.strict is not None:
        target.strict = function.strict


def _decode_search(search: schema.WebSearchTool, target: pb.WebSearchTool, at: str) -> None:
    target.declared_type = SEARCH_TYPE
    if (uses := whole(search.max_uses, f"{at}.max_uses")) is not None:
        target.max_uses = uses
    if (user_location := search.user_location) is not None:
        location = target.user_location
        location.SetInParent()
        location.country, location.region = user_location.country or "", user_location.region or ""
        location.city, location.timezone = user_location.city or "", user_location.timezone or ""
    target.allowed_domains.extend(search.allowed_domains or ())
    target.blocked_domains.extend(search.blocked_domains or ())


def decode_choice(choice: schema.ToolChoice, request: pb.GenerateRequest) -> None:
    """Decode `tool_choice` and `parallel_tool_calls`. Raise UmgError(MISSING_FIELD) if type `tool` has no name."""
    request.tool_choice.mode = CHOICE_MODES[choice.type]
    if choice.type == "tool":
        if choice.name is None:
            raise missing("tool_choice.name")
        request.tool_choice.names.append(choice.name)
    if choice.disable_parallel_tool_use is not None:
        request.parallel_tool_calls = not choice.disable_parallel_tool_use


# --- canonical -> provider


def encode_tools(request: pb.GenerateRequest, names: ToolNames, report: Report, quirks: Quirks) -> JsonObject:
    """Return `tools` and `tool_choice`; {} without tools. Report tools and options that are left out. Raise
    UmgError(UNTRANSLATABLE) for a tool that only another format has.
    """
    tools, dialect = list[object](), dialect_of(request, quirks)
    allowed = offered_names(request)
    searches = not requests_search(request) or supports_search(request, quirks, report)
    for index, tool in distinct_tools(request, names, report):
        if tool.HasField("web_search") and not searches:
            continue
        name = tool.function.name or tool.custom.name
        if allowed and name and name not in allowed:
            continue  # the choice is among other tools
        if tool.HasField("opaque") and tool.opaque.format != "messages" and omits(tool.opaque, report):
            continue
        encoded = _encode_tool(tool, names, report, f"tools[{index}]", dialect)
        if tool.HasField("cache_control"):
            members = (
                encoded if isinstance(encoded, dict) else msgspec.json.decode(encoded, type=dict[str, msgspec.Raw])
            )
            tools.append({**members, "cache_control": encode_cache(tool.cache_control)})
        else:
            tools.append(encoded)
    if searches and (search := _encode_option(request, report)):
        tools.append(search)
    fields: JsonObject = {"tools": tools} if tools else {}
    if tools and not searches and chooses_search(request):
        report.drop("tool_choice")
    elif request.HasField("tool_choice") or request.HasField("parallel_tool_calls"):
        choice = _encode_choice(request, names)
        if tools:
            fields["tool_choice"] = choice
        elif choice["type"] not in {"auto", "none"}:
            report.drop("tool_choice")
    if request.tool_choice.mode == pb.TOOL_CHOICE_MODE_VALIDATED:
        report.drop("tool_choice.mode", "auto")
    return fields


def offered_names(request: pb.GenerateRequest) -> set[str]:
    """Return the names of the tools to send if the choice allows only some, since this format cannot restrict it by
    names. An empty set stands for all tools.
    """
    choice = request.tool_choice
    forced = choice.mode == pb.TOOL_CHOICE_MODE_REQUIRED and len(choice.names) == 1 and not choice.allowed_tools
    return set() if forced or choice.mode == pb.TOOL_CHOICE_MODE_NONE else set(choice.names)


def _encode_tool(
    tool: pb.Tool, names: ToolNames, report: Report, at: str, dialect: SchemaDialect | None
) -> "JsonObject | msgspec.Raw":
    match tool.WhichOneof("kind"):
        case "function":
            return _encode_function(tool, names, f"{at}.function", report, dialect)
        case "custom":
            return names.head(tool) | {"input_schema": encode_free_text(tool.custom, report)}
        case "web_search":
            return _encode_search(tool.web_search, report)
        case "opaque" if tool.opaque.format == "messages":
            return json_text(tool.opaque.json, f"{at}.opaque.json")
        case "opaque":
            raise foreign(tool.opaque, at)
        case "file_search" | None as kind:
            raise foreign(pb.OpaquePart(format="responses", type=kind or "unknown tool"), at)
        case unhandled:
            assert_never(unhandled)


def _encode_function(
    tool: pb.Tool, names: ToolNames, at: str, report: Report, dialect: SchemaDialect | None
) -> JsonObject:
    function, encoded = tool.function, names.head(tool)
    strict = function.strict if function.HasField("strict") else None
    if function.parameters_json:
        parameters, strict = fit_parameters(function, dialect, report, at)
        encoded["input_schema"] = object_schema(parameters, f"{at}.parameters_json")
    else:
        encoded["input_schema"] = NO_ARGUMENTS | ({"additionalProperties": False} if strict else {})
    if strict is not None:
        encoded["strict"] = strict
    return encoded


def object_schema(encoded: object, at: str) -> object:
    """Return a function's parameters as `input_schema` of type `object`. Raise UmgError(INVALID_FIELD) for others."""
    if isinstance(encoded, msgspec.Raw):
        if not bytes(encoded).startswith(b"{"):
            raise invalid(at, "expected an object; send a JSON schema of an object")
        if msgspec.json.decode(encoded, type=_Typed).type == "object":
            return encoded
        encoded = msgspec.json.decode(encoded, type=dict[str, msgspec.Raw])
    if not isinstance(encoded, dict):
        raise invalid(at, "expected an object; send a JSON schema of an object")
    return {**encoded, "type": "object"}


class _Typed(msgspec.Struct):
    type: object = None


def _encode_search(search: pb.WebSearchTool, report: Report) -> JsonObject:
    encoded: JsonObject = {"type": SEARCH_TYPE, "name": SEARCH_NAME}
    if search.HasField("max_uses"):
        encoded["max_uses"] = search.max_uses
        if search.context_size:
            report.drop("search_context_size")
    elif search.context_size:
        encoded |= _uses(search.context_size, report)
    if search.HasField("user_location"):
        encoded["user_location"] = _location(search.user_location)
    if search.allowed_domains:
        encoded["allowed_domains"] = list(search.allowed_domains)
        if search.blocked_domains:
            report.drop("blocked_domains")  # providers reject it beside allowed domains
    elif search.blocked_domains:
        encoded["blocked_domains"] = list(search.blocked_domains)
    return encoded


def _uses(context_size: str, report: Report) -> JsonObject:
    uses = MAX_USES.get(context_size)
    report.drop("search_context_size", f"max_uses {uses}" if uses else None)
    return {"max_uses": uses} if uses else {}


def _location(location: pb.UserLocation) -> JsonObject:
    return {"type": "approximate"} | {field.name: value for field, value in location.ListFields()}


def _encode_option(request: pb.GenerateRequest, report: Report) -> JsonObject | None:
    """Return the web search tool for the option `search`; None without the option, or if `tools` has a web search."""
    search = request.search
    for name in ("region", "recency_days"):
        if getattr(search, name):
            report.drop(f"search.{name}")
    if search.HasField("return_citations") and not search.return_citations:
        report.drop("search.return_citations")
    if not has_search_option(request) or any(tool.HasField("web_search") for tool in request.tools):
        return None
    encoded: JsonObject = {"type": SEARCH_TYPE, "name": SEARCH_NAME}
    if search.context_size:
        encoded |= _uses(search.context_size, report)
    if search.HasField("user_location"):
        encoded["user_location"] = _location(search.user_location)
    return encoded


def _encode_choice(request: pb.GenerateRequest, names: ToolNames) -> JsonObject:
    choice = request.tool_choice
    if choice.HasField("opaque"):
        raise foreign(choice.opaque, "tool_choice")
    kind = MODE_NAMES[choice.mode]
    if kind == "none":
        return {"type": "none"}
    encoded: JsonObject = {"type": kind}
    if kind == "any" and len(choice.names) == 1 and not choice.allowed_tools:
        searches = {tool.web_search.declared_type for tool in request.tools if tool.HasField("web_search")}
        called = choice.names[0]
        is_search = called in searches and not names.declares(called)
        encoded = {"type": "tool", "name": SEARCH_NAME if is_search else names.of_choice(called)}
    if request.HasField("parallel_tool_calls"):
        encoded["disable_parallel_tool_use"] = not request.parallel_tool_calls
    return encoded
