"""Complete responses of the responses format: encoded for a caller, and decoded from a provider's body."""

import re

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, replace_model_id
from umg_grpc.wire.core.lenient_number_reading import set_time
from umg_grpc.wire.core.reasoning_state_conversion import STATE_PREFIX
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.errors.provider_errors import no_response, unreadable
from umg_grpc.wire.responses.content_parts import encode_part
from umg_grpc.wire.responses.decode_output import (
    PassedResponse,
    ProviderResponse,
    SeenItem,
    check_status,
    decode_finish,
    decode_head,
    decode_output_item,
    decode_used,
)
from umg_grpc.wire.responses.echoed_request_fields import encode_echo
from umg_grpc.wire.responses.encode_output import (
    Ids,
    completed_at,
    encode_output,
    ending_of_response,
    kind_of,
    response_object,
)
from umg_grpc.wire.responses.server_tools import SERVER_ITEMS
from umg_grpc.wire.responses.tool_calls import CALL_ITEMS, rename_calls
from umg_grpc.wire.responses.usage import encode_usage

# --- canonical -> caller


def encode_response(response: pb.GenerateResponse, request: pb.GenerateRequest) -> bytes:
    """Return the response for a caller: the provider's own body if it has this format, else the first candidate."""
    if response.source.format == "responses":
        return response.source.body
    if request.compaction.standalone:
        return _encode_compacted(response, request)
    ending = ending_of_response(response)
    parts = response.candidates[0].message.parts if response.candidates else []
    output = encode_output(parts, request, response.response_id, ending.status == "incomplete")
    usage = response.usage if response.HasField("usage") else None
    completed = completed_at(response, ending)
    return response_object(
        response, ending, msgspec.json.encode(output), usage, completed, encode_echo(request, response)
    )


def _encode_compacted(response: pb.GenerateResponse, request: pb.GenerateRequest) -> bytes:
    """Return the response to `POST /v1/responses/compact`: the user's turns, then one sealed summary of all others."""
    ids, output = Ids(response.response_id), list[object]()
    for index, message in enumerate(request.messages):
        if message.role == pb.ROLE_USER and not any(part.HasField("compaction") for part in message.parts):
            item_id = ids.item("msg_", message.message_id, index)
            item: JsonObject = {"id": item_id, "type": "message", "status": "completed", "role": "user"}
            output.append(item | _user_content(message))
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


def _user_content(message: pb.Message) -> JsonObject:
    report = Report()  # a content part of this format loses nothing
    return {"content": [encode_part(part, "", report) for part in message.parts]}


def can_express(part: pb.Part) -> bool:
    """Return whether a response can contain a part. A result is in the item of its call if the format has the tool."""
    if part.HasField("server_tool_result"):
        return part.server_tool_result.name in SERVER_ITEMS
    return kind_of(part) != ""


# --- provider -> canonical

RESPONSE_DECODER = msgspec.json.Decoder(ProviderResponse)
PASSED_DECODER = msgspec.json.Decoder(PassedResponse)

_STATE = re.compile(rb'("encrypted_content"\s*:\s*")' + re.escape(STATE_PREFIX.encode()))
_MARKED = rb"\1" + f"{STATE_PREFIX}responses.{STATE_PREFIX}".encode()


def decode_response(body: bytes, request: pb.GenerateRequest, pass_: bool) -> pb.GenerateResponse:
    """Decode a provider's complete response; for passthrough (`pass_`) without its output. Raise UmgError:
    UPSTREAM_FAILED for a body that cannot be decoded, or by the error's code for a response that failed.
    """
    try:
        parsed = decode(PASSED_DECODER, body) if pass_ else decode(RESPONSE_DECODER, body)
        check_status(parsed)
        if parsed.output is None:
            raise no_response(body)
        response = pb.GenerateResponse(model=request.model or parsed.model or "")
        decode_head(parsed, response)
        set_time(parsed.completed_at, response.complete_time)
        candidate = response.candidates.add()
        if isinstance(parsed, PassedResponse):
            seen = parsed.output or []
            response.source.format = "responses"
            is_complete = parsed.status or request.compaction.standalone  # a compaction has no status
            body = mark_states(body) if is_complete else _with_status(mark_states(body))
            response.source.body = replace_model_id(body, parsed.model, request.model)
        else:
            raw = parsed.output or []
            seen = [msgspec.json.decode(item, type=SeenItem) for item in raw]
            candidate.message.role = pb.ROLE_ASSISTANT
            for item in raw:
                decode_output_item(item, candidate.message)
            rename_calls(candidate.message, request)
        calls = any(item.type in CALL_ITEMS for item in seen)
        refused = any(content.type == "refusal" for item in seen for content in item.content or ())
        decode_finish(parsed, calls, refused, candidate)
        decode_used(parsed, sum(item.type == "web_search_call" for item in seen), response)
    except (ValueError, RecursionError):
        raise unreadable() from None
    return response


def _with_status(body: bytes) -> bytes:
    members = msgspec.json.decode(body, type=dict[str, Raw])
    members["status"] = Raw(b'"completed"')
    return msgspec.json.encode(members)


def mark_states(document: bytes) -> bytes:
    """Mark states of another gateway's response that look wrapped by this one: it must get them back unchanged."""
    return _STATE.sub(_MARKED, document) if STATE_PREFIX.encode() in document else document


def encode_count(tokens: int, original: int | None) -> bytes:
    """Return the response to `POST /v1/responses/input_tokens`. `original` is not used: requests contain no edits."""
    return msgspec.json.encode({"object": "response.input_tokens", "input_tokens": tokens})
