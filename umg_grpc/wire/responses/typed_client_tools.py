"""Tools that the caller runs and that have a type instead of a schema (`apply_patch`, `shell`), as functions.

In other formats each is declared and called as a function; here its call and result are items of its type. Sources: the
openai SDK's `ApplyPatchToolParam`, `FunctionShellToolParam`, `LocalShell`, `ToolSearchToolParam` and their items.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, is_present, json_text, parse


class DeclaredTool(Struct):
    """Element of `tools` whose type stands for a known schema, with the fields that are decoded."""

    execution: str | None = None
    environment: Raw = ABSENT_MEMBER
    description: str | None = None
    parameters: Raw = ABSENT_MEMBER


class Environment(Struct):
    """Member `environment` of a `shell` tool or call."""

    type: str | None = None


class CallItem(Struct):
    """Item for a call of a tool with a type instead of a schema."""

    id: str | None = None
    call_id: str | None = None
    execution: str | None = None
    environment: Environment | None = None
    operation: Raw = ABSENT_MEMBER
    action: Raw = ABSENT_MEMBER
    arguments: Raw = ABSENT_MEMBER


class Outcome(Struct):
    """Member `outcome` of a command in a `shell_call_output`."""

    type: str | None = None
    exit_code: int | None = None


class CommandOutput(Struct):
    """Element of `output` of a `shell_call_output`."""

    stdout: str = ""
    stderr: str = ""
    outcome: Outcome | None = None


class OutputItem(Struct):
    """Item for the result of a tool with a type instead of a schema."""

    id: str | None = None
    call_id: str | None = None
    execution: str | None = None
    status: str | None = None
    output: str | list[CommandOutput] | None = None
    tools: list[Raw] | None = None


class ToolHead(Struct):
    """Name of a tool in the result of a search among tools."""

    type: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class ClientTool:
    """Tool of the caller with a type instead of a schema, with the function that represents it in other formats."""

    type: str  # of its declaration, and the name of the function
    call: str  # type of its call items
    prefix: str  # of the ids of its call items
    member: str  # of a call item that contains the arguments of the function
    description: str
    parameters: JsonObject
    completed: Callable[[JsonObject], JsonObject] = lambda arguments: arguments
    """Arguments from the model -> value of `member`, completed with fields that the SDK's type requires."""

    @property
    def output(self) -> str:
        """Type of the items with the tool's results."""
        return f"{self.type}_output" if self.type == "tool_search" else f"{self.call}_output"


def _object(required: Mapping[str, JsonObject], **optional: JsonObject) -> JsonObject:
    properties = {**required, **optional}
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


TEXT_SCHEMA: JsonObject = {"type": "string"}
MILLISECONDS_SCHEMA: JsonObject = {"type": "integer", "description": "Time limit in milliseconds."}
LINES_SCHEMA: JsonObject = {"type": "array", "items": TEXT_SCHEMA}

PATCH_SCHEMA: JsonObject = _object(
    {
        "type": {"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
        "path": {"type": "string", "description": "Path of the file."},
    },
    diff={
        "type": "string",
        "description": "V4A diff without a header: lines begin with +, - or a blank, sections with @@. A file that is"
        " created has only + lines; a file that is deleted needs no diff.",
    },
)
SHELL_SCHEMA = _object(
    {"commands": {**LINES_SCHEMA, "description": "Commands to run in a shell, each on its own."}},
    timeout_ms=MILLISECONDS_SCHEMA,
    max_output_length={"type": "integer", "description": "Most characters of the output to return."},
)
LOCAL_SHELL = _object(
    {"command": {**LINES_SCHEMA, "description": "The program and its arguments."}},
    env={"type": "object", "additionalProperties": TEXT_SCHEMA, "description": "Environment variables."},
    timeout_ms=MILLISECONDS_SCHEMA,
    user={"type": "string", "description": "User to run it as."},
    working_directory={"type": "string", "description": "Folder to run it in."},
)
SEARCH_SCHEMA = _object({"query": {"type": "string", "description": "What the wanted tools do."}})

CLIENT_TOOLS = {
    tool.type: tool
    for tool in (
        ClientTool(
            "apply_patch",
            "apply_patch_call",
            "apc_",
            "operation",
            "Creates, updates or deletes one file.",
            PATCH_SCHEMA,
            lambda arguments: arguments if arguments.get("type") == "delete_file" else {"diff": "", **arguments},
        ),
        ClientTool(
            "shell",
            "shell_call",
            "sh_",
            "action",
            "Runs shell commands on the user's machine.",
            SHELL_SCHEMA,
            lambda arguments: {"commands": [], "timeout_ms": None, "max_output_length": None, **arguments},
        ),
        ClientTool(
            "local_shell",
            "local_shell_call",
            "lsh_",
            "action",
            "Runs one program on the user's machine.",
            LOCAL_SHELL,
            lambda arguments: {"type": "exec", "command": [], "env": {}, **arguments},
        ),
        ClientTool(
            "tool_search",
            "tool_search_call",
            "tsc_",
            "arguments",
            "Finds tools that are not loaded yet and loads them.",
            SEARCH_SCHEMA,
        ),
    )
}
TOOLS_BY_CALL = {tool.call: tool for tool in CLIENT_TOOLS.values()}
TOOLS_BY_OUTPUT = {tool.output: tool for tool in CLIENT_TOOLS.values()}
HOSTED_ENVIRONMENTS = ("container_auto", "container_reference")


def decode_tool(raw: Raw, kind: str, target: pb.Tool, at: str) -> bool:
    """Decode a typed tool as a function with its known schema. Return False for a tool that the provider runs."""
    tool, declared = CLIENT_TOOLS[kind], parse(DeclaredTool, raw, at)
    environment = (
        parse(Environment, declared.environment, f"{at}.environment") if is_present(declared.environment) else None
    )
    if environment is not None and environment.type in HOSTED_ENVIRONMENTS:
        return False
    if kind == "tool_search" and declared.execution != "client":
        return False
    function = target.function
    function.name, function.description = kind, declared.description or tool.description
    schema = declared.parameters if is_present(declared.parameters) else Raw(msgspec.json.encode(tool.parameters))
    function.parameters_json = str(schema, "utf-8")
    function.declared.format, function.declared.type, function.declared.json = "responses", kind, str(raw, "utf-8")
    return True


def decode_call(raw: Raw, kind: str, part: pb.Part, at: str) -> bool:
    """Decode the call of a typed tool. Return False for a tool that the provider runs."""
    tool, item = TOOLS_BY_CALL[kind], parse(CallItem, raw, at)
    hosted = item.environment is not None and item.environment.type in HOSTED_ENVIRONMENTS
    if hosted or item.execution == "server" or item.call_id is None:
        return False
    call = part.tool_call
    call.call_id, call.name, call.tool_type, call.item_id = item.call_id, tool.type, tool.type, item.id or ""
    arguments: Raw = getattr(item, tool.member)
    call.arguments_json = str(arguments, "utf-8") if is_present(arguments) else "{}"
    return True


def decode_output(raw: Raw, kind: str, result: pb.ToolResult, at: str) -> bool:
    """Decode the result of a typed tool. Return False for a tool that the provider runs."""
    tool, item = TOOLS_BY_OUTPUT[kind], parse(OutputItem, raw, at)
    call_id = item.call_id or (item.id if tool.type == "local_shell" else None)
    if item.execution == "server" or call_id is None:
        return False
    result.call_id, result.name, result.item_id = call_id, tool.type, item.id or ""
    if text := _output_text(item, at):
        result.parts.add().text.text = text
    if item.status == "failed":
        result.is_error = True
    return True


def _output_text(item: OutputItem, at: str) -> str:
    if item.tools is not None:
        found = [parse(ToolHead, tool, f"{at}.tools[{index}]") for index, tool in enumerate(item.tools)]
        return "loaded: " + ", ".join(tool.name or tool.type or "" for tool in found) if found else "no tool was found"
    if isinstance(item.output, list):
        return "\n".join(_command_text(output) for output in item.output)
    return item.output or ""


def _command_text(output: CommandOutput) -> str:
    outcome = output.outcome or Outcome()
    ended = "timed out" if outcome.type == "timeout" else f"exit code {outcome.exit_code or 0}"
    return "\n".join(text for text in (output.stdout.rstrip("\n"), output.stderr.rstrip("\n"), f"[{ended}]") if text)


def call_item(item_id: str, call_id: str, status: str, call: pb.ToolCall, arguments: str) -> JsonObject:
    """Return a call of a typed tool as an item. Arguments that are no JSON object become one text for the caller."""
    tool = CLIENT_TOOLS[call.tool_type]
    item: JsonObject = {"id": item_id, "type": tool.call, "call_id": call_id, "status": status}
    item[tool.member] = tool.completed(_arguments(arguments))
    if tool.type == "shell":
        item["environment"] = {"type": "local"}
    if tool.type == "tool_search":
        item["execution"] = "client"
    return item


def _arguments(text: str) -> JsonObject:
    try:
        value: object = msgspec.json.decode(text or "{}")
    except (ValueError, RecursionError):
        value = None
    return dict(value) if isinstance(value, dict) else {"raw_arguments": text}


def output_item(call_id: str, tool_type: str, result: pb.ToolResult) -> JsonObject:
    """Return the result of a tool with a type (`tool_type`) instead of a schema as an item for a provider."""
    tool = CLIENT_TOOLS[tool_type]
    text = "\n".join(part.text.text for part in result.parts if part.HasField("text"))
    item: JsonObject = {"type": tool.output, "call_id": call_id}
    match tool.type:
        case "shell":
            outcome = {"type": "exit", "exit_code": int(result.is_error)}
            return item | {"output": [{"stdout": text, "stderr": "", "outcome": outcome}]}
        case "local_shell":
            return {"type": tool.output, "id": call_id, "output": text}
        case "tool_search":
            return item | {"execution": "client", "status": "completed", "tools": []}
        case _:  # apply_patch
            return item | {"status": "failed" if result.is_error else "completed", "output": text}


def declared(function: pb.FunctionTool, at: str) -> Raw:
    """Return the JSON with which the caller declared a typed tool, decoded as `function`. `at`: path for errors."""
    return json_text(function.declared.json, f"{at}.declared.json")
