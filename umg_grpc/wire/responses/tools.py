"""Tools and the choice among them, both directions, and as an answer repeats them."""

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec
from msgspec import Raw

from umg_grpc.quirks import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.names import tool_names
from umg_grpc.wire.json import JsonObject, given, invalid, json_object, json_text, missing, parse, whole
from umg_grpc.wire.names import ToolNames, name_of
from umg_grpc.wire.quirks import asks_for_search, takes_search
from umg_grpc.wire.report import Report, foreign, leaves_out
from umg_grpc.wire.responses import client_tools, schema
from umg_grpc.wire.responses.client_tools import CLIENT_TOOLS
from umg_grpc.wire.schemas import json_schema

SEARCH_TYPES = ("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11")
SEARCH_PREFIX = "web_search"

CHOICES = {"auto": pb.TOOL_CHOICE_MODE_AUTO, "none": pb.TOOL_CHOICE_MODE_NONE, "required": pb.TOOL_CHOICE_MODE_REQUIRED}
CHOICE_NAMES = {value: name for name, value in CHOICES.items()} | {pb.TOOL_CHOICE_MODE_VALIDATED: "auto"}

GROUPED = ("function", "custom")  # types of the tools of a namespace
MOST_TOOLS = 5000  # in the schema

# Tools that the provider runs and the model may do without. A search among tools is not needed where all are loaded.
HOSTED = {"image_generation": pb.OPAQUE_HANDLING_OPTIONAL, "tool_search": pb.OPAQUE_HANDLING_CARRIED}

# Options of one provider's tool runner, without canonical form.
UNCARRIED = (
    "defer_loading",
    "output_schema",
    "allowed_callers",
    "async",
    "external_web_access",
    "search_content_types",
)


# --- caller -> canonical


def decode_tools(body: schema.Prompting, request: pb.GenerateRequest) -> None:
    """Fill `tools` and `tool_choice`. Raises UmgError naming the field."""
    for index, raw in enumerate(body.tools or ()):
        _decode_declared(raw, request, f"tools[{index}]")
    if given(body.tool_choice):
        searches = [tool.web_search.declared_type for tool in request.tools if tool.HasField("web_search")]
        _decode_choice(body.tool_choice, request.tool_choice, searches)


def add_tools(added: Iterable[tuple[Raw, str]], request: pb.GenerateRequest) -> None:
    """Add the tools that items of the conversation declare, each with its path, unless they are declared already.
    Raises UmgError naming the field.
    """
    for raw, at in added:
        known, count = {name_of(tool) for tool in request.tools}, len(request.tools)
        _decode_declared(raw, request, at)
        fresh = [tool for tool in request.tools[count:] if not name_of(tool).name or name_of(tool) not in known]
        del request.tools[count:]
        request.tools.extend(fresh)


def _decode_declared(raw: Raw, request: pb.GenerateRequest, at: str) -> None:
    """Add what an element of `tools` declares: one tool, or all of a namespace."""
    if parse(schema.Kind, raw, at).type == "namespace":
        group = parse(schema.NamespaceTool, raw, at)
        kinds = [parse(schema.Kind, inner, f"{at}.tools[{index}]").type for index, inner in enumerate(group.tools)]
        if group.tools and set(kinds) <= set(GROUPED):
            for index, inner in enumerate(group.tools):
                tool = _decode_one(inner, request, f"{at}.tools[{index}]")
                tool.namespace.name, tool.namespace.description = group.name, group.description or ""
            return
    _decode_one(raw, request, at)


def _decode_one(raw: Raw, request: pb.GenerateRequest, at: str) -> pb.Tool:
    if len(request.tools) == MOST_TOOLS:
        raise invalid(at, f"there are more than {MOST_TOOLS} tools with those of all namespaces; send fewer")
    tool = request.tools.add()
    _decode_tool(raw, tool, at)
    if any(name.encode() in bytes(raw) for name in UNCARRIED):
        members = parse(dict[str, Raw], raw, at)
        request.source.uncarried_fields.extend(name for name in UNCARRIED if name in members and given(members[name]))
    return tool


def _decode_tool(raw: Raw, tool: pb.Tool, at: str) -> None:
    match parse(schema.Kind, raw, at).type:
        case "function":
            nested = parse(schema.NestedFunction, raw, at).function
            if given(nested):
                _decode_function(parse(schema.FunctionDefinition, nested, f"{at}.function"), tool, f"{at}.function")
            else:
                _decode_function(parse(schema.FunctionDefinition, raw, at), tool, at)
        case "custom":
            custom = parse(schema.CustomTool, raw, at)
            tool.custom.name = custom.name
            if custom.description is not None:
                tool.custom.description = custom.description
            if given(custom.format):
                tool.custom.format_json = json_object(custom.format, f"{at}.format")
        case kind if kind is not None and kind.startswith(SEARCH_PREFIX):
            _decode_search(parse(schema.WebSearchTool, raw, at), tool.web_search)
        case "file_search":
            _decode_file_search(parse(schema.FileSearchTool, raw, at), tool.file_search, at)
        case None:
            raise missing(f"{at}.type")
        case kind if kind in CLIENT_TOOLS and client_tools.decode_tool(raw, kind, tool, at):
            pass
        case unknown:
            tool.opaque.format, tool.opaque.type, tool.opaque.json = "responses", unknown, str(raw, "utf-8")
            tool.opaque.handling = HOSTED.get(unknown, pb.OPAQUE_HANDLING_UNSPECIFIED)


def _decode_function(function: schema.FunctionDefinition, tool: pb.Tool, at: str) -> None:
    target = tool.function
    target.name = function.name
    if function.description is not None:
        target.description = function.description
    if given(function.parameters):
        target.parameters_json = json_object(function.parameters, f"{at}.parameters")
    if function.strict is not None:
        target.strict = function.strict


def _decode_search(search: schema.WebSearchTool, target: pb.WebSearchTool) -> None:
    target.declared_type = search.type
    target.context_size = search.search_context_size or ""
    if (place := search.user_location) is not None:
        location = target.user_location
        location.SetInParent()
        location.country, location.region = place.country or "", place.region or ""
        location.city, location.timezone = place.city or "", place.timezone or ""
    if search.filters:
        target.allowed_domains.extend(search.filters.allowed_domains or ())


def _decode_file_search(search: schema.FileSearchTool, target: pb.FileSearchTool, at: str) -> None:
    target.SetInParent()
    target.vector_store_ids.extend(search.vector_store_ids or ())
    if (most := whole(search.max_num_results, f"{at}.max_num_results")) is not None:
        target.max_results = most
    options = {
        name: raw
        for name, raw in (("ranking_options", search.ranking_options), ("filters", search.filters))
        if given(raw)
    }
    if options:
        target.options_json = msgspec.json.encode(options).decode()


def _decode_choice(raw: Raw, choice: pb.ToolChoice, searches: Sequence[str]) -> None:
    """`searches`: types under which the provider's search is declared."""
    text = bytes(raw)
    if text.startswith(b'"'):
        name = parse(str, raw, "tool_choice")
        if name not in CHOICES:
            raise invalid(
                "tool_choice", "expected `none`, `auto`, `required` or an object that names a tool; send one of them"
            )
        choice.mode = CHOICES[name]
        return
    match parse(schema.Kind, raw, "tool_choice").type:
        case "function" | "custom" as kind:
            nested = parse(schema.NestedFunction, raw, "tool_choice").function
            inside = kind == "function" and given(nested)
            named = parse(schema.Named, nested if inside else raw, "tool_choice.function" if inside else "tool_choice")
            choice.mode = pb.TOOL_CHOICE_MODE_REQUIRED
            choice.names.append(named.name)
        case "allowed_tools":
            _decode_allowed(raw, choice)
        case kind if kind is not None and kind.startswith(SEARCH_PREFIX) and searches:
            choice.mode = pb.TOOL_CHOICE_MODE_REQUIRED
            choice.names.append(kind if kind in searches else searches[0])
        case None:
            raise missing("tool_choice.type")
        case unknown:
            choice.opaque.format, choice.opaque.type, choice.opaque.json = "responses", unknown, text.decode()


def _decode_allowed(raw: Raw, choice: pb.ToolChoice) -> None:
    nested = parse(schema.NestedAllowedTools, raw, "tool_choice").allowed_tools
    at = "tool_choice.allowed_tools" if given(nested) else "tool_choice"
    allowed = parse(schema.AllowedTools, nested if given(nested) else raw, at)
    names = list[str]()
    for index, tool in enumerate(allowed.tools):
        if tool.type not in ("function", "custom"):
            choice.opaque.format, choice.opaque.type = "responses", "allowed_tools"
            choice.opaque.json = str(raw, "utf-8")
            return
        name = tool.name or (tool.function and tool.function.name)
        if not name:
            raise missing(f"{at}.tools[{index}].name")
        names.append(name)
    choice.mode, choice.allowed_tools = CHOICES[allowed.mode], True
    choice.names.extend(names)


# --- canonical -> provider


def encode_tools(request: pb.GenerateRequest, report: Report, quirks: Quirks = NO_QUIRKS) -> list[object]:
    """`tools`, with a search that was asked for by an option. Raises UmgError for a tool that only another format
    knows.
    """
    own, names = request.source.format == "responses", tool_names(request)
    searches = asks_for_search(request) and takes_search(request, quirks, report)
    tools = _grouped(
        (tool, _encode_tool(tool, own, names, f"tools[{index}]", report))
        for index, tool in enumerate(request.tools)
        if (searches or not tool.HasField("web_search")) and not _is_left_out(tool, report)
    )
    search = request.search
    if request.HasField("search"):
        if searches and search.mode != "off" and not any(tool.HasField("web_search") for tool in request.tools):
            tools.append(_encode_search(_option_as_tool(search), report))
        for field, _ in search.ListFields():
            if field.name in ("return_citations", "region", "recency_days"):
                report.drop(f"search.{field.name}")
    return tools


def _is_left_out(tool: pb.Tool, report: Report) -> bool:
    return tool.HasField("opaque") and tool.opaque.format != "responses" and leaves_out(tool.opaque, report)


def _grouped(encoded: Iterable[tuple[pb.Tool, object]]) -> list[object]:
    """The tools in order, with neighbours of one namespace inside it."""
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


def _encode_tool(tool: pb.Tool, own: bool, names: ToolNames, at: str, report: Report) -> object:
    """`own`: whether the caller's format is this one, where `strict` has another default than elsewhere."""
    if tool.HasField("cache_control"):
        report.drop("cache_control")
    match tool.WhichOneof("kind"):
        case "function" if tool.function.HasField("declared"):
            return client_tools.declared(tool.function, f"{at}.function")
        case "function":
            strict = tool.function.strict if own and tool.function.HasField("strict") else None
            if not own:
                strict = tool.function.strict  # unset is false in all other formats, and true here
            told = function_tool(tool.function, strict, f"{at}.function")
            return told | {"name": _own_name(tool, names)}
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
        case _:
            raise foreign(pb.OpaquePart(format="umg", type="unknown tool"), at)


def _own_name(tool: pb.Tool, names: ToolNames) -> str:
    """The name of a tool, which inside a namespace stands alone."""
    return name_of(tool).name if tool.HasField("namespace") else names.of_tool(tool)


def function_tool(function: pb.FunctionTool, strict: bool | None, at: str) -> JsonObject:
    """A flat function tool. The SDK types want `parameters` and `strict`, null or not."""
    parameters: object = None
    if function.parameters_json:
        parameters = json_schema(function.parameters_json, function.native_schema, f"{at}.parameters_json")
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
    """A grammar without the level that chat puts it on."""
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
    """A web search tool, under the type that the caller named if it is one of this format."""
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


def encode_choice(request: pb.GenerateRequest, report: Report, tools: Sequence[object]) -> JsonObject:
    """`tool_choice`, if there is one. Raises UmgError for one that only another format knows. `tools`: those that the
    provider is given.
    """
    choice = request.tool_choice
    if not request.HasField("tool_choice"):
        return {}
    search = _chosen_search(request)
    refused = search is not None and not any(isinstance(tool, dict) and tool.get("type") == search for tool in tools)
    if refused or (request.tools and not tools):
        if choice.mode not in (pb.TOOL_CHOICE_MODE_AUTO, pb.TOOL_CHOICE_MODE_NONE):
            report.drop("tool_choice")
        return {}
    if choice.HasField("opaque") and choice.opaque.format != "responses":
        raise foreign(choice.opaque, "tool_choice")
    if choice.mode == pb.TOOL_CHOICE_MODE_VALIDATED:
        report.drop("tool_choice.mode", "auto")
    if len(_chosen(request)) < len(choice.names) and search is None:
        report.drop("tool_choice")  # of the provider's own search among others
    said = choice_of(request, tool_names(request))
    return {} if said is None else {"tool_choice": said}


def _chosen(request: pb.GenerateRequest) -> list[dict[str, str]]:
    """The tools that the choice names, save the provider's own search."""
    custom = {tool.custom.name for tool in request.tools if tool.HasField("custom")}
    functions = {tool.function.name for tool in request.tools if tool.HasField("function")}
    searches = any(tool.HasField("web_search") for tool in request.tools)
    return [
        {"type": "custom" if name in custom else "function", "name": name}
        for name in request.tool_choice.names
        if not searches or name in custom or name in functions
    ]


def _chosen_search(request: pb.GenerateRequest) -> str | None:
    """Return the type of the provider's search, where that alone has to be called."""
    choice = request.tool_choice
    if (
        choice.mode != pb.TOOL_CHOICE_MODE_REQUIRED
        or choice.allowed_tools
        or len(choice.names) != 1
        or _chosen(request)
    ):
        return None
    searches = [tool.web_search for tool in request.tools if tool.HasField("web_search")]
    called = next((tool for tool in searches if tool.declared_type == choice.names[0]), searches[0])
    return str(search_tool(called)["type"])


def choice_of(request: pb.GenerateRequest, names: ToolNames | None = None) -> object:
    """The choice in this format's words; None where it says nothing. `names`: those that a provider is told."""
    choice = request.tool_choice
    if choice.HasField("opaque"):
        return json_text(choice.opaque.json, "tool_choice.opaque.json")
    if (search := _chosen_search(request)) is not None:
        return {"type": search}
    named = _chosen(request)
    if names is not None:
        named = [tool | {"name": names.of_choice(tool["name"])} for tool in named]
    if not named:
        return None if choice.names else CHOICE_NAMES.get(choice.mode)
    if choice.mode == pb.TOOL_CHOICE_MODE_NONE:
        return "none"
    if len(named) == 1 and choice.mode == pb.TOOL_CHOICE_MODE_REQUIRED and not choice.allowed_tools:
        return named[0]
    mode = "required" if choice.mode == pb.TOOL_CHOICE_MODE_REQUIRED else "auto"
    return {"type": "allowed_tools", "mode": mode, "tools": named}


# --- canonical -> caller


CONTEXT_SIZE = "medium"  # what the document gives to a search that says nothing


def repeated_tools(request: pb.GenerateRequest) -> list[object]:
    """`tools` of an answer: function tools flat; what another format's request had beside is left out."""
    repeated = [(tool, _repeated_tool(tool, f"tools[{index}]")) for index, tool in enumerate(request.tools)]
    return _grouped((tool, said) for tool, said in repeated if said is not None)


def _repeated_tool(tool: pb.Tool, at: str) -> object:
    match tool.WhichOneof("kind"):
        case "function" if tool.function.HasField("declared"):
            return client_tools.declared(tool.function, at)
        case "function":
            strict = tool.function.strict if tool.function.HasField("strict") else None
            return function_tool(tool.function, strict, at)
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
        case _:
            return None
