"""Positions of the ids of tool calls in bodies of the messages format."""

from umg_grpc.wire.core.raw_json_edits import EACH_ELEMENT
from umg_grpc.wire.core.tool_call_id_pairing import CallIdPlaces

CALL_IDS = CallIdPlaces(mark=b'"tool_use"', answers=(("content_block", "id"), ("content", EACH_ELEMENT, "id")))
