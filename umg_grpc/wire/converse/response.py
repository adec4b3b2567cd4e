"""Complete responses of Converse providers, decoded."""

from collections.abc import Iterator

import msgspec
import pybase64
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.converse.citations import decode_citation
from umg_grpc.wire.converse.encode_parts import REDACTED_FORMAT, SIGNED_FORMAT
from umg_grpc.wire.converse.errors import ERROR_TABLE
from umg_grpc.wire.converse.media_blocks import MEDIA_TYPES
from umg_grpc.wire.converse.provider_tool_names import tool_names
from umg_grpc.wire.converse.schema import (
    CitationsContent,
    ContentBlock,
    Image,
    Message,
    ReasoningContent,
    Response,
    ToolUse,
)
from umg_grpc.wire.converse.usage import decode_usage
from umg_grpc.wire.core.charged_service_tiers import charged_tier
from umg_grpc.wire.core.finish_reason_conversion import Ended, failed_response
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, decode_or_none, is_present
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.core.tool_argument_objects import free_text
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.errors.provider_errors import no_response, unreadable
from umg_grpc.wire.messages.shared_response_fields import Ending, correct_finish
from umg_grpc.wire.messages.shared_response_fields import decode_finish as decode_ending

RESPONSE_DECODER, BLOCK_DECODER = msgspec.json.Decoder(Response), msgspec.json.Decoder(ContentBlock)
SERVER_CALL = "server_tool_use"


class Additional(msgspec.Struct):
    """Member `additionalModelResponseFields`, with the requested members of the model's own response."""

    stop_sequence: str | None = None


class _Guardrail(msgspec.Struct, rename="camel"):
    action_reason: str | None = None


class _Trace(msgspec.Struct):
    guardrail: _Guardrail | None = None


_ADDITIONAL, _TRACE = msgspec.json.Decoder(Additional), msgspec.json.Decoder(_Trace)


def decode_response(body: bytes, request: pb.GenerateRequest, pass_: bool) -> pb.GenerateResponse:
    """Decode a provider's response. Raise UmgError(UPSTREAM_FAILED) for a body that cannot be decoded."""
    try:
        parsed = decode(RESPONSE_DECODER, body)
        message = Message() if parsed.output is None else parsed.output.message or Message()
        if message.content is None and parsed.stop_reason is None:
            raise no_response(body, ERROR_TABLE)
        usage = decode_usage(parsed.usage, parsed.service_tier)
        if (error := failed_response(Ended(parsed.stop_reason))) is not None:
            raise error.with_usage(usage)
        response = pb.GenerateResponse(model=request.model, usage=usage)
        if parsed.service_tier is not None:
            response.service_tier = charged_tier(parsed.service_tier.type)
        candidate = response.candidates.add()
        candidate.message.role = pb.ROLE_ASSISTANT
        decode_finish(parsed.stop_reason, parsed.additional_model_response_fields, candidate)
        candidate.finish_message = blocked_message(parsed.trace)
        candidate.message.parts.extend(_decode_content(message.content or [], request))
        correct_finish(candidate, any(part.HasField("tool_call") for part in candidate.message.parts))
    except (ValueError, RecursionError):
        raise unreadable() from None
    return response


def decode_finish(reason: str | None, additional: Raw, target: pb.Candidate | pb.CandidateFinished) -> None:
    """Decode the finish reason, and the stop sequence in the additional response fields, into `target`."""
    stated = decode_or_none(_ADDITIONAL, additional) if is_present(additional) else None
    decode_ending(Ending(stop_reason=reason, stop_sequence=None if stated is None else stated.stop_sequence), target)


def blocked_message(trace: Raw) -> str:
    """Return the reason why a guardrail intervened, from the member `trace`; "" if it states none."""
    stated = decode_or_none(_TRACE, trace) if is_present(trace) else None
    return "" if stated is None or stated.guardrail is None else stated.guardrail.action_reason or ""


def _decode_content(content: list[Raw], request: pb.GenerateRequest) -> Iterator[pb.Part]:
    names: ToolNames | None = None
    for raw in content:
        block = BLOCK_DECODER.decode(raw)
        if block.text is not None:
            yield pb.Part(text=pb.TextPart(text=block.text))
        elif block.tool_use is not None and block.tool_use.type != SERVER_CALL:
            names = tool_names(request) if names is None else names
            yield decode_call(block.tool_use, names)
        elif block.reasoning_content is not None:
            yield decode_reasoning(block.reasoning_content)
        elif block.citations_content is not None:
            yield _decode_cited(block.citations_content)
        elif block.image is not None and block.image.source is not None and (data := block.image.source.bytes):
            yield pb.Part(media=image_of(block.image, pybase64.b64decode(data, validate=True)))
        else:
            yield pb.Part(opaque=opaque_block(raw))


def decode_call(call: ToolUse, names: ToolNames) -> pb.Part:
    """Return a tool call with the tool's name replaced by the caller's name."""
    arguments = bytes(call.input).decode() if is_present(call.input) else "{}"
    decoded = pb.ToolCall(call_id=call.tool_use_id or "", name=call.name or "")
    if names.resolve(decoded):
        decoded.text = free_text(arguments)
    else:
        decoded.arguments_json = arguments
    return pb.Part(tool_call=decoded)


def decode_reasoning(content: ReasoningContent) -> pb.Part:
    """Return reasoning with its state: a signature (also valid in the messages format), or redacted reasoning."""
    part = pb.Part()
    part.reasoning.SetInParent()
    if content.redacted_content:
        part.reasoning.redacted = True
        part.state.data, part.state.format = content.redacted_content, REDACTED_FORMAT
    elif content.reasoning_text is not None:
        if content.reasoning_text.text:
            part.reasoning.texts.append(content.reasoning_text.text)
        if content.reasoning_text.signature:
            part.state.data, part.state.format = content.reasoning_text.signature, SIGNED_FORMAT
    return part


def _decode_cited(cited: CitationsContent) -> pb.Part:
    text = "".join(piece.text or "" for piece in cited.content or ())
    return pb.Part(text=pb.TextPart(text=text, citations=map(decode_citation, cited.citations or ())))


def image_of(image: Image, data: bytes = b"") -> pb.MediaPart:
    """Return an image that the model made. `data`: the bytes received so far."""
    mime = MEDIA_TYPES.get(image.format or "", f"image/{image.format or 'png'}")
    return pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, mime_type=mime, data=data)


def opaque_block(raw: Raw) -> pb.OpaquePart:
    """Return a block of an unknown type as raw JSON. The name of its member becomes its type."""
    members = msgspec.json.decode(raw, type=dict[str, Raw]) if is_present(raw) and raw is not ABSENT_MEMBER else {}
    return pb.OpaquePart(format="converse", type=next(iter(members), ""), json=str(raw, "utf-8"))
