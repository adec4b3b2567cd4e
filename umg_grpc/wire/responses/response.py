"""The whole answer, both directions."""

import re

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.chat.names import tool_names
from umg_grpc.wire.json import JsonObject, under_model
from umg_grpc.wire.names import ToolNames
from umg_grpc.wire.provider_errors import unreadable
from umg_grpc.wire.ragged import decode
from umg_grpc.wire.responses.answer import (
    CALLS,
    PassedResponse,
    ProviderResponse,
    SeenItem,
    check_status,
    decode_finish,
    decode_head,
    decode_output_item,
    decode_used,
)
from umg_grpc.wire.responses.echo import repeated
from umg_grpc.wire.responses.output import (
    SERVER_ITEMS,
    completed_at,
    encode_output,
    ending_of_response,
    kind_of,
    response_object,
)
from umg_grpc.wire.state import PREFIX

# --- canonical -> caller


def encode_response(response: pb.GenerateResponse, request: pb.GenerateRequest) -> bytes:
    """The body; the provider's own where that is of this format. Of several candidates the first: there is no place for
    others.
    """
    if response.source.format == "responses":
        return response.source.body
    ending = ending_of_response(response)
    parts = response.candidates[0].message.parts if response.candidates else []
    output = encode_output(parts, request, response.response_id, ending.status == "incomplete")
    usage = response.usage if response.HasField("usage") else None
    completed = completed_at(response, ending)
    return response_object(response, ending, msgspec.json.encode(output), usage, completed, repeated(request))


def shows(part: pb.Part) -> bool:
    """Whether an answer says the part: what a provider's tool found stands in the item of its call."""
    if part.HasField("server_tool_result"):
        return part.server_tool_result.name in SERVER_ITEMS
    return kind_of(part) != ""


# --- provider -> canonical

RESPONSE = msgspec.json.Decoder(ProviderResponse)
PASSED = msgspec.json.Decoder(PassedResponse)

_STATE = re.compile(rb'("encrypted_content"\s*:\s*")' + re.escape(PREFIX.encode()))
_WRAPPED = rb"\1" + f"{PREFIX}responses.{PREFIX}".encode()


def decode_response(body: bytes, request: pb.GenerateRequest, pass_: bool) -> pb.GenerateResponse:
    """The answer. Raises UmgError: UPSTREAM_FAILED for a body that cannot be read; for a response that failed in spite
    of its status, by the code of its error.
    """
    try:
        answer = decode(PASSED, body) if pass_ else decode(RESPONSE, body)
        check_status(answer)
        if answer.output is None:
            raise unreadable()
        response = pb.GenerateResponse(model=request.model or answer.model or "")
        decode_head(answer, response)
        if answer.completed_at:
            response.complete_time.seconds = int(answer.completed_at)
        candidate = response.candidates.add()
        if isinstance(answer, PassedResponse):
            seen = answer.output or []
            response.source.format = "responses"
            response.source.body = under_model(wrapped(body), answer.model, request.model)
        else:
            raw = answer.output or []
            seen = [msgspec.json.decode(item, type=SeenItem) for item in raw]
            candidate.message.role = pb.ROLE_ASSISTANT
            for item in raw:
                decode_output_item(item, candidate.message)
            rename(candidate.message, request)
        decode_finish(answer, _calls(seen), _refused(seen), candidate)
        decode_used(answer, sum(item.type == "web_search_call" for item in seen), response)
    except (ValueError, RecursionError):
        raise unreadable() from None
    return response


def rename(message: pb.Message, request: pb.GenerateRequest) -> None:
    """Gives the calls the names by which the caller knows the tools."""
    if calls := [part.tool_call for part in message.parts if part.HasField("tool_call")]:
        names = tool_names(request)
        for call in calls:
            rename_call(call, names)


def rename_call(call: pb.ToolCall, names: ToolNames) -> None:
    """Give a call the caller's names of its tool, unless it has a namespace or a type of this format."""
    if not call.namespace and not call.tool_type:
        names.resolve(call)


def _calls(items: list[SeenItem]) -> bool:
    return any(item.type in CALLS for item in items)


def _refused(items: list[SeenItem]) -> bool:
    return any(content.type == "refusal" for item in items for content in item.content or ())


def wrapped(document: bytes) -> bytes:
    """A provider's JSON with states that look like ones that we show of other formats (it is a gateway such as this)
    marked as its own, so that they come back to it.
    """
    return _STATE.sub(_WRAPPED, document) if PREFIX.encode() in document else document


def encode_count(tokens: int) -> bytes:
    """Body of `POST /v1/responses/input_tokens`."""
    body: JsonObject = {"object": "response.input_tokens", "input_tokens": tokens}
    return msgspec.json.encode(body)
