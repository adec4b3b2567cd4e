"""Tool calls of responses (`function_call`, `custom_tool_call`), in both directions. Calls of typed tools are in
`typed_client_tools.py`, calls of the provider's tools in `server_tools.py`.
"""

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.chat.provider_tool_names import tool_names
from umg_grpc.wire.core.json_decoding import JsonObject, parse
from umg_grpc.wire.core.tool_argument_objects import Arguments, arguments_text
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.responses import schema, typed_client_tools

FUNCTION_CALLS = ("function_call", "custom_tool_call")
CALL_ITEMS = (*FUNCTION_CALLS, *typed_client_tools.TOOLS_BY_CALL)

# --- caller -> canonical


def decode_function_call(raw: Raw, message: pb.Message, at: str) -> None:
    """Append a `function_call` to the message's parts. Raise UmgError(MISSING_FIELD, INVALID_FIELD) with the path."""
    item, call = parse(schema.FunctionCall, raw, at), message.parts.add().tool_call
    call.call_id, call.name, call.item_id = item.call_id, item.name, item.id or ""
    call.arguments_json, call.namespace = item.arguments or "", item.namespace or ""


def decode_custom_call(raw: Raw, message: pb.Message, at: str) -> None:
    """Append a `custom_tool_call` to the parts. Raise UmgError(MISSING_FIELD, INVALID_FIELD) with the path."""
    item, call = parse(schema.CustomCall, raw, at), message.parts.add().tool_call
    call.call_id, call.name, call.item_id = item.call_id, item.name, item.id or ""
    call.text, call.namespace = item.input or "", item.namespace or ""


# --- provider -> canonical


class ProviderCall(Struct):
    """Item of type `function_call` or `custom_tool_call`."""

    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: Arguments = None
    input: str | None = None


CALL_DECODER = msgspec.json.Decoder(ProviderCall)


def decode_provider_call(raw: Raw, call: pb.ToolCall, *, custom: bool) -> None:
    """Decode the item of a provider's call. `custom`: the input is free text. Raise ValueError if it is broken."""
    item = CALL_DECODER.decode(raw)
    call.item_id, call.call_id, call.name = item.id or "", item.call_id or "", item.name or ""
    call.namespace = item.namespace or ""
    if custom:
        call.text = item.input or ""
    else:
        call.arguments_json = arguments_text(item.arguments)


def rename_calls(message: pb.Message, request: pb.GenerateRequest) -> None:
    """Replace the provider's tool names in the calls of a response by the names that `request` declares."""
    if calls := [part.tool_call for part in message.parts if part.HasField("tool_call")]:
        names = tool_names(request)
        for call in calls:
            rename_call(call, names)


def rename_call(call: pb.ToolCall, names: ToolNames) -> None:
    """Replace the provider's tool name in a call by the caller's, unless the call has a namespace or a type."""
    if not call.namespace and not call.tool_type:
        names.resolve(call)


# --- canonical -> caller


def call_item(item_id: str, call_id: str, status: str, call: pb.ToolCall, text: str) -> JsonObject:
    """Return a call as an item. `call_id`: pairs it with its result; `text`: arguments or a custom tool's input."""
    if call.tool_type in typed_client_tools.CLIENT_TOOLS:
        return typed_client_tools.call_item(item_id, call_id, status, call, text)
    custom = call.HasField("text")
    item: JsonObject = {
        "id": item_id,
        "type": "custom_tool_call" if custom else "function_call",
        "status": status,
        "call_id": call_id,
        "name": call.name,
        "input" if custom else "arguments": text,
    }
    if call.namespace:
        item["namespace"] = call.namespace
    return item


def call_prefix(call: pb.ToolCall) -> str:
    """Return the prefix of generated ids for a call's item, for example `fc_`; it depends on the kind of tool."""
    if call.tool_type in typed_client_tools.CLIENT_TOOLS:
        return typed_client_tools.CLIENT_TOOLS[call.tool_type].prefix
    return "ctc_" if call.HasField("text") else "fc_"
