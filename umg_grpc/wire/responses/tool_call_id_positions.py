"""Places of the ids of tool calls in bodies of the responses format."""

from umg_grpc.wire.core.raw_json_edits import EACH_ELEMENT
from umg_grpc.wire.core.tool_call_id_pairing import CallIdPlaces

CALL_IDS = CallIdPlaces(
    mark=b'"call_id"',
    answers=(("item", "call_id"), ("response", "output", EACH_ELEMENT, "call_id"), ("output", EACH_ELEMENT, "call_id")),
    requests=(("input", EACH_ELEMENT, "call_id"),),
)
