"""The whole answer, both directions."""

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.json import JsonObject, under_model
from umg_grpc.wire.messages.answer import (
    Head,
    decode_finish,
    encode_blocks,
    encode_finish,
    encode_found,
    encode_server_call,
    rename_call,
    settle,
)
from umg_grpc.wire.messages.content import decode_answer
from umg_grpc.wire.messages.errors import stated_error
from umg_grpc.wire.messages.names import tool_names
from umg_grpc.wire.messages.usage import SERVICE_TIERS, decode_usage, encode_usage
from umg_grpc.wire.provider_errors import is_error, unreadable
from umg_grpc.wire.ragged import decode

# --- canonical -> caller


def encode_response(response: pb.GenerateResponse, request: pb.GenerateRequest) -> bytes:
    """The body; the provider's own where that is of this format. Of several answers the first: there is one here."""
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
    return msgspec.json.encode(body)


def shows(part: pb.Part) -> bool:
    """Whether an answer says the part: media as a note."""
    match part.WhichOneof("kind"):
        case "server_tool_call":
            return encode_server_call(part.server_tool_call, "") is not None
        case "server_tool_result":
            return encode_found(part.server_tool_result, "") is not None
        case "opaque":
            return part.opaque.format == "messages"
        case _:
            return True


def encode_count(input_tokens: int) -> bytes:
    """The body of a counted prompt."""
    return msgspec.json.encode({"input_tokens": input_tokens})


# --- provider -> canonical


class ProviderMessage(Head, kw_only=True):
    """A body, as far as it is decoded."""

    content: list[Raw] | None = None


PASSED = msgspec.json.Decoder(Head)
MESSAGE = msgspec.json.Decoder(ProviderMessage)


def decode_response(body: bytes, request: pb.GenerateRequest, pass_: bool) -> pb.GenerateResponse:
    """The answer. Raises UmgError(UPSTREAM_FAILED) for a body that cannot be read or that is an error in spite of its
    status.
    """
    try:
        answer = decode(PASSED, body) if pass_ else decode(MESSAGE, body)
        if is_error(answer.error):
            raise stated_error(answer.error)
        if answer.type != "message":
            raise unreadable()
        response = pb.GenerateResponse(response_id=answer.id or "", model=request.model or answer.model or "")
        if answer.usage is not None:
            if answer.usage.is_whole:
                decode_usage(answer.usage, response.usage)
            if answer.usage.service_tier in SERVICE_TIERS:
                response.service_tier = answer.usage.service_tier
        candidate = response.candidates.add()
        decode_finish(answer, candidate)
        if isinstance(answer, ProviderMessage):
            _decode_content(answer.content, candidate, request)
        else:
            response.source.format = "messages"
            response.source.body = under_model(body, answer.model, request.model)
    except (ValueError, RecursionError):
        raise unreadable() from None
    return response


def _decode_content(content: list[Raw] | None, candidate: pb.Candidate, request: pb.GenerateRequest) -> None:
    message = candidate.message
    message.role = pb.ROLE_ASSISTANT
    decode_answer(content or [], message)
    calls = [part.tool_call for part in message.parts if part.HasField("tool_call")]
    if calls:
        names = tool_names(request)
        for call in calls:
            rename_call(call, names)
    settle(candidate, bool(calls))
