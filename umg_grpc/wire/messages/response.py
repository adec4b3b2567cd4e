"""Complete responses of the messages format: encoded for a caller, and decoded from a provider's body."""

from typing import assert_never

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.context_management_edits import EDITS_FIELD
from umg_grpc.wire.core.finish_reason_conversion import Ended, failed_response
from umg_grpc.wire.core.json_decoding import JsonObject, replace_model_id
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.errors.provider_errors import is_error, no_response, unreadable
from umg_grpc.wire.messages.context_management import encode_management
from umg_grpc.wire.messages.decode_messages import decode_response_blocks
from umg_grpc.wire.messages.errors import ERROR_TABLE, stated_error
from umg_grpc.wire.messages.passthrough_response_repair import with_stop_reason
from umg_grpc.wire.messages.provider_tool_names import tool_names
from umg_grpc.wire.messages.server_tools import encode_server_call, encode_server_tool_result
from umg_grpc.wire.messages.shared_response_fields import (
    FINISH_REASONS,
    Head,
    correct_finish,
    decode_finish,
    encode_blocks,
    encode_finish,
)
from umg_grpc.wire.messages.tool_calls import rename_call
from umg_grpc.wire.messages.usage import SERVICE_TIERS, decode_usage, encode_usage

# --- canonical -> caller


def encode_response(response: pb.GenerateResponse, request: pb.GenerateRequest) -> bytes:
    """Return the response for a caller: the provider's own body if it has this format, else the first candidate."""
    if response.source.format == "messages":
        return response.source.body
    candidate = response.candidates[0] if response.candidates else pb.Candidate()
    parts = candidate.message.parts
    calls = any(part.HasField("tool_call") for part in parts)
    body: JsonObject = {
        "id": response.response_id,
        "type": "message",
        "role": "assistant",
        "model": response.model,
        "content": [
            block for index, part in enumerate(parts) for block in encode_blocks(part, response.response_id, index)
        ],
        **encode_finish(candidate, calls, "" if response.candidates else response.block_reason or "OTHER"),
        "usage": encode_usage(response.usage, response.service_tier),
    }
    if response.HasField(EDITS_FIELD):
        body[EDITS_FIELD] = encode_management(response.context_management)
    return msgspec.json.encode(body)


def can_express(part: pb.Part) -> bool:
    """Return whether a response of this format can contain a part. True for media, since a text replaces them."""
    match part.WhichOneof("kind"):
        case "server_tool_call":
            return encode_server_call(part.server_tool_call, "") is not None
        case "server_tool_result":
            return encode_server_tool_result(part.server_tool_result, "") is not None
        case "opaque":
            return part.opaque.format == "messages"
        case "text" | "media" | "reasoning" | "tool_call" | "tool_result" | "refusal" | None:
            return True
        case "compaction":
            return False
        case unhandled:
            assert_never(unhandled)


# --- provider -> canonical


class ProviderMessage(Head, kw_only=True):
    """Body of a provider's response, with the fields that are decoded."""

    content: list[Raw] | None = None


PASSED_DECODER = msgspec.json.Decoder(Head)
MESSAGE_DECODER = msgspec.json.Decoder(ProviderMessage)


def decode_response(body: bytes, request: pb.GenerateRequest, pass_: bool) -> pb.GenerateResponse:
    """Decode a provider's complete response; for passthrough (`pass_`) without its content. Raise
    UmgError(UPSTREAM_FAILED) for a body that cannot be decoded, or the error that it states.
    """
    try:
        parsed = decode(PASSED_DECODER, body) if pass_ else decode(MESSAGE_DECODER, body)
        if is_error(parsed.error):
            raise stated_error(parsed.error)
        if parsed.type != "message":
            raise no_response(body, ERROR_TABLE)
        response = pb.GenerateResponse(response_id=parsed.id or "", model=request.model or parsed.model or "")
        if parsed.usage is not None:
            if parsed.usage.is_stated:
                decode_usage(parsed.usage, response.usage)
            if parsed.usage.service_tier in SERVICE_TIERS:
                response.service_tier = parsed.usage.service_tier
        stop = parsed.stop_reason
        if stop not in FINISH_REASONS and (error := failed_response(Ended(stop))) is not None:
            raise error.with_usage(response.usage if response.HasField("usage") else None)
        if pass_ and not parsed.stop_reason:
            body = with_stop_reason(body)
            parsed.stop_reason = decode(PASSED_DECODER, body).stop_reason
        candidate = response.candidates.add()
        decode_finish(parsed, candidate)
        if isinstance(parsed, ProviderMessage):
            _decode_content(parsed.content, candidate, request)
        else:
            response.source.format = "messages"
            response.source.body = replace_model_id(body, parsed.model, request.model)
    except (ValueError, RecursionError):
        raise unreadable() from None
    return response


def _decode_content(content: list[Raw] | None, candidate: pb.Candidate, request: pb.GenerateRequest) -> None:
    message = candidate.message
    message.role = pb.ROLE_ASSISTANT
    decode_response_blocks(content or [], message)
    calls = [part.tool_call for part in message.parts if part.HasField("tool_call")]
    if calls:
        names = tool_names(request)
        for call in calls:
            rename_call(call, names)
    correct_finish(candidate, bool(calls))
