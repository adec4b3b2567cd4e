"""The tool choice of the responses format: decoded from a caller's body, and encoded for a provider."""

from collections.abc import Collection, Sequence

from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.chat.provider_tool_names import tool_names
from umg_grpc.wire.core.function_tool_encoding import CHOICE_MODES, decode_choice_mode, encode_named_choice
from umg_grpc.wire.core.json_decoding import JsonObject, is_present, json_text, missing, parse
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.dropped_fields_report import Report, foreign
from umg_grpc.wire.responses import schema
from umg_grpc.wire.responses.tools import SEARCH_PREFIX, search_tool

# --- caller -> canonical


def _types_of_tools(request: pb.GenerateRequest) -> set[str]:
    return {tool.function.declared.type for tool in request.tools if tool.function.HasField("declared")}


def decode_choice(body: schema.Prompting, request: pb.GenerateRequest) -> None:
    """Decode `tool_choice` after the tools. Raise UmgError(MISSING_FIELD, INVALID_FIELD) with the field's path."""
    if is_present(body.tool_choice):
        searches = [tool.web_search.declared_type for tool in request.tools if tool.HasField("web_search")]
        _decode_choice(body.tool_choice, request.tool_choice, searches, _types_of_tools(request))


def _decode_choice(raw: Raw, choice: pb.ToolChoice, searches: Sequence[str], typed: Collection[str]) -> None:
    if decode_choice_mode(raw, choice):
        return
    match parse(schema.Kind, raw, "tool_choice").type:
        case "function" | "custom" as kind:
            nested = parse(schema.NestedFunction, raw, "tool_choice").function
            inside = kind == "function" and is_present(nested)
            named = parse(schema.Named, nested if inside else raw, "tool_choice.function" if inside else "tool_choice")
            choice.mode = pb.TOOL_CHOICE_MODE_REQUIRED
            choice.names.append(named.name)
        case "allowed_tools":
            _decode_allowed(raw, choice, typed)
        case kind if kind is not None and kind in typed:
            choice.mode = pb.TOOL_CHOICE_MODE_REQUIRED
            choice.names.append(kind)
        case kind if kind is not None and kind.startswith(SEARCH_PREFIX) and searches:
            choice.mode = pb.TOOL_CHOICE_MODE_REQUIRED
            choice.names.append(kind if kind in searches else searches[0])
        case None:
            raise missing("tool_choice.type")
        case unknown:  # types grow with the format: an unknown one is kept as raw JSON
            choice.opaque.format, choice.opaque.type, choice.opaque.json = "responses", unknown, str(raw, "utf-8")


def _decode_allowed(raw: Raw, choice: pb.ToolChoice, typed: Collection[str]) -> None:
    nested = parse(schema.NestedAllowedTools, raw, "tool_choice").allowed_tools
    at = "tool_choice.allowed_tools" if is_present(nested) else "tool_choice"
    allowed = parse(schema.AllowedTools, nested if is_present(nested) else raw, at)
    names = list[str]()
    for index, tool in enumerate(allowed.tools):
        if tool.type in typed:
            names.append(tool.type)
            continue
        if tool.type not in ("function", "custom"):
            choice.opaque.format, choice.opaque.type = "responses", "allowed_tools"
            choice.opaque.json = str(raw, "utf-8")
            return
        name = tool.name or (tool.function and tool.function.name)
        if not name:
            raise missing(f"{at}.tools[{index}].name")
        names.append(name)
    choice.mode, choice.allowed_tools = CHOICE_MODES[allowed.mode], True
    choice.names.extend(names)


# --- canonical -> caller or provider


def encode_choice(request: pb.GenerateRequest, report: Report, tools: Sequence[object]) -> JsonObject:
    """Return {"tool_choice": ...}; {} if `tools`, which are sent, lack the chosen ones (reported). Raise
    UmgError(UNTRANSLATABLE) for a choice that only another format has.
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
        report.drop("tool_choice")  # the provider's own search, among other tools
    encoded = choice_of(request, tool_names(request))
    return {} if encoded is None else {"tool_choice": encoded}


def _chosen(request: pb.GenerateRequest) -> list[dict[str, str]]:
    """Return the tools that the choice names, except a search: {"type": ..., "name": ...}, typed ones without name."""
    custom, typed = {tool.custom.name for tool in request.tools if tool.HasField("custom")}, _types_of_tools(request)
    functions = {tool.function.name for tool in request.tools if tool.HasField("function")}
    searches = any(tool.HasField("web_search") for tool in request.tools)
    return [
        {"type": name} if name in typed else {"type": "custom" if name in custom else "function", "name": name}
        for name in request.tool_choice.names
        if not searches or name in custom or name in functions
    ]


def _chosen_search(request: pb.GenerateRequest) -> str | None:
    """Return the type of the provider's web search if the tool choice forces it and nothing else; None otherwise."""
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
    """Return the value of `tool_choice`; None for the default. `names`: None keeps the caller's names of tools."""
    choice = request.tool_choice
    if choice.HasField("opaque"):
        return json_text(choice.opaque.json, "tool_choice.opaque.json")
    if (search := _chosen_search(request)) is not None:
        return {"type": search}
    named = _chosen(request)
    if names is not None:
        named = [tool | {"name": names.of_choice(tool["name"])} if "name" in tool else tool for tool in named]
    return encode_named_choice(choice, named, nests=False)
