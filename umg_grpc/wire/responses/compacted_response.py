"""Response of `POST /v1/responses/compact`: the user's turns, then one sealed summary of all other turns."""

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.responses.content_parts import encode_part
from umg_grpc.wire.responses.encode_output import Ids, encode_output
from umg_grpc.wire.responses.usage import encode_usage


def encode_compacted(response: pb.GenerateResponse, request: pb.GenerateRequest) -> bytes:
    """Return the response to a call that only compacts a conversation; the new summary contains the earlier ones."""
    ids, output = Ids(response.response_id), list[object]()
    for index, message in enumerate(request.messages):
        if message.role == pb.ROLE_USER and not any(part.HasField("compaction") for part in message.parts):
            item_id = ids.item("msg_", message.message_id, index)
            output.append({"id": item_id, "type": "message", "status": "completed", "role": "user"} | _content(message))
    parts = response.candidates[0].message.parts if response.candidates else []
    summary = encode_output(parts, request, response.response_id, incomplete=False)
    body: JsonObject = {
        "id": response.response_id,
        "object": "response.compaction",
        "created_at": response.create_time.seconds,
        "output": [*output, *summary],
        "usage": encode_usage(response.usage) if response.HasField("usage") else None,
    }
    return msgspec.json.encode(body)


def _content(message: pb.Message) -> JsonObject:
    report = Report()  # a content part of this format loses nothing
    return {"content": [encode_part(part, "", report) for part in message.parts]}
