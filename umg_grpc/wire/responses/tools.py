"""Tools of the responses format: decoded from a caller's body, encoded for a provider, and repeated in a response."""

from collections.abc import Iterable
from itertools import groupby
from typing import assert_never

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.provider_tool_names import tool_names
from umg_grpc.wire.core.function_tool_encoding import FunctionDefinition, decode_function
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
from umg_grpc.wire.core.native_schema_conversion import json_schema
from umg_grpc.wire.core.tool_name_conversion import ToolName, ToolNames, distinct_tools, name_of
from umg_grpc.wire.core.tool_schema_dialects import fit_parameters
from umg_grpc.wire.dropped_fields_report import Report, foreign, omits
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.model_quirks import has_search_option, requests_search, supports_search
from umg_grpc.wire.responses import schema, typed_client_tools
from umg_grpc.wire.responses.typed_client_tools import CLIENT_TOOLS

SEARCH_TYPES = ("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11")
SEARCH_PREFIX = "web_search"

GROUPED_TYPES = ("function", "custom")  # types of the tools of a namespace
MAX_TOOLS = 5000  # the schema's limit

# Tools that the provider runs and the model can do without. A search among tools is not needed if all are loaded.
HOSTED_HANDLING = {"image_generation": pb.OPAQUE_HANDLING_OPTIONAL, "tool_search": pb.OPAQUE_HANDLING_CARRIED}

# Options of one provider's tool runner, without canonical form.
UNCARRIED_TOOLS = (
    *("defer_loading", "output_schema", "allowed_callers"),
    *("async", "external_web_access", "search_content_types"),
)


# --- caller -> canonical


def decode_tools(body: schema.Prompting, request: pb.GenerateRequest, notes: RequestNotes) -> None:
    """Decode `tools`. `notes`: receives members without a canonical form. Raise UmgError with the path of the field."""
    for index, raw in enumerate(body.tools or ()):
        _decode_declared(raw, request, notes, f"tools[{index}]")


def add_tools(added: Iterable[tuple[Raw, str]], request: pb.GenerateRequest, notes: RequestNotes) -> None:
    """Add tools that items declare, (JSON, path), unless the request declares them. Raise UmgError with the path."""
    known = {_identity(tool) for tool in request.tools}
    for raw, at in added:
        count = len(request.tools)
        _decode_declared(raw, request, notes, at)
        fresh = [tool for tool in request.tools[count:] if _identity(tool) not in known]
        known.update(map(_identity, fresh))
        del request.tools[count:]
        request.tools.extend(fresh)


def _identity(tool: pb.Tool) -> ToolName | bytes:
    name = name_of(tool)
    return name if name.name else tool.SerializeToString(deterministic=True)


def _decode_declared(raw: Raw, request: pb.GenerateRequest, notes: RequestNotes, at: str) -> None:
    if parse(schema.Kind, raw, at).type == "namespace":
        group = parse(schema.NamespaceTool, raw, at)
        kinds = [parse(schema.Kind, inner, f"{at}.tools[{index}]").type for index, inner in enumerate(group.tools)]
        if set(kinds) <= set(GROUPED_TYPES):  # a namespace without tools has no effect
            for index, inner in enumerate(group.tools):
                tool = _decode_one(inner, request, notes, f"{at}.tools[{index}]")
                tool.namespace.name, tool.namespace.description = group.name, group.description or ""
            return
    _decode_one(raw, request, notes, at)


def _decode_one(raw: Raw, request: pb.GenerateRequest, notes: RequestNotes, at: str) -> pb.Tool:
    if len(request.tools) == MAX_TOOLS:
        raise invalid(at, f"there are more than {MAX_TOOLS} tools with those of all namespaces; send fewer")
    tool = request.tools.add()
    _decode_tool(raw, tool, at)
    if any(name.encode() in bytes(raw) for name in UNCARRIED_TOOLS):
        members = parse(dict[str, Raw], raw, at)
        notes.uncarried.extend(name for name in UNCARRIED_TOOLS if name in members and is_present(members[name]))
    return tool


def _decode_tool(raw: Raw, tool: pb.Tool, at: str) -> None:
    match parse(schema.Kind, raw, at).type:
        case "function":
            nested = parse(schema.NestedFunction, raw, at).function
            if is_present(nested):
                decode_function(parse(FunctionDefinition, nested, f"{at}.function"), tool.function, f"{at}.function")
            else:
                decode_function(parse(FunctionDefinition, raw, at), tool.function, at)
        case "custom":
            custom = parse(schema.CustomTool, raw, at)
            tool.custom.name = custom.name
            if custom.description is not None:
                tool.custom.description = custom.description
            if is_present(custom.format):
                tool.custom.format_json = json_object(custom.format, f"{at}.format")
        case kind if kind is not None and kind.startswith(SEARCH_PREFIX):
            _decode_search(parse(schema.WebSearchTool, raw, at), tool.web_search)
        case "file_search":
            _decode_file_search(parse(schema.FileSearchTool, raw, at), tool.file_search, at)
        case None:
            raise missing(f"{at}.type")
        case kind if kind in CLIENT_TOOLS and typed_client_tools.decode_tool(raw, kind, tool, at):
            pass
        case unknown:  # types grow with the format: an unknown one is kept as raw JSON
            tool.opaque.format, tool.opaque.type, tool.opaque.json = "responses", unknown, str(raw, "utf-8")
            tool.opaque.handling = HOSTED_HANDLING.get(unknown, pb.OPAQUE_HANDLING_UNSPECIFIED)


def _decode_search(search: schema.WebSearchTool, target: pb.WebSearchTool) -> None:
    target.declared_type = search.type
    target.context_size = search.search_context_size or ""
    if (user_location := search.user_location) is not None:
        location = target.user_location
        location.SetInParent()
        location.country, location.region = user_location.country or "", user_location.region or ""
        location.city, location.timezone = user_location.city or "", user_location.timezone or ""
    if search.filters:
        target.allowed_domains.extend(search.filters.allowed_domains or ())


def _decode_file_search(search: schema.FileSearchTool, target: pb.FileSearchTool, at: str) -> None:
    target.SetInParent()
    target.vector_store_ids.extend(search.vector_store_ids or ())
    if (maximum := whole(search.max_num_results, f"{at}.max_num_results")) is not None:
        target.max_results = maximum
    options = {
        name: raw
        for name, raw in (("ranking_options", search.ranking_options), ("filters", search.filters))
        if is_present(raw)
    }
    if options:
        target.options_json = msgspec.json.encode(options).decode()


# --- canonical -> provider


def encode_tools(request: pb.GenerateRequest, report: Report, quirks: Quirks = NO_QUIRKS) -> list[object]:
    """Return `tools`, plus web search if an option of another format requests it. Report tools and options that are
    left out. Raise UmgError(UNTRANSLATABLE) for a tool that only another format has.
    """
    own, names = request.source.format == "responses", tool_names(request)
    searches = requests_search(request) and supports_search(request, quirks, report)
    tools = _grouped(
        (tool, _encode_tool(tool, own, names, f"tools[{index}]", report, quirks))
        for index, tool in distinct_tools(request, names, report)
        if (searches or not tool.HasField("web_search")) and not _is_left_out(tool, report)
    )
    search = request.search
    if request.HasField("search"):
        has_tool = any(tool.HasField("web_search") for tool in request.tools)
        if searches and has_search_option(request) and not has_tool:
            tools.append(_encode_search(_option_as_tool(search), report))
        for field, _ in search.ListFields():
            if field.name in ("return_citations", "region", "recency_days"):
                report.drop(f"search.{field.name}")
    return tools


def _is_left_out(tool: pb.Tool, report: Report) -> bool:
    return tool.HasField("opaque") and tool.opaque.format != "responses" and omits(tool.opaque, report)


def _grouped(encoded: Iterable[tuple[pb.Tool, object]]) -> list[object]:
    tools = list[object]()
    for namespace, members in groupby(encoded, lambda member: member[0].namespace.name):
        if not namespace:
            tools += [tool for _, tool in members]
            continue
        inner = list(members)
        group = {"type": "namespace", "name": namespace, "description": inner[0][0].namespace.description}
        tools.append({**group, "tools": [tool for _, tool in inner]})
    return tools


def _option_as_tool(search: pb.SearchOptions) -> pb.WebSearchTool:
    tool = pb.WebSearchTool(context_size=search.context_size)
    if search.HasField("user_location"):
        tool.user_location.CopyFrom(search.user_location)
    return tool


def _encode_tool(tool: pb.Tool, own: bool, names: ToolNames, at: str, report: Report, quirks: Quirks) -> object:
    if tool.HasField("cache_control"):
        report.drop("cache_control")
    match tool.WhichOneof("kind"):
        case "function" if tool.function.HasField("declared"):
            return typed_client_tools.declared(tool.function, f"{at}.function")
        case "function":
            strict = tool.function.strict if own and tool.function.HasField("strict") else None
            if not own:
                strict = tool.function.strict  # unset is false in all other formats, and true here
            parameters: object = None
            if tool.function.parameters_json:
                parameters, enforced = fit_parameters(tool.function, quirks.schema_dialect, report, f"{at}.function")
                strict = False if enforced is False else strict
            return function_tool(tool.function, parameters, strict) | {"name": _own_name(tool, names)}
        case "custom":
            return _custom_tool(tool.custom, f"{at}.custom") | {"name": _own_name(tool, names)}
        case "web_search":
            return _encode_search(tool.web_search, report)
        case "file_search":
            return _file_search_tool(tool.file_search, f"{at}.file_search")
        case "opaque" if tool.opaque.format == "responses":
            return json_text(tool.opaque.json, f"{at}.opaque.json")
        case "opaque":
            raise foreign(tool.opaque, at)
        case None:
            raise foreign(pb.OpaquePart(format="umg", type="unknown tool"), at)
        case unhandled:
            assert_never(unhandled)


def _own_name(tool: pb.Tool, names: ToolNames) -> str:
    return name_of(tool).name if tool.HasField("namespace") else names.of_tool(tool)


def function_tool(function: pb.FunctionTool, parameters: object, strict: bool | None) -> JsonObject:
    """Return a function as an element of `tools`. The SDK types require `parameters` and `strict`, null if not set."""
    encoded: JsonObject = {"type": "function", "name": function.name}
    if function.HasField("description"):
        encoded["description"] = function.description
    return encoded | {"parameters": parameters, "strict": strict}


def _custom_tool(custom: pb.CustomTool, at: str) -> JsonObject:
    encoded: JsonObject = {"type": "custom", "name": custom.name}
    if custom.HasField("description"):
        encoded["description"] = custom.description
    if custom.format_json:
        encoded["format"] = _flat_format(custom.format_json, f"{at}.format_json")
    return encoded


def _flat_format(format_json: str, at: str) -> object:
    members = parse(dict[str, Raw], Raw(msgspec.json.encode(json_text(format_json, at))), at)
    if "grammar" not in members:
        return json_text(format_json, at)
    grammar = parse(dict[str, Raw], members.pop("grammar"), at)
    return members | grammar


def _encode_search(search: pb.WebSearchTool, report: Report) -> JsonObject:
    for field in ("max_uses", "blocked_domains"):
        if getattr(search, field):
            report.drop(field)
    return search_tool(search)


def search_tool(search: pb.WebSearchTool) -> JsonObject:
    """Return a web search as an element of `tools`, with the declared type if this format has it, else `web_search`."""
    kind = search.declared_type if search.declared_type in SEARCH_TYPES else "web_search"
    encoded: JsonObject = {"type": kind}
    if search.context_size:
        encoded["search_context_size"] = search.context_size
    if search.HasField("user_location"):
        encoded["user_location"] = {
            "type": "approximate",
            **{field.name: value for field, value in search.user_location.ListFields()},
        }
    if search.allowed_domains:
        encoded["filters"] = {"allowed_domains": list(search.allowed_domains)}
    return encoded


def _file_search_tool(search: pb.FileSearchTool, at: str) -> JsonObject:
    encoded: JsonObject = {"type": "file_search", "vector_store_ids": list(search.vector_store_ids)}
    if search.HasField("max_results"):
        encoded["max_num_results"] = search.max_results
    if search.options_json:
        encoded |= parse(dict[str, Raw], search.options_json.encode(), f"{at}.options_json")
    return encoded


# --- canonical -> caller


CONTEXT_SIZE = "medium"  # the document's default for a search


def repeated_tools(request: pb.GenerateRequest) -> list[object]:
    """Return the tools that a response object repeats, without tools and options that only another format has."""
    repeated = [(tool, _repeated_tool(tool, f"tools[{index}]")) for index, tool in enumerate(request.tools)]
    return _grouped((tool, encoded) for tool, encoded in repeated if encoded is not None)


def _repeated_tool(tool: pb.Tool, at: str) -> object:
    match tool.WhichOneof("kind"):
        case "function" if tool.function.HasField("declared"):
            return typed_client_tools.declared(tool.function, at)
        case "function":
            strict = tool.function.strict if tool.function.HasField("strict") else None
            parameters: object = None
            if written := tool.function.parameters_json:
                parameters = json_schema(written, tool.function.native_schema, f"{at}.parameters_json")
            return function_tool(tool.function, parameters, strict)
        case "custom":
            return _custom_tool(tool.custom, at)
        case "web_search":
            search = search_tool(tool.web_search)
            search.setdefault("search_context_size", CONTEXT_SIZE)
            return search
        case "file_search":
            return _file_search_tool(tool.file_search, at)
        case "opaque" if tool.opaque.format == "responses":
            return json_text(tool.opaque.json, at)
        case "opaque" | None:
            return None
        case unhandled:
            assert_never(unhandled)
