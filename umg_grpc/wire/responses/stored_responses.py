"""Stored responses: retrieval, replay as a stream, input items, deletion (reference, 2.7; the document has none)."""

from collections.abc import Mapping
from typing import assert_never

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, invalid
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.core.sse import split
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.responses.content_parts import compact_output, encode_part
from umg_grpc.wire.responses.decode_messages import ROLE_NAMES, compaction_item
from umg_grpc.wire.responses.encode_output import completed_at, encode_output, ending_of_response
from umg_grpc.wire.responses.response import encode_response
from umg_grpc.wire.responses.stream_encoder import StreamEncoder

MAX_ITEMS = 100


def encode_stored(stored: pb.StoredResponse) -> bytes:
    """Encode a stored response as the body of `GET /v1/responses/{id}`."""
    return encode_response(stored.response, stored.request)


def encode_events(stored: pb.StoredResponse, starting_after: int = -1) -> bytes:
    """Return a stored response as events. `starting_after`: sequence number of the last event to leave out, or -1."""
    encoder = StreamEncoder(stored.request)
    stream = encoder.feed(response_to_events(stored.response))
    ending = ending_of_response(stored.response)
    encoder.set_ending(ending, completed_at(stored.response, ending))
    stream += encoder.close()
    if starting_after < 0:
        return stream
    events = [event.raw for event in split(stream)]  # numbered from 0, by 1
    return b"".join(events[starting_after + 1 :])


def decode_starting_after(query: Mapping[str, str]) -> int:
    """Return the number in `starting_after`; -1 without it. Raise UmgError(INVALID_FIELD) for any other text."""
    given = query.get("starting_after", "-1")
    if given != "-1" and not (given.isascii() and given.isdecimal()):
        raise invalid("starting_after", "expected the sequence_number of an event; send a whole number")
    return min(int(given[:18]), 2**31)


def encode_deleted(response_id: str) -> bytes:
    """Encode the body of `DELETE /v1/responses/{id}`."""
    return msgspec.json.encode({"id": response_id, "object": "response", "deleted": True})


def decode_input_items_query(response_id: str, query: Mapping[str, str]) -> pb.ListInputItemsRequest:
    """Decode `limit`, `order` and `after` of `GET /v1/responses/{id}/input_items`. Raise UmgError(INVALID_FIELD)."""
    request = pb.ListInputItemsRequest(response_id=response_id, page_token=query.get("after", ""))
    if (limit := query.get("limit")) is not None:
        if not (limit.isascii() and limit.isdecimal() and len(limit) < 10 and 1 <= int(limit) <= MAX_ITEMS):
            raise invalid("limit", f"expected a whole number from 1 to {MAX_ITEMS}; correct its value")
        request.page_size = int(limit)
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise invalid("order", "expected `asc` or `desc`; send one of them")
    request.ascending = order == "asc"
    return request


def encode_input_items(listing: pb.ListInputItemsResponse) -> bytes:
    """Return a page of items. `first_id` and `last_id` are values of the parameter `after`, null for an empty page."""
    body: JsonObject = {
        "object": "list",
        "data": [item for message in listing.items for item in _items(message)],
        "first_id": listing.items[0].message_id if listing.items else None,
        "last_id": listing.items[-1].message_id if listing.items else None,
        "has_more": bool(listing.next_page_token),
    }
    return msgspec.json.encode(body)


def _items(message: pb.Message) -> list[object]:
    """Return a stored message as items: one or, for tool results and responses of another format, several."""
    if message.role == pb.ROLE_ASSISTANT:
        return _assistant_items(message)
    items, content = list[object](), list[object]()
    for part in message.parts:
        if part.HasField("tool_result"):
            items.append(_result(part.tool_result, message.message_id, len(items)))
        elif part.HasField("opaque") and message.role == pb.ROLE_UNSPECIFIED:
            items.append(_with_id(part.opaque, message.message_id))
        elif part.HasField("compaction"):
            items.append(compaction_item(part.compaction.encrypted_content, message.message_id))
        else:
            content.append(_content(part))
    if content or not items:
        item: JsonObject = {
            "id": message.message_id,
            "type": "message",
            "status": "completed",
            "role": ROLE_NAMES.get(message.role, "user"),
            "content": content,
        }
        items.append(item)
    return items


def _assistant_items(message: pb.Message) -> list[object]:
    """Return a message of the model as items; the first item has the id of the message."""
    parts = list[pb.Part]()
    for index, part in enumerate(message.parts):
        own = pb.Part()
        own.CopyFrom(part)
        item_id = message.message_id if index == 0 else ""
        match own.WhichOneof("kind"):
            case "text" | "refusal":
                own.message_id = own.message_id or message.message_id
                own.phase = own.phase or message.phase
            case "reasoning":
                own.reasoning.item_id = item_id or own.reasoning.item_id
            case "tool_call":
                own.tool_call.item_id = item_id or own.tool_call.item_id
            case "media" | "tool_result" | "server_tool_call" | "server_tool_result" | "opaque" | "compaction" | None:
                pass  # its item has an id of its own
            case unhandled:
                assert_never(unhandled)
        parts.append(own)
    return encode_output(parts, pb.GenerateRequest(), message.message_id, incomplete=False)


def _result(result: pb.ToolResult, message_id: str, index: int) -> JsonObject:
    given = result.item_id or message_id
    return {
        "id": message_id if index == 0 else f"{given}_{index}",
        "type": "custom_tool_call_output" if result.custom else "function_call_output",
        "status": "completed",
        "call_id": result.call_id,
        "output": compact_output([_content(part) for part in result.parts], result),
    }


def _with_id(opaque: pb.OpaquePart, message_id: str) -> object:
    members = msgspec.json.decode(opaque.json, type=dict[str, msgspec.Raw])
    return members | {"id": message_id}


def _content(part: pb.Part) -> object:
    """Return a part as a listed content part. Raw JSON of another format, and media that have none, become text."""
    if part.HasField("opaque"):
        own = part.opaque.format == "responses"
        return msgspec.Raw(part.opaque.json.encode()) if own else {"type": "input_text", "text": part.opaque.json}
    if part.HasField("media") and not _is_known(part.media):
        shown = part.media.uri or part.media.file_id or part.media.filename or part.media.mime_type
        return {"type": "input_text", "text": shown}
    if part.HasField("text") or part.HasField("refusal") or part.HasField("media"):
        return encode_part(part, "", Report())
    return {"type": "input_text", "text": ""}


def _is_known(media: pb.MediaPart) -> bool:
    if media.kind == pb.MEDIA_KIND_AUDIO:
        return media.HasField("data") and media.mime_type in ("audio/wav", "audio/mpeg")
    if media.HasField("blocks"):
        return all(part.HasField("text") for part in media.blocks.parts)
    return media.kind in (pb.MEDIA_KIND_IMAGE, pb.MEDIA_KIND_DOCUMENT)
