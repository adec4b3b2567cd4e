"""Tools and the tool choice of the native format: decoded from a caller's body, and encoded for a provider."""

from typing import assert_never

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.model_quirk_definitions import Quirks, SchemaDialect
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, is_present, json_object, json_text
from umg_grpc.wire.core.tool_argument_objects import encode_free_text
from umg_grpc.wire.core.tool_name_conversion import ToolNames, distinct_tools
from umg_grpc.wire.core.tool_schema_dialects import fit_parameters
from umg_grpc.wire.dropped_fields_report import Report, foreign, omits
from umg_grpc.wire.model_quirks import has_search_option, requests_search, supports_search
from umg_grpc.wire.native import schema
from umg_grpc.wire.native.proto_json_normalization import Notes, read

DECLARATION_KEYS = ("functionDeclarations", "function_declarations")
# Key of a search tool -> the provider's own spelling of it (text document: `vendorgSearch`).
SEARCH_KEYS = {
    "vendorgSearch": "googleSearch",
    "vendorg_search": "googleSearch",
    "googleSearch": "googleSearch",
    "google_search": "googleSearch",
    "googleSearchRetrieval": "googleSearchRetrieval",
    "google_search_retrieval": "googleSearchRetrieval",
}
OLDER_SEARCH = "googleSearchRetrieval"

CHOICE_MODES = {
    "AUTO": pb.TOOL_CHOICE_MODE_AUTO,
    "NONE": pb.TOOL_CHOICE_MODE_NONE,
    "ANY": pb.TOOL_CHOICE_MODE_REQUIRED,
    "VALIDATED": pb.TOOL_CHOICE_MODE_VALIDATED,
}
MODE_NAMES = {value: name for name, value in CHOICE_MODES.items()}


# --- caller -> canonical


def decode_tools(body: schema.GenerateBody, request: pb.GenerateRequest, notes: Notes) -> None:
    """Decode `toolConfig` and `tools`, where each member of an element is a tool (raw JSON if its kind is unknown).
    `notes`: receives members without a canonical form. Raise UmgError(MISSING_FIELD, INVALID_FIELD) with the path.
    """
    for index, element in enumerate(body.tools or ()):
        for key, value in element.items():
            if not is_present(value):
                continue
            at = f"tools[{index}].{key}"
            if key in DECLARATION_KEYS:
                for position, declared in enumerate(read(schema.Declarations, _as_list(value), notes, at)):
                    _decode_function(declared, request, notes, f"{at}[{position}]")
            elif key in SEARCH_KEYS:
                _decode_search(key, read(schema.GoogleSearch, value, notes, at), request, notes)
            else:
                opaque = request.tools.add().opaque
                opaque.format, opaque.type = "native", key
                opaque.json = msgspec.json.encode({key: value}).decode()
    if body.tool_config is not None:
        _decode_choice(body.tool_config, request, notes)


def _as_list(value: Raw) -> Raw:
    return Raw(b"[" + bytes(value) + b"]") if bytes(value).startswith(b"{") else value


def _decode_function(declared: schema.FunctionDeclaration, request: pb.GenerateRequest, notes: Notes, at: str) -> None:
    function = request.tools.add().function
    function.name = declared.name
    if declared.description is not None:
        function.description = declared.description
    if is_present(declared.parameters_json_schema):
        function.parameters_json = json_object(declared.parameters_json_schema, f"{at}.parametersJsonSchema")
    elif is_present(declared.parameters):
        function.parameters_json = json_object(declared.parameters, f"{at}.parameters")
        function.native_schema = True
    for name, value in (("response", declared.response), ("responseJsonSchema", declared.response_json_schema)):
        if is_present(value):
            notes.record_uncarried(f"functionDeclarations.{name}")
    if is_present(declared.behavior):
        notes.record_uncarried("functionDeclarations.behavior")


def _decode_search(key: str, search: schema.GoogleSearch, request: pb.GenerateRequest, notes: Notes) -> None:
    tool = request.tools.add().web_search
    tool.declared_type = key if "_" not in key else SEARCH_KEYS[key] if not key.startswith("v") else "vendorgSearch"
    tool.blocked_domains.extend(search.exclude_domains or ())
    options = {
        "googleSearchRetrieval.dynamicRetrievalConfig": search.dynamic_retrieval_config,
        "googleSearch.searchTypes": search.search_types,
        "googleSearch.timeRangeFilter": search.time_range_filter,
        "googleSearch.blockingConfidence": search.blocking_confidence,
    }
    notes.request.uncarried.extend(name for name, value in options.items() if is_present(value))


def _decode_choice(config: schema.ToolConfig, request: pb.GenerateRequest, notes: Notes) -> None:
    calling = config.function_calling_config
    if calling is not None and (calling.mode in CHOICE_MODES or calling.allowed_function_names):
        choice = request.tool_choice
        choice.mode = CHOICE_MODES.get(calling.mode or "", pb.TOOL_CHOICE_MODE_UNSPECIFIED)
        choice.names.extend(calling.allowed_function_names or ())
    if is_present(config.retrieval_config):
        notes.request.uncarried.append("toolConfig.retrievalConfig")
    if is_present(config.include_server_side_tool_invocations):
        notes.request.uncarried.append("toolConfig.includeServerSideToolInvocations")


# --- canonical -> provider


def encode_tools(request: pb.GenerateRequest, names: ToolNames, report: Report, quirks: Quirks) -> JsonObject:
    """Return `tools`, one kind of tool per element, and `toolConfig`; {} without tools. Report tools and options left
    out. Raise UmgError(UNTRANSLATABLE) for a tool that only another format has.
    """
    searches = requests_search(request) and supports_search(request, quirks, report)
    functions, others = _encode_each(request, names, report, searches=searches, dialect=quirks.schema_dialect)
    if (
        searches
        and _requests_search(request, report)
        and not any(tool.HasField("web_search") for tool in request.tools)
    ):
        others.append({"googleSearch": {}})
    tools = [{"functionDeclarations": functions}, *others] if functions else others
    fields: JsonObject = {"tools": tools} if tools else {}
    config = _encode_choice(request, names, bool(functions), report) if request.HasField("tool_choice") else {}
    if config:
        fields["toolConfig"] = {"functionCallingConfig": config}
    if searches and functions and quirks.search_with_functions == "declare":
        fields["toolConfig"] = _declare_search(config)
    if request.HasField("parallel_tool_calls") and not request.parallel_tool_calls:
        report.drop("parallel_tool_calls")
    return fields


def _encode_each(
    request: pb.GenerateRequest, names: ToolNames, report: Report, *, searches: bool, dialect: SchemaDialect | None
) -> tuple[list[JsonObject], list[object]]:
    """Return (declarations of the request's functions, all other tools of the request)."""
    functions, others = list[JsonObject](), list[object]()
    left_out = _left_out(request)
    for index, tool in distinct_tools(request, names, report):
        if tool.HasField("opaque") and tool.opaque.format != "native" and omits(tool.opaque, report):
            continue
        if tool.HasField("cache_control"):
            report.drop("cache_control")
        match tool.WhichOneof("kind"):
            case "function" if tool.function.name not in left_out:
                functions.append(_encode_function(tool, names, f"tools[{index}].function", report, dialect))
            case "custom" if tool.custom.name not in left_out:
                functions.append(names.head(tool) | {"parametersJsonSchema": encode_free_text(tool.custom, report)})
            case "function" | "custom":
                pass  # not among the tools that may be called
            case "web_search" if searches:
                others.append(_encode_search(tool.web_search, report))
            case "web_search":
                pass  # the provider rejects it
            case "opaque" if tool.opaque.format == "native":
                others.append(json_text(tool.opaque.json, f"tools[{index}].opaque.json"))
            case "opaque":
                raise foreign(tool.opaque, f"tools[{index}]")
            case "file_search" | None as kind:
                raise foreign(pb.OpaquePart(format="responses", type=kind or "unknown tool"), f"tools[{index}]")
            case unhandled:
                assert_never(unhandled)
    return functions, others


def _declare_search(choice: JsonObject) -> JsonObject:
    config: JsonObject = {"includeServerSideToolInvocations": True}
    if choice:
        mode = "VALIDATED" if choice.get("mode") == "AUTO" else choice.get("mode")
        config["functionCallingConfig"] = choice | {"mode": mode}
    return config


def _left_out(request: pb.GenerateRequest) -> set[str]:
    """Return the tools that the choice excludes: providers restrict a choice by names only if a call is required."""
    choice = request.tool_choice
    if choice.mode not in (pb.TOOL_CHOICE_MODE_AUTO, pb.TOOL_CHOICE_MODE_UNSPECIFIED) or not choice.names:
        return set()
    return {tool.function.name or tool.custom.name for tool in request.tools} - set(choice.names)


def _encode_function(
    tool: pb.Tool, names: ToolNames, at: str, report: Report, dialect: SchemaDialect | None
) -> JsonObject:
    function, encoded = tool.function, names.head(tool)
    if function.parameters_json and function.native_schema:
        encoded["parameters"] = json_text(function.parameters_json, f"{at}.parameters_json")
    elif function.parameters_json:
        encoded["parametersJsonSchema"], _ = fit_parameters(function, dialect, report, at)
    if function.strict:
        report.drop("strict")
    return encoded


def _encode_search(search: pb.WebSearchTool, report: Report) -> JsonObject:
    for name in ("context_size", "max_uses", "allowed_domains"):
        if getattr(search, name):
            report.drop(name)
    if search.HasField("user_location"):
        report.drop("user_location")
    if search.declared_type == OLDER_SEARCH:
        return {OLDER_SEARCH: {}}
    blocked: JsonObject = {"excludeDomains": list(search.blocked_domains)} if search.blocked_domains else {}
    return {"googleSearch": blocked}


def _requests_search(request: pb.GenerateRequest, report: Report) -> bool:
    """Return whether a request option selects web search, which is a tool in this format; report its lost options."""
    search = request.search
    if not has_search_option(request):
        return False
    for name in ("context_size", "region", "recency_days"):
        if getattr(search, name):
            report.drop(f"search.{name}")
    if search.HasField("user_location"):
        report.drop("search.user_location")
    if search.HasField("return_citations") and not search.return_citations:
        report.drop("search.return_citations")
    return True


def _encode_choice(request: pb.GenerateRequest, names: ToolNames, callable_: bool, report: Report) -> JsonObject:
    choice = request.tool_choice
    if choice.HasField("opaque"):
        raise foreign(choice.opaque, "tool_choice")
    if not callable_:
        if choice.mode not in (pb.TOOL_CHOICE_MODE_UNSPECIFIED, pb.TOOL_CHOICE_MODE_AUTO, pb.TOOL_CHOICE_MODE_NONE):
            report.drop("tool_choice")
        return {}
    declared = {tool.function.name or tool.custom.name for tool in request.tools}
    chosen = [name for name in choice.names if name in declared]
    if choice.names and not chosen and choice.mode == pb.TOOL_CHOICE_MODE_REQUIRED:
        report.drop("tool_choice")  # a search, which native cannot force
        return {}
    mode = MODE_NAMES.get(choice.mode)
    config: JsonObject = {"mode": mode} if mode else {}
    if chosen and choice.mode in (pb.TOOL_CHOICE_MODE_REQUIRED, pb.TOOL_CHOICE_MODE_VALIDATED):
        config["allowedFunctionNames"] = [names.of_choice(name) for name in chosen]
    return config
