"""Reasoning state of the native format (a signature of a thought) as `extra_content.google.thought_signature`
of chat.
"""

from umg_grpc.v1 import pb
from umg_grpc.wire.chat import schema
from umg_grpc.wire.core.json import JsonObject
from umg_grpc.wire.core.reasoning_state import is_placeholder


def thought_signature(extra: schema.ExtraContent | None) -> pb.ReasoningState | None:
    """Return vendor G's reasoning state (its thought signature) in `extra`, the member `extra_content`; None without a
    signature, and for a placeholder. The state has the native format.
    """
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
