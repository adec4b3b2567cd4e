"""Tool calls of messages (`tool_use`), in both directions. Calls of the provider's tools are in `server_tools.py`."""

from collections.abc import Iterable

from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, json_object, parse
from umg_grpc.wire.core.reasoning_state_conversion import show
from umg_grpc.wire.core.tool_argument_objects import free_text
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.messages import schema
from umg_grpc.wire.messages.cache_control import decode_mark

# --- caller or provider -> canonical


def decode_call(raw: Raw, owner: pb.Message | pb.ToolResult | pb.DocumentBlocks, at: str) -> None:
    """Append a `tool_use` block. Raise UmgError(MISSING_FIELD, INVALID_FIELD) with the path of the field."""
    block = parse(schema.ToolUseBlock, raw, at)
    part = owner.parts.add()
    part.tool_call.call_id, part.tool_call.name = block.id, block.name
    part.tool_call.arguments_json = json_object(block.input, f"{at}.input")
    decode_mark(part, block, at)


def rename_call(call: pb.ToolCall, names: ToolNames) -> None:
    """Replace the tool name in a provider's call by the caller's, and a custom tool's arguments by its free text."""
    if names.resolve(call):
        call.text = free_text(call.arguments_json)


# --- canonical -> caller or provider


def encode_call(call_id: str, name: str, arguments: object) -> JsonObject:
    """Return a tool call as a `tool_use` block. The receiver accepts `call_id` and `name`; `arguments` is an object."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def call_id(call: pb.ToolCall, response_id: str, index: int) -> str:
    """Return a tool call's id; without one, an id from response id and part index, unique in a conversation."""
    return call.call_id or f"toolu_{''.join(filter(str.isalnum, response_id))[-24:]}_{index}"


def call_state(state: pb.ReasoningState) -> JsonObject | None:
    """Return a call's state as a `redacted_thinking` block before it; None if it has none of another format."""
    if not state.data or state.format == "messages":
        return None
    return {"type": "redacted_thinking", "data": show(state, "messages")}


def states_of_calls(events: Iterable[pb.GenerateEvent]) -> dict[int, pb.ReasoningState]:
    """Return part index -> reasoning state of tool calls that start in a message's events. A state comes before."""
    first = [event for event in events if not event.candidate_index]
    states = {event.part_index: event.state for event in first if event.WhichOneof("kind") == "state"}
    return {
        event.part_index: states[event.part_index]
        for event in first
        if event.part_index in states and event.part_started.HasField("tool_call")
    }
