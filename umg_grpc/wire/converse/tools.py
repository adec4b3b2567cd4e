"""Encoding of tools and the tool choice as `toolConfig` of Converse requests."""

from typing import assert_never

from umg_grpc.knowledge.model_quirk_definitions import Quirks, SchemaDialect
from umg_grpc.v1 import pb
from umg_grpc.wire.converse.cache_points import Block
from umg_grpc.wire.converse.provider_tool_names import UNUSED_TOOL
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.tool_argument_objects import encode_free_text
from umg_grpc.wire.core.tool_name_conversion import ToolNames, distinct_tools
from umg_grpc.wire.core.tool_schema_dialects import fit_parameters
from umg_grpc.wire.dropped_fields_report import Report, foreign, omits
from umg_grpc.wire.messages.tools import NO_ARGUMENTS, object_schema, offered_names
from umg_grpc.wire.model_quirks import requests_search, supports_search

CANNOT_ENFORCE = frozenset({"none", "json_object"})  # dialects of models for which the service enforces no schema
STRICT_PATH = "toolConfig.tools.toolSpec.strict"


def encode_tools(
    request: pb.GenerateRequest, names: ToolNames, report: Report, quirks: Quirks, *, in_history: bool
) -> list[Block]:
    """Return the tools as blocks; [] if the model may call none and the conversation has no calls (`in_history`), which
    require tools. Raise UmgError(UNTRANSLATABLE) for a tool that only another format has.
    """
    is_off = request.tool_choice.mode == pb.TOOL_CHOICE_MODE_NONE
    if requests_search(request):
        supports_search(request, quirks, report)
    tools = [] if is_off and not in_history else _encode_each(request, names, report, quirks)
    if is_off and tools:
        report.drop("tool_choice", "auto")
    elif is_off and request.tools:
        report.perform("tool_choice")
    if in_history and not tools:
        report.drop("tools", "one that is not to be called")
        unused = {"name": UNUSED_TOOL, "description": "Never call this tool.", "inputSchema": {"json": NO_ARGUMENTS}}
        return [Block({"toolSpec": unused})]
    return tools


def encode_choice(request: pb.GenerateRequest, names: ToolNames, tools: list[Block], report: Report) -> JsonObject:
    """Return the members with `toolChoice` for a forced tool; {} if the model decides."""
    choice = request.tool_choice
    if choice.HasField("opaque"):
        raise foreign(choice.opaque, "tool_choice")
    if request.HasField("parallel_tool_calls") and not request.parallel_tool_calls and tools:
        report.drop("parallel_tool_calls")
    if choice.mode == pb.TOOL_CHOICE_MODE_VALIDATED:
        report.drop("tool_choice.mode", "auto")
    if choice.mode != pb.TOOL_CHOICE_MODE_REQUIRED:
        return {}  # `auto` is the default, and some models refuse the member
    declared = {_name_of(block) for block in tools} - {UNUSED_TOOL}
    named = names.of_choice(choice.names[0]) if len(choice.names) == 1 and not choice.allowed_tools else ""
    if not declared or (named and named not in declared):
        report.drop("tool_choice")  # a search, or a tool that is not sent
        return {}
    return {"tool": {"name": named}} if named else {"any": {}}


def _encode_each(request: pb.GenerateRequest, names: ToolNames, report: Report, quirks: Quirks) -> list[Block]:
    tools, allowed = list[Block](), offered_names(request)
    dialect = "none" if STRICT_PATH in (quirks.rejects or ()) else quirks.schema_dialect
    for index, tool in distinct_tools(request, names, report):
        name = tool.function.name or tool.custom.name
        if allowed and name and name not in allowed:
            continue  # the choice is among other tools
        if (spec := _encode_tool(tool, names, report, f"tools[{index}]", dialect)) is not None:
            block = Block({"toolSpec": spec})
            block.take_mark(tool, report)
            tools.append(block)
    return tools


def _encode_tool(
    tool: pb.Tool, names: ToolNames, report: Report, at: str, dialect: SchemaDialect | None
) -> JsonObject | None:
    match tool.WhichOneof("kind"):
        case "function":
            return _encode_function(tool, names, f"{at}.function", report, dialect)
        case "custom":
            return _head(tool, names) | {"inputSchema": {"json": encode_free_text(tool.custom, report)}}
        case "web_search":
            return None
        case "opaque" if omits(tool.opaque, report):
            return None
        case "opaque":
            raise foreign(tool.opaque, at)
        case "file_search" | None as kind:
            raise foreign(pb.OpaquePart(format="responses", type=kind or "unknown tool"), at)
        case unhandled:
            assert_never(unhandled)


def _encode_function(
    tool: pb.Tool, names: ToolNames, at: str, report: Report, dialect: SchemaDialect | None
) -> JsonObject:
    function, encoded = tool.function, _head(tool, names)
    strict = function.strict if function.HasField("strict") else None
    schema: object = NO_ARGUMENTS | ({"additionalProperties": False} if strict else {})
    if function.parameters_json:
        parameters, strict = fit_parameters(function, None if dialect in CANNOT_ENFORCE else dialect, report, at)
        schema = object_schema(parameters, f"{at}.parameters_json")
    encoded["inputSchema"] = {"json": schema}
    if strict and dialect in CANNOT_ENFORCE:
        report.drop(f"{at}.strict", "false")
    elif strict:
        encoded["strict"] = True
    return encoded


def _head(tool: pb.Tool, names: ToolNames) -> JsonObject:
    return {name: text for name, text in names.head(tool).items() if name == "name" or str(text).strip()}


def _name_of(block: Block) -> str:
    spec = block.fields.get("toolSpec")
    return str(spec["name"]) if isinstance(spec, dict) else ""
