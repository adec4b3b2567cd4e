"""Positions of the ids of tool calls in bodies of the chat format."""

from umg_grpc.wire.core.raw_json_edits import EACH_ELEMENT
from umg_grpc.wire.core.tool_call_id_pairing import CallIdPlaces

CALL_IDS = CallIdPlaces(
    mark=b'"tool_calls"',
    answers=tuple(
        ("choices", EACH_ELEMENT, holder, "tool_calls", EACH_ELEMENT, "id") for holder in ("message", "delta")
    ),
    requests=(("messages", EACH_ELEMENT, "tool_calls", EACH_ELEMENT, "id"), ("messages", EACH_ELEMENT, "tool_call_id")),
)
