"""Tool calls of the native format (`functionCall`), in both directions; `server_tools.py` has the provider's tools."""

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, is_present, json_object, missing
from umg_grpc.wire.core.tool_argument_objects import call_arguments, free_text
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.native import schema

# --- caller or provider -> canonical


def decode_call(call: schema.ProviderCall, target: pb.ToolCall, at: str) -> None:
    """Decode a part's `functionCall` into `target`. Raise UmgError(MISSING_FIELD, INVALID_FIELD) naming the field."""
    if not call.name:
        raise missing(f"{at}.name")
    target.name, target.call_id = call.name, call.id or ""
    target.arguments_json = json_object(call.args, f"{at}.args") if is_present(call.args) else ""


def rename_call(call: pb.ToolCall, names: ToolNames) -> None:
    """Replace the provider's tool name in a call by the caller's. Arguments of a custom tool become its free text."""
    if names.resolve(call):
        call.text = free_text(call.arguments_json)
    elif not call.arguments_json:
        call.arguments_json = "{}"


# --- canonical -> caller or provider


def encode_call(call: pb.ToolCall, call_id: str, name: str) -> JsonObject:
    """Return a tool call as `functionCall`, with an id ("" if there is none) and a name that the receiver accepts."""
    called: JsonObject = {"id": call_id} if call_id else {}
    return {"functionCall": {**called, "name": name, "args": call_arguments(call)}}
