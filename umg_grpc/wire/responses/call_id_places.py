"""Places of the ids of tool calls in bodies of the responses format."""

from umg_grpc.wire.core.raw_json_edits import EACH
from umg_grpc.wire.core.tool_call_ids import CallIdPlaces

CALL_IDS = CallIdPlaces(
    mark=b'"call_id"',
    answers=(("item", "call_id"), ("response", "output", EACH, "call_id"), ("output", EACH, "call_id")),
    requests=(("input", EACH, "call_id"),),
)
