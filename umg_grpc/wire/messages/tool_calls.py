"""Tool calls of the messages format (blocks of type `tool_use`), in both directions. The calls of tools that the
provider runs itself are in `server_tools.py`.
"""

from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json import JsonObject, json_object, parse
from umg_grpc.wire.core.reasoning_state import show
from umg_grpc.wire.core.tool_arguments import free_text
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.messages import schema
from umg_grpc.wire.messages.cache_control import decode_mark

# --- caller or provider -> canonical


def decode_call(raw: Raw, owner: pb.Message | pb.ToolResult | pb.DocumentBlocks, at: str) -> None:
    """Decode a `tool_use` block as a part of `owner`. Raise UmgError naming the field."""
    block = parse(schema.ToolUseBlock, raw, at)
    part = owner.parts.add()
    part.tool_call.call_id, part.tool_call.name = block.id, block.name
    part.tool_call.arguments_json = json_object(block.input, f"{at}.input")
    decode_mark(part, block, at)


def rename_call(call: pb.ToolCall, names: ToolNames) -> None:
    """Replace the tool name in a provider's call by the name that the caller declared. For a custom tool, set the
    call's text too.
    """
    if names.resolve(call):
        call.text = free_text(call.arguments_json)


# --- canonical -> caller or provider


def encode_call(call_id: str, name: str, arguments: object) -> JsonObject:
    """Encode a tool call as a `tool_use` block. `call_id` and `name`: as the receiver accepts them."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def call_id(call: pb.ToolCall, response_id: str, index: int) -> str:
    """Return the call's id, or one made of `response_id` and `index` (unique in a conversation) if the provider sent
    none.
    """
    return call.call_id or f"toolu_{''.join(filter(str.isalnum, response_id))[-24:]}_{index}"


def call_state(state: pb.ReasoningState) -> JsonObject | None:
    """Encode the reasoning state of a tool call as a block that precedes the call, since this format has no field for
    it in the call. Return None if the call has no state, or one of this format.
    """
    if not state.data or state.format == "messages":
        return None
    return {"type": "redacted_thinking", "data": show(state, "messages")}
