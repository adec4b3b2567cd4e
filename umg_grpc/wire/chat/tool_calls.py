"""Tool calls of chat messages (`tool_calls`, `function_call`), in both directions."""

from collections.abc import Callable

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.chat import schema
from umg_grpc.wire.chat.provider_reasoning_members import from_canonical, put, read_call, to_canonical
from umg_grpc.wire.chat.thought_signatures import encode_signature, is_signed, thought_signature
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, parse
from umg_grpc.wire.core.tool_argument_objects import Arguments, arguments_text

# --- caller -> canonical


def _decode_function_call(raw: Raw, part: pb.Part, at: str) -> None:
    call = parse(schema.FunctionToolCall, raw, at)
    part.tool_call.call_id = call.id
    part.tool_call.name, part.tool_call.arguments_json = call.function.name, call.function.arguments or ""
    if (signature := thought_signature(call.extra_content)) is not None:
        part.state.MergeFrom(signature)
    elif call.provider_specific_fields is not ABSENT_MEMBER and bytes(call.provider_specific_fields).startswith(b"{"):
        members = parse(dict[str, Raw], call.provider_specific_fields, f"{at}.provider_specific_fields")
        if state := read_call(members):
            part.state.CopyFrom(to_canonical(state))


def _decode_custom_call(raw: Raw, part: pb.Part, at: str) -> None:
    call, target = parse(schema.CustomToolCall, raw, at), part.tool_call
    target.call_id, target.name, target.text = call.id, call.custom.name, call.custom.input or ""


CALL_DECODERS: dict[str, Callable[[Raw, pb.Part, str], None]] = {
    "function": _decode_function_call,
    "custom": _decode_custom_call,
}
"""Type of a call in a caller's message -> decoder. Each decoder raises UmgError that names the invalid field."""

# --- canonical -> either side


def encode_call(part: pb.Part, call_id: str, name: str) -> JsonObject:
    """Return an element of `tool_calls`, with its reasoning state if chat has a member for it."""
    call, encoded = part.tool_call, JsonObject(id=call_id)
    if call.HasField("text"):
        encoded |= {"type": "custom", "custom": {"name": name, "input": call.text}}
    else:
        encoded |= {"type": "function", "function": {"name": name, "arguments": call.arguments_json or "{}"}}
    put(from_canonical(part.state), encoded, "call")
    if is_signed(part) and not call.HasField("text"):
        encoded["extra_content"] = encode_signature(part.state)
    return encoded


# --- canonical -> caller


def call_id(call: pb.ToolCall, response_id: str, index: int) -> str:
    """Return a tool call's id. If it has none, one is made from response id and index, unique in a conversation."""
    return call.call_id or f"call_{''.join(filter(str.isalnum, response_id))[-24:]}_{index}"


def encode_calls(calls: list[pb.Part], legacy: bool, response_id: str) -> JsonObject:
    """Return a response's calls as `tool_calls` or, if `legacy`, the first one as the older `function_call`."""
    if legacy:
        call = calls[0].tool_call
        return {"function_call": {"name": call.name, "arguments": call.arguments_json or call.text or "{}"}}
    return {
        "tool_calls": [
            encode_call(part, call_id(part.tool_call, response_id, index), part.tool_call.name)
            for index, part in enumerate(calls)
        ]
    }


# --- provider -> canonical


class ProviderFunction(Struct):
    """Member `function` of a tool call."""

    name: str | None = None
    arguments: Arguments = None


class ProviderCustom(Struct):
    """Member `custom` of a tool call."""

    name: str | None = None
    input: str | None = None


class ProviderCall(Struct):
    """Tool call: complete, or one piece of it in a stream. An `id` that is a number (0 at TGI) identifies no call."""

    index: int | None = None
    id: str | int | None = None
    function: ProviderFunction | None = None
    custom: ProviderCustom | None = None
    extra_content: schema.ExtraContent | None = None
    provider_specific_fields: Raw = ABSENT_MEMBER


def provider_id(call: ProviderCall) -> str:
    """Return the provider's id of a tool call, "" if it has none."""
    return call.id if isinstance(call.id, str) else ""


def decode_call(call: ProviderCall, target: pb.Part) -> None:
    """Decode a complete tool call of a provider's response, with its reasoning state if it has one, into `target`."""
    target.tool_call.call_id = provider_id(call)
    if call.custom:
        target.tool_call.name, target.tool_call.text = call.custom.name or "", call.custom.input or ""
    else:
        function = call.function or ProviderFunction()
        target.tool_call.name, target.tool_call.arguments_json = (
            function.name or "",
            arguments_text(function.arguments) or "{}",
        )
    if (state := call_state(call)) is not None:
        target.state.MergeFrom(state)


def call_state(call: ProviderCall) -> pb.ReasoningState | None:
    """Return the reasoning state in a tool call or a piece of one, if any. Raise ValueError for invalid JSON."""
    if (signature := thought_signature(call.extra_content)) is not None:
        return signature
    fields = call.provider_specific_fields
    state = read_call(msgspec.json.decode(fields, type=dict[str, Raw])) if bytes(fields).startswith(b"{") else None
    return to_canonical(state) if state else None
