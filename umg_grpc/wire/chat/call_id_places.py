"""Places of the ids of tool calls in bodies of the chat format."""

from umg_grpc.wire.core.raw_json_edits import EACH
from umg_grpc.wire.core.tool_call_ids import CallIdPlaces

CALL_IDS = CallIdPlaces(
    mark=b'"tool_calls"',
    answers=tuple(("choices", EACH, holder, "tool_calls", EACH, "id") for holder in ("message", "delta")),
    requests=(("messages", EACH, "tool_calls", EACH, "id"), ("messages", EACH, "tool_call_id")),
)
