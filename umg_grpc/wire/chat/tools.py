"""Tools and the tool choice of the chat format: decoded from a caller's body, and encoded for a provider."""

from typing import assert_never

import msgspec

from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import schema
from umg_grpc.wire.chat.provider_tool_names import tool_names
from umg_grpc.wire.core.function_tool_encoding import (
    CHOICE_MODES,
    FunctionDefinition,
    decode_choice_mode,
    decode_function,
    encode_named_choice,
)
from umg_grpc.wire.core.json_decoding import JsonObject, invalid, is_present, json_object, json_text, missing, parse
from umg_grpc.wire.core.prompt_cache_breakpoints import decode_breakpoint
from umg_grpc.wire.core.tool_argument_objects import encode_free_text
from umg_grpc.wire.core.tool_name_conversion import ToolNames, distinct_tools
from umg_grpc.wire.core.tool_schema_dialects import fit_parameters
from umg_grpc.wire.dropped_fields_report import Report, foreign, omits
from umg_grpc.wire.model_quirks import supports_search

# A function tool of the first name requests the provider's search (text document, chat rule 5). Other gateways use the
# second name: it requests the search only without parameters, since a caller's own tool may have that name.
SEARCH_TOOL, OTHER_SEARCH_TOOL = "vendorgSearch", "googleSearch"
SEARCH_TOOLS = frozenset({SEARCH_TOOL, OTHER_SEARCH_TOOL})
# Keys of the same search tools in `extra_body.vendorg.tools`.
SEARCH_KEYS = (SEARCH_TOOL, OTHER_SEARCH_TOOL, "vendorg_search", "google_search")

CALLABLE_TYPES = ("function", "custom")  # types of the tools that the caller runs


# --- caller -> canonical


def decode_tools(body: schema.ChatRequest, request: pb.GenerateRequest) -> None:
    """Decode tools and tool choice, also `functions`. Raise UmgError(MISSING_FIELD, INVALID_FIELD) with the path."""
    for index, raw in enumerate(body.tools or ()):
        _decode_tool(raw, request.tools.add(), f"tools[{index}]")
    if body.functions:
        if body.tools:
            raise invalid("functions", "`tools` is present, too; move the functions there")
        request.face_hints.legacy_functions = True
        for index, function in enumerate(body.functions):
            decode_function(function, request.tools.add().function, f"functions[{index}]")
    if is_present(body.tool_choice):
        _decode_choice(body.tool_choice, request.tool_choice)
    elif isinstance(body.function_call, schema.Named):
        request.tool_choice.mode = pb.TOOL_CHOICE_MODE_REQUIRED
        request.tool_choice.names.append(body.function_call.name)
    elif body.function_call:
        request.tool_choice.mode = CHOICE_MODES[body.function_call]


def _decode_tool(raw: msgspec.Raw, tool: pb.Tool, at: str) -> None:
    match parse(schema.Kind, raw, at).type:
        case "function":
            declared = parse(schema.FunctionTool, raw, at)
            function = declared.function
            decode_breakpoint(declared.cache_control, tool)
            if is_search(function):
                tool.web_search.declared_type = function.name
            else:
                decode_function(function, tool.function, f"{at}.function")
        case "custom":
            named = parse(schema.CustomTool, raw, at)
            custom = named.custom
            decode_breakpoint(named.cache_control, tool)
            tool.custom.name = custom.name
            if custom.description is not None:
                tool.custom.description = custom.description
            if is_present(custom.format):
                tool.custom.format_json = json_object(custom.format, f"{at}.custom.format")
        case None:
            raise missing(f"{at}.type")
        case unknown:  # types grow with the format: an unknown one is kept as raw JSON
            tool.opaque.format, tool.opaque.type, tool.opaque.json = "chat", unknown, str(raw, "utf-8")


def is_search(function: FunctionDefinition) -> bool:
    """Return whether a function selects web search: `vendorgSearch`, or `googleSearch` without parameters."""
    return function.name == SEARCH_TOOL or (function.name == OTHER_SEARCH_TOOL and not is_present(function.parameters))


def _decode_choice(raw: msgspec.Raw, choice: pb.ToolChoice) -> None:
    if decode_choice_mode(raw, choice):
        return
    match parse(schema.Kind, raw, "tool_choice").type:
        case "function" | "custom":
            choice.mode = pb.TOOL_CHOICE_MODE_REQUIRED
            choice.names.append(_chosen(parse(schema.ChosenTool, raw, "tool_choice"), "tool_choice"))
        case "allowed_tools":
            allowed = parse(schema.AllowedToolsChoice, raw, "tool_choice").allowed_tools
            if any(tool.type not in CALLABLE_TYPES for tool in allowed.tools):
                choice.opaque.CopyFrom(pb.OpaquePart(format="chat", type="allowed_tools", json=str(raw, "utf-8")))
                return
            choice.mode, choice.allowed_tools = CHOICE_MODES[allowed.mode], True
            at = "tool_choice.allowed_tools.tools"
            choice.names.extend(_chosen(tool, f"{at}[{index}]") for index, tool in enumerate(allowed.tools))
        case None:
            raise missing("tool_choice.type")
        case unknown:  # types grow with the format: an unknown one is kept as raw JSON
            choice.opaque.format, choice.opaque.type, choice.opaque.json = "chat", unknown, str(raw, "utf-8")


def _chosen(tool: schema.ChosenTool, at: str) -> str:
    named = tool.function if tool.type == "function" else tool.custom
    if named is None:
        raise missing(f"{at}.{tool.type}")
    return named.name


# --- canonical -> provider


def encode_tools(request: pb.GenerateRequest, report: Report, quirks: Quirks = NO_QUIRKS) -> JsonObject:
    """Return `tools`, `tool_choice` and, for a search tool, `web_search_options`; or the older `functions` if the
    caller used them. Raise UmgError(UNTRANSLATABLE) for tools that only another format has; report others left out.
    """
    fields, tools, names = JsonObject(), list[object](), tool_names(request)
    legacy = request.face_hints.legacy_functions
    for index, tool in distinct_tools(request, names, report):
        if tool.HasField("cache_control"):
            report.drop("cache_control")
        if tool.HasField("opaque") and tool.opaque.format != "chat" and omits(tool.opaque, report):
            continue
        if not tool.HasField("web_search"):
            tools.append(_encode_tool(tool, names, legacy, f"tools[{index}]", report, quirks))
        elif supports_search(request, quirks, report):
            fields["web_search_options"] = _search_options(tool.web_search, report)
    if tools:
        fields["functions" if legacy else "tools"] = tools
    hosted = request.tool_choice.HasField("opaque")  # the choice of a tool that only its own format has
    if request.HasField("tool_choice") and request.tools and not tools and not hosted:
        if request.tool_choice.mode != pb.TOOL_CHOICE_MODE_AUTO:
            report.drop("tool_choice")  # the only tools were searches, which have become an option
    elif request.HasField("tool_choice"):
        choice = _encode_choice(request, names, report, functions=legacy or quirks.custom_tools is False)
        if legacy and isinstance(choice, dict):
            choice = choice.get("function", "auto")
        if choice is not None:
            fields["function_call" if legacy else "tool_choice"] = choice
    if request.tool_choice.mode == pb.TOOL_CHOICE_MODE_VALIDATED:
        report.drop("tool_choice.mode", "auto")
    return fields


def _encode_tool(tool: pb.Tool, names: ToolNames, legacy: bool, at: str, report: Report, quirks: Quirks) -> object:
    match tool.WhichOneof("kind"):
        case "function":
            function = _encode_function(tool, names, f"{at}.function", report, quirks)
            return function if legacy else {"type": "function", "function": function}
        case "custom" if legacy or quirks.custom_tools is False:
            function = names.head(tool) | {"parameters": encode_free_text(tool.custom, report)}
            return function if legacy else {"type": "function", "function": function}
        case "custom":
            custom = names.head(tool)
            if tool.custom.format_json:
                custom["format"] = _nested_format(tool.custom.format_json, f"{at}.custom.format_json")
            return {"type": "custom", "custom": custom}
        case "opaque" if tool.opaque.format == "chat":
            return json_text(tool.opaque.json, f"{at}.opaque.json")
        case "opaque":
            raise foreign(tool.opaque, at)
        case "web_search" | "file_search" | None as kind:
            raise foreign(pb.OpaquePart(format="responses", type=kind or "unknown tool"), at)
        case unhandled:
            assert_never(unhandled)


def _nested_format(format_json: str, at: str) -> object:
    """Return a custom tool's format with its grammar in a member `grammar`; responses has it beside `type`."""
    written = json_text(format_json, at)
    members = parse(dict[str, msgspec.Raw], written, at)
    if "definition" not in members:
        return written
    grammar = {name: members.pop(name) for name in ("syntax", "definition") if name in members}
    return members | {"grammar": grammar}


def _encode_function(tool: pb.Tool, names: ToolNames, at: str, report: Report, quirks: Quirks) -> JsonObject:
    function, encoded = tool.function, names.head(tool)
    strict = function.strict if function.HasField("strict") else None
    if function.parameters_json:
        encoded["parameters"], strict = fit_parameters(function, quirks.schema_dialect, report, at)
    if strict is not None:
        encoded["strict"] = strict
    return encoded


def _search_options(search: pb.WebSearchTool, report: Report) -> JsonObject:
    for field in ("max_uses", "allowed_domains", "blocked_domains"):
        if getattr(search, field):
            report.drop(field)
    location = search.user_location if search.HasField("user_location") else None
    return encode_search_options(search.context_size, location)


def encode_search_options(context_size: str, location: pb.UserLocation | None) -> JsonObject:
    """Return `web_search_options`, {} without options. `context_size`: "" for the default."""
    options = JsonObject()
    if context_size:
        options["search_context_size"] = context_size
    if location is not None:
        approximate = {field.name: value for field, value in location.ListFields()}
        options["user_location"] = {"type": "approximate", "approximate": approximate}
    return options


def _encode_choice(request: pb.GenerateRequest, names: ToolNames, report: Report, *, functions: bool) -> object:
    choice = request.tool_choice
    if choice.HasField("opaque"):
        if choice.opaque.format != "chat":
            raise foreign(choice.opaque, "tool_choice")
        return json_text(choice.opaque.json, "tool_choice.opaque.json")
    custom = {tool.custom.name for tool in request.tools if tool.HasField("custom")}
    searches = any(tool.HasField("web_search") for tool in request.tools)
    callables = custom | {tool.function.name for tool in request.tools if tool.HasField("function")}
    named: list[JsonObject] = []
    for name in choice.names:
        kind = "custom" if name in custom and not functions else "function"
        if searches and name not in callables:
            report.drop("tool_choice")  # the chosen search has become an option
        else:
            named.append({"type": kind, kind: {"name": names.of_choice(name)}})
    return encode_named_choice(choice, named, nests=True)
