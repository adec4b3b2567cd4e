"""Places of the ids of tool calls in bodies of the native format."""

from umg_grpc.wire.core.raw_json_edits import EACH_ELEMENT
from umg_grpc.wire.core.tool_call_id_pairing import CallIdPlaces

CALL_IDS = CallIdPlaces(
    mark=b'"functionCall"',
    answers=(("candidates", EACH_ELEMENT, "content", "parts", EACH_ELEMENT, "functionCall", "id"),),
    requests=tuple(
        ("contents", EACH_ELEMENT, "parts", EACH_ELEMENT, name, "id")
        for name in ("functionCall", "function_call", "functionResponse", "function_response")
    ),
)
