"""Vendor G's reasoning state (a thought's signature) as `extra_content.google.thought_signature` of chat."""

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.chat import schema
from umg_grpc.wire.core.json_decoding import JsonObject, is_present, parse
from umg_grpc.wire.core.reasoning_state_conversion import NO_SIGNATURE, is_placeholder


def thought_signature(extra: schema.ExtraContent | None) -> pb.ReasoningState | None:
    """Return vendor G's reasoning state (format `native`) in `extra_content`; None if absent or a placeholder."""
    signature = extra.google.thought_signature if extra and extra.google else None
    if not signature or is_placeholder(signature):
        return None
    return pb.ReasoningState(data=signature, format="native")


def is_signed(part: pb.Part) -> bool:
    """Return whether a part has a reasoning state of vendor G (a thought signature) that is not only a placeholder."""
    return part.HasField("state") and part.state.format == "native" and not is_placeholder(part.state.data)


def encode_signature(state: pb.ReasoningState) -> JsonObject:
    """Return a reasoning state of vendor G as the value of the member `extra_content`."""
    return {"google": {"thought_signature": state.data}}


def with_placeholder_signatures(raw: Raw) -> Raw:
    """Return a caller's `messages` with a placeholder signature on each message's first call that has none; `raw`
    itself if none is missing. Vendor G rejects a missing one after the last user message; earlier messages get one too,
    so that prompt caches match.
    """
    if b'"tool_calls"' not in bytes(raw):
        return raw
    messages, changes = parse(list[dict[str, Raw]], raw, "messages"), False
    for message in messages:
        if not is_present(message.get("tool_calls", Raw())):
            continue
        calls = parse(list[dict[str, Raw]], message["tool_calls"], "messages.tool_calls")
        if calls and not is_present(calls[0].get("extra_content", Raw())):
            calls[0]["extra_content"] = Raw(msgspec.json.encode(encode_signature(pb.ReasoningState(data=NO_SIGNATURE))))
            message["tool_calls"], changes = Raw(msgspec.json.encode(calls)), True
    return Raw(msgspec.json.encode(messages)) if changes else raw
