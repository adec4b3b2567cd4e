"""Tools that the provider runs (search, code execution, for example): calls and results, in both directions."""

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, is_present, json_text, parse
from umg_grpc.wire.native import schema

CODE_TOOL = "code_execution"
# The format's names of its own tools (SDK types `ToolType`) -> ours.
TOOL_TYPES = {
    "GOOGLE_SEARCH_WEB": "web_search",
    "GOOGLE_SEARCH_IMAGE": "image_search",
    "GOOGLE_MAPS": "maps",
    "URL_CONTEXT": "url_context",
    "FILE_SEARCH": "file_search",
}
TOOL_TYPE_NAMES = {ours: name for name, ours in TOOL_TYPES.items()}


# --- caller or provider -> canonical


class _Id(msgspec.Struct):
    id: str | None = None


def decode_server_tool(part: schema.ProviderPart, target: pb.Part, at: str) -> bool:
    """Decode a call or result of a provider's tool. Return False for other parts. Raise UmgError(INVALID_FIELD)."""
    if is_present(part.executable_code):
        target.server_tool_call.name, target.server_tool_call.format = CODE_TOOL, "native"
        target.server_tool_call.input_json = str(part.executable_code, "utf-8")
        target.server_tool_call.call_id = parse(_Id, part.executable_code, f"{at}.executableCode").id or ""
    elif is_present(part.code_execution_result):
        target.server_tool_result.name, target.server_tool_result.format = CODE_TOOL, "native"
        target.server_tool_result.output_json = str(part.code_execution_result, "utf-8")
        path = f"{at}.codeExecutionResult"
        target.server_tool_result.call_id = parse(_Id, part.code_execution_result, path).id or ""
    elif part.tool_call is not None:
        call, used = target.server_tool_call, part.tool_call
        call.name, call.call_id = _tool_name(used), used.id or ""
        call.format = "native"
        call.input_json = str(used.args, "utf-8") if is_present(used.args) else "{}"
    elif part.tool_response is not None:
        result, used = target.server_tool_result, part.tool_response
        result.name, result.call_id = _tool_name(used), used.id or ""
        result.format = "native"
        result.output_json = str(used.response, "utf-8") if is_present(used.response) else "{}"
    else:
        return False
    return True


def _tool_name(used: schema.ServerTool) -> str:
    word = (used.tool_type or "").upper()
    return TOOL_TYPES.get(word, word.lower())


# --- canonical -> caller or provider


def encode_server_tool(part: pb.Part, at: str) -> JsonObject | None:
    """Return a call or result of a provider's tool as a part; None for another format's. Raise UmgError(INVALID_FIELD)
    for an input or output that is not one JSON value.
    """
    if part.HasField("server_tool_call"):
        call = part.server_tool_call
        if call.format != "native":
            return None
        args = json_text(call.input_json, f"{at}.server_tool_call.input_json")
        return (
            {"executableCode": args}
            if call.name == CODE_TOOL
            else {"toolCall": _server_tool_members(call, "args", args)}
        )
    result = part.server_tool_result
    if result.format != "native":
        return None
    output = json_text(result.output_json, f"{at}.server_tool_result.output_json")
    if result.name == CODE_TOOL:
        return {"codeExecutionResult": output}
    return {"toolResponse": _server_tool_members(result, "response", output)}


def _server_tool_members(tool: pb.ServerToolCall | pb.ServerToolResult, name: str, value: Raw) -> JsonObject:
    used: JsonObject = {"id": tool.call_id} if tool.call_id else {}
    return {**used, "toolType": TOOL_TYPE_NAMES.get(tool.name, tool.name.upper()), name: value}
